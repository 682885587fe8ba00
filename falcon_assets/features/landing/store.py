"""State of collectors between ticks, and pushes that wait for an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Connection, Text, any_, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import among, of_row, parts, upsert
from falcon_assets.history.tables import FEED_INSTANCES, INCOMPLETE, PASSES, PUSHED
from falcon_assets.planning.old_folders import FolderPass


@dataclass(frozen=True)
class Push:
    """A reported partition of a feed; an empty ``partition``: none was named."""

    feed: str
    partition: str
    event_id: int


def passes(connection: Connection, cluster: str) -> dict[str, FolderPass]:
    table = PASSES.c
    found = connection.execute(select(PASSES).where(table.cluster == cluster))
    return {row.feed: of_row(FolderPass, row) for row in found}


def set_passes(connection: Connection, cluster: str, folder_passes: Mapping[str, FolderPass]) -> None:
    rows = [{"cluster": cluster, "feed": feed, **vars(one)} for feed, one in folder_passes.items()]
    upsert(connection, PASSES, rows)


def incomplete(connection: Connection, cluster: str) -> dict[str, set[datetime]]:
    table = INCOMPLETE.c
    found: dict[str, set[datetime]] = {}
    for feed, instance in connection.execute(select(table.feed, table.instance).where(table.cluster == cluster)):
        found.setdefault(feed, set()).add(instance)
    return found


def seen_incomplete(connection: Connection, instances: Collection[tuple[str, str, datetime]]) -> set[Any]:
    table = INCOMPLETE.c
    key, found = (table.feed, table.cluster, table.instance), set()
    for part in parts(instances):
        found |= {tuple(row) for row in connection.execute(select(*key).where(among(key, part)))}
    return found


def set_incomplete(
    connection: Connection,
    cluster: str,
    came: Collection[tuple[str, datetime]],
    went: Collection[tuple[str, datetime]],
) -> None:
    """Remembers incomplete instances, and forgets others: they are complete or deleted."""
    rows = [{"cluster": cluster, "feed": feed, "instance": instance} for feed, instance in came]
    if rows:
        connection.execute(insert(INCOMPLETE).on_conflict_do_nothing(), rows)
    table = INCOMPLETE.c
    for part in parts(set(went)):
        statement = delete(INCOMPLETE).where(table.cluster == cluster, among((table.feed, table.instance), part))
        connection.execute(statement)


def known(connection: Connection, cluster: str, feed: str, instances: Iterable[datetime]) -> set[datetime]:
    """Returns instances with a row in the ledger, evicted ones too."""
    table = FEED_INSTANCES.c
    found: set[datetime] = set()
    for part in parts(set(instances)):
        own = (table.cluster == cluster, table.feed == feed, table.instance.in_(part))
        found.update(connection.execute(select(table.instance).where(*own)).scalars())
    return found


def pushes(connection: Connection, cluster: str, feeds: Collection[str], limit: int) -> list[Push]:
    """Returns unanswered pushes, the oldest first."""
    table = PUSHED.c
    own = (table.cluster == cluster, table.feed == any_(literal(list(feeds), ARRAY(Text))))
    statement = select(table.feed, table.partition, table.event_id).where(*own)
    rows = connection.execute(statement.order_by(table.event_id).limit(limit))
    return [Push(row.feed, row.partition, row.event_id) for row in rows]


def last_push(connection: Connection, cluster: str) -> int:
    """Returns the event of the last unanswered push; 0: there is none."""
    table = PUSHED.c
    last = select(func.max(table.event_id)).where(table.cluster == cluster)
    return connection.execute(last).scalar_one() or 0
