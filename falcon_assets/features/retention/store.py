"""Decisions of retention, recorded before the first change, so that the next pass completes a killed one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from falcon_assets.history.database import among, parts, upsert
from falcon_assets.history.tables import DATA_VERSIONS, EVICTIONS
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict
from falcon_assets.planning.reasons import RemovedByRetention


@dataclass(frozen=True)
class Eviction:
    """The decision to evict an instance of a feed; sizes and time (falcon clock) are those of the decision.

    Attributes:
        verdict: Its ``action`` is not ``keep``.
        archive_cluster: Of the archive; None: ``cluster``.
        files: Statistics and metadata included.
    """

    cluster: str
    feed: str
    verdict: Verdict
    flag: str | None
    archive_cluster: str | None
    files: int
    bytes: int
    run_id: str
    decided_at: datetime

    @property
    def instance(self) -> datetime:
        return self.verdict.instance.nominal

    @property
    def archive_places(self) -> set[tuple[str, str, str]]:
        """The archive places of all locations: cluster, URL of the root or "", path below it."""
        where = self.archive_cluster or self.cluster, self.verdict.archive_root or ""
        paths = map(self.verdict.archive_path, self.verdict.instance.locations)
        return {(*where, path) for path in paths if path is not None}


def write_down(connection: Connection, evictions: Iterable[Eviction]) -> None:
    """Records decisions; each replaces an older one on its instance."""
    upsert(connection, EVICTIONS, [_values(one) for one in evictions])


def decisions(
    connection: Connection, instances: Collection[tuple[str, str, datetime]]
) -> dict[Any, RemovedByRetention]:
    """Returns the latest decision by (feed, cluster, nominal time)."""
    table, found = EVICTIONS.c, {}
    key = (table.feed, table.cluster, table.instance)
    said = (table.action, table.reason, table.archive_root, table.archive_to, table.expired_at)
    for part in parts(instances):
        for row in connection.execute(select(*key, *said).where(among(key, part))):
            archive, why = row.archive_to and f"{row.archive_root or ''}{row.archive_to}", row.reason
            if row.expired_at is not None:
                why = f"{why}; it was in the archive {archive} until {format_instant(row.expired_at)}"
                archive = None
            found[row.feed, row.cluster, row.instance] = RemovedByRetention(row.action, why, archive)
    return found


def archived(connection: Connection, cluster: str, feeds: Collection[str]) -> dict[str, list[Eviction]]:
    """Returns the decisions by which instances of feeds are in an archive."""
    table, found = EVICTIONS.c, defaultdict[str, list[Eviction]](list)
    there = (table.action == "archive", table.done_at.is_not(None), table.expired_at.is_(None))
    own = select(EVICTIONS).where(table.cluster == cluster, table.feed.in_(feeds), *there)
    for row in connection.execute(own.order_by(table.feed, table.instance)):
        found[row.feed].append(_eviction(row))
    return found


def expired(connection: Connection, cluster: str, feed: str, instances: Iterable[datetime], at: datetime) -> None:
    """Records that instances are not in their archive any more."""
    table = EVICTIONS.c
    for part in parts(list(instances)):
        own = (table.cluster == cluster, table.feed == feed, table.instance.in_(part), table.done_at.is_not(None))
        connection.execute(update(EVICTIONS).values(expired_at=at).where(*own))


def version_in_archive(connection: Connection, one: Eviction) -> str | None:
    """Returns the version of an archived instance; None: nobody had seen it before."""
    table = DATA_VERSIONS.c
    own = (table.cluster == one.cluster, table.feed == one.feed, table.instance == one.instance)
    there = (*own, table.archived_to == one.verdict.archive_place)
    last = select(table.version).where(*there).order_by(table.ended_at.desc()).limit(1)
    return connection.execute(last).scalar()


def undone(connection: Connection, cluster: str, feeds: Collection[str]) -> list[Eviction]:
    table = EVICTIONS.c
    own = (table.cluster == cluster, table.feed.in_(feeds), table.done_at.is_(None))
    statement = select(EVICTIONS).where(*own).order_by(table.feed, table.instance)
    return [_eviction(row) for row in connection.execute(statement)]


def undone_feeds(connection: Connection, cluster: str) -> list[str]:
    table = EVICTIONS.c
    wanted = select(table.feed).distinct().where(table.cluster == cluster, table.done_at.is_(None))
    return list(connection.execute(wanted.order_by(table.feed)).scalars())


def finish(connection: Connection, cluster: str, feed: str, instances: Iterable[datetime], at: datetime) -> None:
    for part in parts(list(instances)):
        connection.execute(update(EVICTIONS).values(done_at=at).where(*_own(cluster, feed, part)))


def withdraw(connection: Connection, cluster: str, feed: str, instances: Iterable[datetime]) -> None:
    """Deletes decisions of which nothing was carried out."""
    for part in parts(list(instances)):
        connection.execute(delete(EVICTIONS).where(*_own(cluster, feed, part)))


def _own(cluster: str, feed: str, instances: list[datetime]) -> tuple[Any, ...]:
    table = EVICTIONS.c
    return table.cluster == cluster, table.feed == feed, table.instance.in_(instances), table.done_at.is_(None)


def _values(one: Eviction) -> dict[str, Any]:
    verdict = one.verdict
    return {
        "cluster": one.cluster,
        "feed": one.feed,
        "instance": one.instance,
        "action": verdict.action,
        "reason": verdict.reason,
        "locations": [location._asdict() for location in verdict.instance.locations],
        "flag": one.flag,
        "archive_cluster": one.archive_cluster,
        "archive_root": verdict.archive_root,
        "archive_to": verdict.archive_to,
        "files": one.files,
        "bytes": one.bytes,
        "run_id": one.run_id,
        "decided_at": one.decided_at,
        "done_at": None,
        "expired_at": None,
    }


def _eviction(row: Any) -> Eviction:
    locations = tuple(StoredLocation(**one) for one in row.locations)
    instance = StoredInstance(row.instance, locations)
    verdict = Verdict(instance, row.action, row.reason, row.archive_to, archive_root=row.archive_root)
    return Eviction(
        row.cluster,
        row.feed,
        verdict,
        row.flag,
        row.archive_cluster,
        row.files,
        row.bytes,
        row.run_id,
        row.decided_at,
    )
