"""Clusters that this database's code locations serve, and what was seen of sources that they do not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, and_, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.database import upsert
from falcon_assets.history.queries import last_collected
from falcon_assets.history.tables import INCOMPLETE, LOOKS, SERVED, SOURCE_PROBLEMS
from falcon_assets.planning.reasons import SeenSource

SERVED_FOR = timedelta(hours=1)
"""For how long a cluster counts as served after its own collector was at work: longer than code locations reload."""
_COPIED_TO_FOR = timedelta(days=30)
"""For how long retention keeps what a cluster has yet to copy whose coordinator is not at work."""
_NOTED_EVERY = timedelta(minutes=1)


def note_served(connection: Connection, cluster: str) -> None:
    """Notes that the cluster's own collector is at work; at most once a minute."""
    now, statement = func.clock_timestamp(), insert(SERVED)
    statement = statement.values(cluster=cluster, at=now).on_conflict_do_update(
        index_elements=["cluster"], set_={"at": now}, where=SERVED.c.at < now - _NOTED_EVERY
    )
    connection.execute(statement)


def served(connection: Connection, clusters: Collection[str]) -> set[str]:
    """Returns those of the clusters whose own collectors are at work with this database."""
    table = SERVED.c
    recent = table.at > func.clock_timestamp() - SERVED_FOR
    return set(connection.execute(select(table.cluster).where(table.cluster.in_(clusters), recent)).scalars())


def copied_to(connection: Connection, clusters: Collection[str], now: datetime) -> set[str]:
    """Returns those of the clusters whose coordinators were at work with this database in the last 30 days."""
    table, since = LOOKS.c, now - min(_COPIED_TO_FOR, now - datetime.min.replace(tzinfo=UTC))
    recent = select(table.cluster).where(table.cluster.in_(clusters), table.last > since).distinct()
    return set(connection.execute(recent).scalars()) if clusters else set()


def known_here(connection: Connection, everything: EntityStore, own: EntityStore) -> EntityStore:
    """Returns the entities of all colos that are served with this database."""
    others = everything.clusters.keys() - own.clusters.keys()
    if not (own.foreign_sources and others):
        return everything
    unserved = others - served(connection, others)
    return everything.without(everything.excluded, everything.clusters.keys() - unserved)


def set_source_problems(
    connection: Connection, cluster: str, problems: Mapping[str, str], now: datetime, solved: Collection[str]
) -> None:
    table = SOURCE_PROBLEMS.c
    if solved:
        connection.execute(delete(SOURCE_PROBLEMS).where(table.cluster == cluster, table.feed.in_(solved)))
    rows = [{"cluster": cluster, "feed": feed, "at": now, "problem": why} for feed, why in problems.items()]
    upsert(connection, SOURCE_PROBLEMS, rows)


@dataclass(frozen=True)
class ForeignSource:
    """A cluster of another colo that nobody serves with this database, and when its feeds were looked at."""

    connection: Connection
    cluster: str
    colo: str
    looked: Mapping[str, datetime]
    problems: Mapping[str, tuple[datetime, str]]

    def seen(self, feed: str, instance: datetime | None) -> SeenSource:
        """What was seen of an instance that is not recorded."""
        at, problem = self.problems.get(feed) or max(self.problems.values(), default=(None, ""))
        looked = self.looked.get(feed)
        if looked and at and looked > at:  # of another feed, and this one could be looked at since
            at, problem = None, ""
        begun = instance is not None and self._is_begun(feed, instance)
        return SeenSource(self.cluster, self.colo, looked, begun, at, problem)

    def _is_begun(self, feed: str, instance: datetime) -> bool:
        table = INCOMPLETE.c
        found = and_(table.cluster == self.cluster, table.feed == feed, table.instance == instance)
        return bool(self.connection.execute(select(exists().where(found))).scalar_one())


def foreign_source(connection: Connection, cluster: str, colo: str) -> ForeignSource | None:
    """None: the cluster is served with this database, which knows what happens there."""
    if served(connection, [cluster]):
        return None
    table = SOURCE_PROBLEMS.c
    rows = connection.execute(select(table.feed, table.at, table.problem).where(table.cluster == cluster))
    return ForeignSource(
        connection,
        cluster,
        colo,
        last_collected(connection, cluster),
        {row.feed: (row.at, row.problem) for row in rows},
    )
