"""What the ledger knows of members and roll-ups, and how far a pass has come."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, exists, select

from falcon_assets.history.database import among, parts, unnested, upsert
from falcon_assets.history.tables import DATA_VERSIONS, FEED_INSTANCES, ROLLUP_PROGRESS, VERSION_EDGES
from falcon_assets.history.tables.row_values import FeedInstanceRow
from falcon_assets.instances.store.instance_pages import FEED_ROWS
from falcon_assets.planning.rollups import MemberInstance


def changed_since(
    connection: Connection, cluster: str, feeds: Collection[str], event_id: int, limit: int
) -> Sequence[tuple[str, datetime, int]]:
    """Returns feed, instance and latest event of instances that changed after an event, in the order of these."""
    table = FEED_INSTANCES.c
    own = (table.cluster == cluster, table.feed.in_(feeds), table.event_id > event_id)
    statement = select(table.feed, table.instance, table.event_id).where(*own).order_by(table.event_id).limit(limit)
    return [(row[0], row[1], row[2]) for row in connection.execute(statement)]


def with_changed_members(
    connection: Connection, cluster: str, members: Mapping[str, Collection[str]], since: Mapping[str, int]
) -> set[str]:
    """Returns the roll-ups of which an instance of a member has changed after the event of each."""
    each = [(rollup, member, since[rollup]) for rollup, own in members.items() for member in own]
    names, feeds, events = zip(*each, strict=True) if each else ((), (), ())
    table, types = FEED_INSTANCES.c, ROLLUP_PROGRESS.c
    given = unnested(
        rollup=(types.feed.type, names), member=(types.feed.type, feeds), since=(types.event_id.type, events)
    ).c
    own = (table.cluster == cluster, table.feed == given.member, table.event_id > given.since)
    return set(connection.execute(select(given.rollup).where(exists().where(*own))).scalars())


def rows_of_instances(
    connection: Connection, cluster: str, keys: Collection[MemberInstance]
) -> dict[MemberInstance, FeedInstanceRow]:
    found = FEED_ROWS.some(connection, [(feed, cluster, instance) for feed, instance in keys])
    return {(feed, instance): row for (feed, _, instance), row in found.items()}


def made_of(
    connection: Connection, cluster: str, feed: str, versions: Mapping[datetime, str]
) -> dict[datetime, dict[MemberInstance, str]]:
    """Returns the versions of members that versions of a roll-up (by instance) were made of."""
    made, read = DATA_VERSIONS.alias("made"), DATA_VERSIONS.alias("read")
    own = (made.c.cluster == cluster, made.c.feed == feed)
    found: dict[datetime, dict[MemberInstance, str]] = {}
    statement = (
        select(made.c.instance, read.c.feed, read.c.instance, read.c.version)
        .join(VERSION_EDGES, VERSION_EDGES.c.output == made.c.id)
        .join(read, VERSION_EDGES.c.input == read.c.id)
    )
    for some in parts(versions.items()):
        wanted = among((made.c.instance, made.c.version), some)
        for instance, member, at, version in connection.execute(statement.where(*own, wanted)):
            found.setdefault(instance, {})[member, at] = version
    return found


def progress(connection: Connection, cluster: str) -> dict[tuple[str, str], int]:
    """Roll-up and its declaration -> the latest event of its members that a pass has seen."""
    table = ROLLUP_PROGRESS.c
    found = connection.execute(select(table.feed, table.declared, table.event_id).where(table.cluster == cluster))
    return {(row.feed, row.declared): row.event_id for row in found}


def set_progress(connection: Connection, cluster: str, feed: str, declared: str, event_id: int) -> None:
    row = {"cluster": cluster, "feed": feed, "declared": declared, "event_id": event_id}
    upsert(connection, ROLLUP_PROGRESS, [row])
