"""Verdicts and attempts in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.features.quality.events import HeldAccepted, InstanceChecked, InvalidAccepted, OutputHeld
from falcon_assets.features.quality.held_outputs import fold_held
from falcon_assets.features.quality.profile import ColumnProfile
from falcon_assets.features.quality.verdict import InstanceVerdict, QualityResult
from falcon_assets.history.database import among, parts
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.tables import FEED_INSTANCES, QUALITY_ATTEMPTS, QUALITY_VERDICTS
from falcon_assets.model.quality_check import Figures
from falcon_assets.operations.operation import Result
from falcon_assets.planning.instance_record import FeedState

InstanceKey: TypeAlias = tuple[str, str, datetime]
"""Cluster, feed, instance."""
VersionKey: TypeAlias = tuple[str, str, datetime, str]
"""Cluster, feed, instance, version."""
_KEY = ("cluster", "feed", "instance")
_RETRY_MINUTES = (1, 5, 15, 60)
"""Time to the next attempt; the last for all further ones."""


@dataclass(frozen=True)
class VerdictRow:
    """The verdict about a version; ``accepted_by``: who overruled it."""

    cluster: str
    feed: str
    instance: datetime
    version: str
    verdict: InstanceVerdict
    checked_at: datetime
    suite: str
    records: int | None
    checks: tuple[QualityResult, ...]
    profile: tuple[ColumnProfile, ...] | None
    accepted_by: str | None = None
    accepted_at: datetime | None = None
    accepted_reason: str | None = None

    @property
    def is_valid(self) -> bool:
        return self.verdict is InstanceVerdict.VALID or self.accepted_by is not None


@dataclass(frozen=True)
class Attempts(Result):
    """Attempts to check a version; ``retry_at`` is in real time."""

    attempts: int
    retry_at: datetime
    problem: str


def fold_verdicts(connection: Connection, facts: Sequence[Logged]) -> None:
    """Applies verdicts and acceptances in their order; a version that is checked again stays accepted.

    A verdict ends the attempts to check the instance: in one transaction, so that no kill leaves one without the other.
    """
    for one in facts:
        if isinstance(one.fact, InstanceChecked):
            values = _values(one.event_id, one.fact)
            statement = insert(QUALITY_VERDICTS).values(values)
            others = {name: statement.excluded[name] for name in values if name not in (*_KEY, "version")}
            connection.execute(
                statement.on_conflict_do_update(index_elements=QUALITY_VERDICTS.primary_key.columns, set_=others)
            )
            _end_attempts(connection, (one.fact.cluster, one.fact.feed, one.fact.instance))
        elif isinstance(one.fact, OutputHeld | HeldAccepted):
            fold_held(connection, one.event_id, one.fact)
        elif isinstance(one.fact, InvalidAccepted):
            fact = one.fact
            accepted = {"accepted_by": fact.accepted_by, "accepted_at": fact.at, "accepted_reason": fact.reason}
            statement = insert(QUALITY_VERDICTS).values({**_unmeasured(one.event_id, fact), **accepted})
            connection.execute(
                statement.on_conflict_do_update(index_elements=QUALITY_VERDICTS.primary_key.columns, set_=accepted)
            )


def _values(event_id: int, fact: InstanceChecked) -> dict[str, Any]:
    by = {"accepted_by": fact.overruled_by, "accepted_at": fact.overruled_at, "accepted_reason": fact.overruled_reason}
    return {
        **(by if fact.overruled_by else {}),
        "cluster": fact.cluster,
        "feed": fact.feed,
        "instance": fact.instance,
        "version": fact.checked_version,
        "verdict": fact.verdict.value,
        "checked_at": fact.at,
        "event_id": event_id,
        "suite": fact.suite,
        "records": fact.checked_records,
        "checks": [asdict(one) for one in fact.checks],
        "profile": None if fact.profile is None else [asdict(one) for one in fact.profile],
    }


def _unmeasured(event_id: int, fact: InvalidAccepted) -> dict[str, Any]:
    """The row of a version that was accepted, as it was made from invalid data, and that has no checks of its own."""
    return {
        "cluster": fact.cluster,
        "feed": fact.feed,
        "instance": fact.instance,
        "version": fact.accepted_version,
        "verdict": InstanceVerdict.UNCHECKED.value,
        "checked_at": fact.at,
        "event_id": event_id,
        "suite": "",
        "records": None,
        "checks": [],
        "profile": None,
    }


def _own(table: Any, key: InstanceKey, version: str) -> Any:
    columns = table.c
    return and_(*(columns[name] == value for name, value in zip(_KEY, key, strict=True)), columns.version == version)


def verdicts(connection: Connection, keys: Collection[InstanceKey]) -> dict[InstanceKey, VerdictRow]:
    """The verdicts about the present versions of instances; those that are unchecked have none."""
    there, table = FEED_INSTANCES.c, QUALITY_VERDICTS.c
    same = and_(*(there[name] == table[name] for name in _KEY), there.version == table.version)
    columns, found = tuple(there[name] for name in _KEY), dict[InstanceKey, VerdictRow]()
    for part in parts(keys):
        asked = select(QUALITY_VERDICTS).join_from(FEED_INSTANCES, QUALITY_VERDICTS, same)
        for row in connection.execute(asked.where(among(columns, part), there.state == FeedState.AVAILABLE.value)):
            found[row.cluster, row.feed, row.instance] = _row(row)
    return found


def verdict_about(connection: Connection, key: InstanceKey, version: str) -> VerdictRow | None:
    row = connection.execute(select(QUALITY_VERDICTS).where(_own(QUALITY_VERDICTS, key, version))).first()
    return None if row is None else _row(row)


def verdicts_about(connection: Connection, versions: Collection[VersionKey]) -> dict[VersionKey, VerdictRow]:
    found = dict[VersionKey, VerdictRow]()
    for row in _about(connection, QUALITY_VERDICTS, versions):
        found[row.cluster, row.feed, row.instance, row.version] = _row(row)
    return found


def attempts_about(connection: Connection, versions: Collection[VersionKey]) -> dict[VersionKey, Attempts]:
    found = dict[VersionKey, Attempts]()
    for row in _about(connection, QUALITY_ATTEMPTS, versions):
        found[row.cluster, row.feed, row.instance, row.version] = Attempts(row.attempts, row.retry_at, row.problem)
    return found


def _about(connection: Connection, table: Table, versions: Collection[VersionKey]) -> Iterator[Row[Any]]:
    columns = tuple(table.c[name] for name in (*_KEY, "version"))
    for part in parts(versions):
        yield from connection.execute(select(table).where(among(columns, part)))


def is_unchecked() -> ColumnElement[bool]:
    """Whether there is no verdict about the version that is there."""
    there, table = FEED_INSTANCES.c, QUALITY_VERDICTS.c
    return ~select(table.version).where(*(there[name] == table[name] for name in (*_KEY, "version"))).exists()


def present_version(connection: Connection, key: InstanceKey) -> str | None:
    """The version that is there; None: none is available."""
    table = FEED_INSTANCES.c
    own = and_(*(table[name] == value for name, value in zip(_KEY, key, strict=True)))
    statement = select(table.version).where(own, table.state == FeedState.AVAILABLE.value)
    return connection.execute(statement).scalar_one_or_none()


def verdicts_before(
    connection: Connection, cluster: str, feed: str, before: datetime | None, limit: int, *, valid: bool = False
) -> list[VerdictRow]:
    """The verdicts about the present versions of the last instances before a time, the newest first.

    ``valid``: only of those that are, or that a person accepted.
    """
    there, table = FEED_INSTANCES.c, QUALITY_VERDICTS.c
    same = and_(*(there[name] == table[name] for name in _KEY), there.version == table.version)
    statement = select(QUALITY_VERDICTS).join_from(QUALITY_VERDICTS, FEED_INSTANCES, same)
    statement = statement.where(table.cluster == cluster, table.feed == feed)
    if before is not None:
        statement = statement.where(table.instance < before)
    if valid:
        statement = statement.where(or_(table.verdict == InstanceVerdict.VALID.value, table.accepted_by.is_not(None)))
    rows = connection.execute(statement.order_by(table.instance.desc()).limit(limit))
    return [_row(row) for row in rows]


def past_figures(rows: Iterable[VerdictRow]) -> dict[str, list[Figures]]:
    """Title of a check -> its figures, in the order of the rows; those that could not be measured are left out."""
    found: dict[str, list[Figures]] = {}
    for row in rows:
        for one in row.checks:
            if not one.problem:
                found.setdefault(one.name, []).append(one.figures)
    return found


def _row(row: Any) -> VerdictRow:
    said = {**row._mapping}
    del said["event_id"]
    said["verdict"] = InstanceVerdict(row.verdict)
    said["checks"] = tuple(QualityResult(**one) for one in row.checks)
    said["profile"] = None if row.profile is None else tuple(map(ColumnProfile.of_data, row.profile))
    return VerdictRow(**said)


def unchecked(
    connection: Connection, cluster: str, feeds: Collection[str], since: datetime, limit: int
) -> list[tuple[str, datetime, str]]:
    """Feeds, instances and versions without a verdict that were seen since a time, and need not wait for a retry.

    The newest version is first: what has just landed does not wait for what failed, or for a long pause.
    """
    there, tried = FEED_INSTANCES.c, QUALITY_ATTEMPTS.c
    same = and_(*(there[name] == tried[name] for name in _KEY), there.version == tried.version)
    statement = (
        select(there.feed, there.instance, there.version)
        .join_from(FEED_INSTANCES, QUALITY_ATTEMPTS, same, isouter=True)
        .where(
            there.cluster == cluster,
            there.feed.in_(list(feeds)),
            there.state == FeedState.AVAILABLE.value,
            there.seen_at >= since,
            or_(tried.retry_at.is_(None), tried.retry_at <= func.now()),
            is_unchecked(),
        )
        .order_by(there.version_event.desc())
        .limit(limit)
    )
    return [(row.feed, row.instance, row.version) for row in connection.execute(statement)]


def begin_attempt(connection: Connection, key: InstanceKey, version: str) -> int:
    """Records an attempt before it begins, so that one that ends its process counts; returns its number."""
    table = QUALITY_ATTEMPTS.c
    before = connection.execute(select(table.attempts).where(_own(QUALITY_ATTEMPTS, key, version))).scalar() or 0
    minutes = _RETRY_MINUTES[min(before, len(_RETRY_MINUTES) - 1)]
    values = {
        **dict(zip(_KEY, key, strict=True)),
        "version": version,
        "attempts": before + 1,
        "retry_at": datetime.now(UTC) + timedelta(minutes=minutes),
        "problem": "",
    }
    statement = insert(QUALITY_ATTEMPTS).values(values)
    others = {name: statement.excluded[name] for name in ("attempts", "retry_at", "problem")}
    connection.execute(
        statement.on_conflict_do_update(index_elements=QUALITY_ATTEMPTS.primary_key.columns, set_=others)
    )
    return before + 1


def attempt_failed(connection: Connection, key: InstanceKey, version: str, problem: str) -> None:
    own = _own(QUALITY_ATTEMPTS, key, version)
    connection.execute(update(QUALITY_ATTEMPTS).values(problem=problem).where(own))


def _end_attempts(connection: Connection, key: InstanceKey) -> None:
    """Forgets those of all its versions; after a rebuild, one that has none yet is tried at once."""
    table = QUALITY_ATTEMPTS.c
    own = and_(*(table[name] == value for name, value in zip(_KEY, key, strict=True)))
    connection.execute(delete(QUALITY_ATTEMPTS).where(own))


def attempts_of(connection: Connection, key: InstanceKey, version: str) -> Attempts | None:
    row = connection.execute(select(QUALITY_ATTEMPTS).where(_own(QUALITY_ATTEMPTS, key, version))).first()
    return None if row is None else Attempts(row.attempts, row.retry_at, row.problem)
