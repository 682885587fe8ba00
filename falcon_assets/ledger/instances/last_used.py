"""Which version of an input a process used last, where it uses each once, and which is there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, and_, select, true

from falcon_assets.ledger.database.upsert import rows_of
from falcon_assets.ledger.tables import CONSUMED, FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.model.process import Input
from falcon_assets.planning.instances.instance_record import FeedState, InstanceState
from falcon_assets.planning.rules.newer_versions import LastUse


def last_used(
    connection: Connection, cluster: str, inputs: Mapping[str, tuple[str, Collection[Input]]]
) -> dict[str, dict[str, LastUse]]:
    """Process -> input -> what was used last, of those of which each version is used once.

    Args:
        connection: The database.
        cluster: Where the processes run.
        inputs: Process -> the cluster that it reads, and its inputs.
    """
    wanted = [(process, on, one) for process, (on, every) in inputs.items() for one in every if one.newer_than]
    if not wanted:
        return {}
    columns = {
        "process": [process for process, _, _ in wanted],
        "input_cluster": [on for _, on, _ in wanted],
        "input": [one.name for _, _, one in wanted],
        "feed": [one.feed for _, _, one in wanted],
    }
    asked, read, there, done = rows_of(CONSUMED, columns), CONSUMED.c, FEED_INSTANCES.c, PROCESS_INSTANCES.c
    own = and_(read.cluster == cluster, *(read[name] == asked.c[name] for name in columns))
    # As many rows as there were versions: each was used once.
    last = select(read.nominal, read.version).where(own, read.version.is_not(None))
    last_read = last.order_by(read.read_event.desc(), read.nominal.desc()).limit(1).lateral("last")
    is_there = there.state == FeedState.AVAILABLE.value
    newest = select(there.version, there.seen_at).where(
        there.cluster == asked.c.input_cluster, there.feed == asked.c.feed, is_there
    )
    present = newest.order_by(there.instance.desc()).limit(1).lateral("present")
    reader = and_(
        done.process == asked.c.process,
        done.cluster == cluster,
        done.nominal == last_read.c.nominal,
        done.state == InstanceState.SUCCEEDED.value,
    )
    statement = (
        select(
            *(asked.c.process, asked.c.input, last_read.c.nominal, last_read.c.version),
            *(present.c.version.label("present"), present.c.seen_at, done.ended),
        )
        .join_from(asked, last_read, true())
        .join(present, true())
        .outerjoin(PROCESS_INSTANCES, reader)
    )
    found: dict[str, dict[str, LastUse]] = {}
    for row in connection.execute(statement):
        use = LastUse(row.version, row.nominal, row.ended, row.present, row.seen_at)
        found.setdefault(row.process, {})[row.input] = use
    return found
