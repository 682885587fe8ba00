"""Reported parts and shares of feed instances: written by the fold and by collectors, read by all that shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, case, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.features.completeness.records import CompletenessRecorded, PartsReported, ReportedPart
from falcon_assets.features.completeness.rules import PartCounts, PartKey, Share, missing_parts, named_parts
from falcon_assets.history.database import among, parts, rows_of
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.record import LARGEST
from falcon_assets.history.mapping.partitions import instant_of_key
from falcon_assets.history.tables.completeness import COMPLETENESS, REPORTED_PARTS
from falcon_assets.history.tables.row_values import FeedKey
from falcon_assets.model.completeness import Completeness
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.reasons import RecordsMissing

_KEY = ("cluster", "feed", "instance")
_VALUES = ("records", "expected", "minimum", "maximum", "offsets")
_Row: TypeAlias = tuple[ReportedPart, datetime]


@dataclass(frozen=True)
class KnownShare(Share):
    """The share of an instance, as the ledger has it.

    Attributes:
        taken: Whether it was taken incomplete.
        counted: The signature of the listing whose records were counted; None: they were reported.
    """

    taken: bool = False
    changed_at: datetime | None = None
    counted: str | None = None


def fold_completeness(connection: Connection, facts: Sequence[Logged]) -> None:
    reported = dict[tuple[FeedKey, PartKey], _Row]()
    for one in facts:
        if isinstance(one.fact, PartsReported) and (instance := instant_of_key(one.fact.partition)):
            key = (one.fact.cluster, one.fact.feed, instance)
            for part in one.fact.parts:
                own = (key, (part.source, part.part))
                reported[own] = (_merged(reported[own][0], part) if own in reported else part), one.fact.at
    if reported:
        _store_parts(connection, reported)
        _add_up(connection, {key for key, _ in reported})
    taken = [one.fact for one in facts if isinstance(one.fact, CompletenessRecorded)]
    if taken:
        _store_taken(connection, taken)


def _merged(before: ReportedPart, after: ReportedPart) -> ReportedPart:
    said = {name: value for name in _VALUES if (value := getattr(after, name)) is not None}
    return replace(before, **said)


def _store_parts(connection: Connection, reported: Mapping[tuple[FeedKey, PartKey], _Row]) -> None:
    """What a report does not say stays as it was."""
    rows = [
        {**dict(zip(_KEY, key, strict=True)), **vars(part), "reported_at": at}
        for (key, _), (part, at) in reported.items()
    ]
    names = [column.name for column in REPORTED_PARTS.c]
    for some in parts(rows):
        given = rows_of(REPORTED_PARTS, {name: [row[name] for row in some] for name in names})
        statement = insert(REPORTED_PARTS).from_select(names, select(*given.c))
        new, own = statement.excluded, REPORTED_PARTS.c
        kept = {name: func.coalesce(new[name], own[name]) for name in _VALUES}
        key = [column.name for column in REPORTED_PARTS.primary_key]
        connection.execute(
            statement.on_conflict_do_update(index_elements=key, set_=kept | {"reported_at": new.reported_at})
        )


def _add_up(connection: Connection, keys: Collection[FeedKey]) -> None:
    """Adds up the parts of instances, of a source its total if it has one; a count of files stays where none came."""
    for some in parts(keys):
        found = _sums(among(tuple(REPORTED_PARTS.c[name] for name in _KEY), some)).subquery("sums")
        values = [*found.c, literal_column("false").label("taken"), literal_column("NULL::text").label("counted")]
        names = [*_KEY, "expected", "records", "changed_at", "taken", "counted"]
        statement = insert(COMPLETENESS).from_select(names, select(*values))
        new, own = statement.excluded, COMPLETENESS.c
        changed = {
            "expected": func.coalesce(new.expected, own.expected),
            "records": func.coalesce(new.records, own.records),
            "changed_at": new.changed_at,
            "counted": case((new.records.is_(None), own.counted)),
        }
        connection.execute(statement.on_conflict_do_update(index_elements=_KEY, set_=changed))


def _sums(wanted: ColumnElement[bool]) -> Select[Any]:
    table = REPORTED_PARTS.c
    total = func.max(table.expected).filter(table.part == "")
    by_source = (
        select(
            *(table[name] for name in _KEY),
            func.coalesce(total, func.sum(table.expected)).label("expected"),
            func.sum(table.records).label("records"),
            func.max(table.reported_at).label("changed_at"),
        )
        .where(wanted)
        .group_by(*(table[name] for name in _KEY), table.source)
        .subquery("by_source")
    )
    own = by_source.c
    of_instance = [own[name] for name in _KEY]
    # What anybody reports must not stop the fold: a sum that no column holds is the largest that one does.
    added = (func.sum(one) for one in (own.expected, own.records))
    sums = (*(case((one > LARGEST, LARGEST), else_=one) for one in added), func.max(own.changed_at))
    return select(*of_instance, *sums).group_by(*of_instance)


def _store_taken(connection: Connection, taken: Sequence[CompletenessRecorded]) -> None:
    rows = [
        {
            **{name: getattr(one, name) for name in _KEY},
            "expected": one.records_expected,
            "records": one.records,
            "taken": one.taken_incomplete,
            "changed_at": one.at,
            "counted": one.signature if one.records_counted else None,
        }
        for one in taken
    ]
    _store_shares(connection, rows)


def set_withheld(connection: Connection, shares: Mapping[FeedKey, KnownShare]) -> None:
    """Stores what a collector knows of instances that it withheld."""
    _store_shares(connection, [{**dict(zip(_KEY, key, strict=True)), **vars(share)} for key, share in shares.items()])


def _store_shares(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Numbers that were reported are known from the fold already, unless the ledger is rebuilt."""
    last = {tuple(row[name] for name in _KEY): row for row in rows}
    names = [column.name for column in COMPLETENESS.c]
    for some in parts(last.values()):
        given = rows_of(COMPLETENESS, {name: [row[name] for row in some] for name in names})
        statement = insert(COMPLETENESS).from_select(names, select(*given.c))
        new, own = statement.excluded, COMPLETENESS.c
        is_counted = new.counted.is_not(None)
        changed = {
            "expected": func.coalesce(own.expected, new.expected),
            "records": case((is_counted, new.records), else_=func.coalesce(own.records, new.records)),
            "taken": new.taken,
            "changed_at": case((is_counted, new.changed_at), else_=func.coalesce(own.changed_at, new.changed_at)),
            "counted": func.coalesce(new.counted, own.counted),
        }
        connection.execute(statement.on_conflict_do_update(index_elements=_KEY, set_=changed))


def why_incomplete(connection: Connection, rules: Mapping[FeedKey, Completeness]) -> dict[FeedKey, RecordsMissing]:
    """Why instances that are not available are incomplete, where anything is known of their records."""
    shares, reported = known_shares(connection, rules), parts_of(connection, rules)
    found = dict[FeedKey, RecordsMissing]()
    for key, rule in rules.items():
        share = shares.get(key)
        if share is not None and not (share.taken or share.reaches(rule.at_least)):
            missing = missing_parts(reported.get(key, {})) if share.counted is None else ()
            wanted = (share.shown, f"{rule.at_least:f}", tuple(named_parts(missing)))
            found[key] = RecordsMissing(share.expected, share.records, *wanted, share.changed_at)
    return found


def known_shares(connection: Connection, keys: Iterable[FeedKey]) -> dict[FeedKey, KnownShare]:
    own = tuple(COMPLETENESS.c[name] for name in _KEY)
    rows = (connection.execute(select(COMPLETENESS).where(among(own, some))) for some in parts(set(keys)))
    return dict(_share(row) for each in rows for row in each)


def following_shares(connection: Connection, key: FeedKey, limit: int) -> tuple[dict[FeedKey, KnownShare], datetime]:
    """Returns those of a feed from an instance on, and the time up to which there is no other, which is excluded."""
    cluster, feed, instance = key
    own = (COMPLETENESS.c.cluster == cluster, COMPLETENESS.c.feed == feed, COMPLETENESS.c.instance >= instance)
    statement = select(COMPLETENESS).where(*own).order_by(COMPLETENESS.c.instance).limit(limit)
    found = [_share(row) for row in connection.execute(statement)]
    end = found[-1][0][2] + MICROSECOND if len(found) == limit else datetime.max.replace(tzinfo=UTC)
    return dict(found), end


def _share(row: Any) -> tuple[FeedKey, KnownShare]:
    key = (row.cluster, row.feed, row.instance)
    return key, KnownShare(row.expected, row.records, row.taken, row.changed_at, row.counted)


def parts_of(connection: Connection, keys: Iterable[FeedKey]) -> dict[FeedKey, dict[PartKey, PartCounts]]:
    """The parts of instances for which both numbers count: those that were sent by part."""
    found = dict[FeedKey, dict[PartKey, PartCounts]]()
    table = REPORTED_PARTS.c
    own = tuple(table[name] for name in _KEY)
    for some in parts(set(keys)):
        statement = select(*own, table.source, table.part, table.expected, table.records)
        for row in connection.execute(statement.where(among(own, some), table.expected.is_not(None))):
            known = found.setdefault((row.cluster, row.feed, row.instance), {})
            known[row.source, row.part] = PartCounts(row.expected, row.records)
    return found


def expected_parts(connection: Connection, key: FeedKey) -> dict[PartKey, int]:
    found = parts_of(connection, [key]).get(key, {})
    return {part: one.expected for part, one in found.items() if one.expected is not None}
