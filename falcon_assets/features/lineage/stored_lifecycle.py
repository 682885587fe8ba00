"""Storage of lifecycle statuses: declared by feeds, or set by users; protection and expiry by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, delete, exists, or_, select, true

from falcon_assets.features.lineage.pruning_rules import expired, protected
from falcon_assets.features.lineage.store import each_following, every_version, versions_of_numbers
from falcon_assets.history.database import LEDGER_LOCK, lock_in_transaction, parts, rows_of, upsert
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.folding.version_rows import version_of_row
from falcon_assets.history.tables import DATA_VERSIONS, VERSION_COLUMNS, VERSION_EDGES, VERSION_LIFECYCLE
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.planning.reasons_to_keep import Protected, ProtectedVersions
from falcon_assets.planning.version_columns import VersionStatus

_KEY = ("cluster", "feed", "instance", "version")
_TABLE, _VERSION, _EDGE = VERSION_LIFECYCLE.c, DATA_VERSIONS.c, VERSION_EDGES.c


@dataclass(frozen=True)
class SetStatus:
    status: LifecycleStatus
    at: datetime
    actor: str
    reason: str


def status_set(connection: Connection, version: Version) -> SetStatus | None:
    """Returns None where that of the feed holds."""
    own = (_TABLE[name] == getattr(version, name) for name in _KEY)
    row = connection.execute(select(_TABLE.status, _TABLE.at, _TABLE.actor, _TABLE.reason).where(*own)).one_or_none()
    return SetStatus(*row) if row else None


def set_status(connection: Connection, version: Version, status: SetStatus) -> None:
    """Sets the status of a version; it holds until another is set, also after a rebuild of the ledger."""
    upsert(connection, VERSION_LIFECYCLE, [{**{name: getattr(version, name) for name in _KEY}, **vars(status)}])


def critical_versions(connection: Connection, feeds: Collection[str]) -> list[int]:
    """Returns the numbers of critical versions; those of ``feeds`` are critical where no other status is set."""
    same = and_(*(_TABLE[name] == _VERSION[name] for name in _KEY))
    by_feed = and_(_TABLE.status.is_(None), _VERSION.feed.in_(feeds))
    asked = select(_VERSION.id).outerjoin_from(DATA_VERSIONS, VERSION_LIFECYCLE, same)
    if not feeds:
        asked = select(_VERSION.id).join_from(VERSION_LIFECYCLE, DATA_VERSIONS, same)
    return list(connection.execute(asked.where(or_(_TABLE.status == "critical", by_feed))).scalars())


def edges_above(connection: Connection, numbers: Collection[int]) -> list[tuple[int, int]]:
    start = rows_of(DATA_VERSIONS, {"id": list(numbers)})
    every = select(start.c.id.label("id")).cte("above", recursive=True)
    following = each_following(select(_EDGE.input.label("id")).where(_EDGE.output == every.c.id))
    every = every.union(select(following.c.id).join_from(every, following, true()))
    made = each_following(select(_EDGE.output, _EDGE.input).where(_EDGE.output == every.c.id))
    rows = connection.execute(select(made.c.output, made.c.input).join_from(every, made, true()))
    return [(row.output, row.input) for row in rows]


def all_protected(connection: Connection, feeds: Collection[str]) -> Mapping[int, int]:
    """Maps protected versions to the critical one that each stays for; ``feeds`` as in :func:`critical_versions`."""
    critical = critical_versions(connection, feeds)
    return protected(critical, edges_above(connection, critical)) if critical else {}


def protected_on(
    connection: Connection, cluster: str, feeds: Collection[str], critical: Collection[str]
) -> Mapping[str, ProtectedVersions]:
    """Returns the protected versions on a cluster by feed; ``critical`` as ``feeds`` in :func:`critical_versions`."""
    reasons = all_protected(connection, critical)
    there = (DATA_VERSIONS.c.cluster == cluster, DATA_VERSIONS.c.feed.in_(feeds))
    own = versions_of_numbers(connection, reasons, *there)
    named = {one.number: one for one in versions_of_numbers(connection, {reasons[one.number] for one in own})}
    found: dict[str, ProtectedVersions] = {}
    uncollected = {one.number for one in _uncollected(connection, cluster, own)}
    for one in own:
        reason = Protected(named[reasons[one.number]].id, itself=reasons[one.number] == one.number)
        of_feed = found.setdefault(one.feed, ProtectedVersions())
        of_feed.versions[one.instance, one.version] = reason
        if one.is_present or one.number in uncollected:
            of_feed.instances[one.instance] = reason
        elif one.exists:
            of_feed.instances.setdefault(one.instance, reason)
    return found


def _uncollected(connection: Connection, cluster: str, versions: Sequence[Version]) -> list[Version]:
    """Returns versions that were only read, of instances not known to be there: their feed may have no collector."""
    read = [one for one in versions if one.status is VersionStatus.READ]
    if not read:
        return []
    table = DATA_VERSIONS.c
    asked = rows_of(DATA_VERSIONS, {"feed": [one.feed for one in read], "instance": [one.instance for one in read]})
    same = and_(table.feed == asked.c.feed, table.instance == asked.c.instance)
    there = select(table.feed, table.instance).join_from(asked, DATA_VERSIONS, same)
    rows = connection.execute(there.where(table.cluster == cluster, table.status == VersionStatus.AVAILABLE.value))
    known = {(row.feed, row.instance) for row in rows}
    return [one for one in read if (one.feed, one.instance) not in known]


def expired_versions(connection: Connection, critical: Collection[str], before: datetime) -> list[Version]:
    """Returns the unprotected versions deleted before a time; locks the ledger against folding until the commit."""
    lock_in_transaction(connection, LEDGER_LOCK)
    protected = all_protected(connection, critical)
    is_read_only = _VERSION.status == VersionStatus.READ.value
    read_only = select(_VERSION.id).where(is_read_only)
    asked = select(_EDGE.output, _EDGE.input).where(_EDGE.input.in_(read_only))
    edges = [(output, read) for output, read in connection.execute(asked)]
    going = every_version().where(_VERSION.archived_to.is_(None), or_(is_read_only, _VERSION.ended_at < before))
    versions = map(version_of_row, connection.execute(going))
    return sorted(expired(versions, edges, protected, before), key=lambda one: one.number)


def forget(connection: Connection, versions: Collection[Version]) -> None:
    """Deletes versions with edges and unused columns; in the transaction of :func:`expired_versions`."""
    for numbers in parts([one.number for one in versions]):
        connection.execute(delete(VERSION_EDGES).where(or_(_EDGE.output.in_(numbers), _EDGE.input.in_(numbers))))
        own = (VERSION_LIFECYCLE.c[name] == DATA_VERSIONS.c[name] for name in _KEY)
        connection.execute(delete(VERSION_LIFECYCLE).where(exists().where(*own, DATA_VERSIONS.c.id.in_(numbers))))
        connection.execute(delete(DATA_VERSIONS).where(DATA_VERSIONS.c.id.in_(numbers)))
    if plans := {one.plan for one in versions if one.plan}:
        used = exists().where(DATA_VERSIONS.c.plan == VERSION_COLUMNS.c.plan)
        connection.execute(delete(VERSION_COLUMNS).where(VERSION_COLUMNS.c.plan.in_(plans), ~used))
