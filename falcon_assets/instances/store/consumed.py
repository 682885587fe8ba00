"""Versions of feeds that instances read when they succeeded last."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, select, true

from falcon_assets.history.database import rows_of
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.instances.rules.newer_versions import LastUse
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input
from falcon_assets.planning.instance_record import FeedState, InstanceState

_READ = CONSUMED.c


@dataclass(frozen=True)
class Reading:
    """``version`` None: the instance of an optional input was not there; stale: there is another version now."""

    key: Key
    input: str
    version: str | None
    is_stale: bool

    def as_data(self) -> dict[str, Any]:
        entity, cluster, nominal = self.key
        where = {"entity": entity, "cluster": cluster, "instance": format_instant(nominal)}
        return {**where, "input": self.input, "version": self.version, "stale": self.is_stale}


def readings(connection: Connection, cluster: str, feed: str, instance: datetime) -> list[Reading]:
    own = and_(_READ.input_cluster == cluster, _READ.feed == feed, _READ.instance == instance)
    order = (_READ.process.collate("C"), _READ.cluster.collate("C"), _READ.nominal, _READ.input)
    found = connection.execute(select(CONSUMED).where(own).order_by(*order))
    return [Reading((row.process, row.cluster, row.nominal), row.input, row.version, row.stale) for row in found]


def versions_read(connection: Connection, instances: Collection[Key]) -> dict[Key, str | None]:
    if not instances:
        return {}
    entities, clusters, nominals = zip(*instances, strict=True)
    columns = {"process": entities, "cluster": clusters, "nominal": nominals}
    asked = rows_of(CONSUMED, columns)
    own = and_(*(_READ[name] == asked.c[name] for name in columns))
    statement = select(_READ.process, _READ.cluster, _READ.nominal, _READ.version).join_from(asked, CONSUMED, own)
    return {
        (process, cluster, nominal): version for process, cluster, nominal, version in connection.execute(statement)
    }


def last_used(
    connection: Connection, cluster: str, inputs: Mapping[str, tuple[str, Collection[Input]]]
) -> dict[str, dict[str, LastUse]]:
    """Process -> input -> its last use, for inputs whose versions are used once (``newer_than``).

    ``inputs`` maps a process to the cluster that it reads on, and its inputs.
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
