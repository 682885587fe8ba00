"""Writers and readers of an instance of a feed, and those that have yet to read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.store.consumed import Reading, readings
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.feed_writers import writers_of
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.input_windows import consumers
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class FutureReads:
    """``nominals`` are oldest first; None: they depend on future data (``latest``, ``future``)."""

    workload: Workload
    input: str
    nominals: tuple[datetime, ...] | None

    def as_data(self) -> dict[str, Any]:
        return {
            "entity": self.workload.name,
            "kind": self.workload.kind,
            "cluster": self.workload.cluster,
            "input": self.input,
            "number": None if self.nominals is None else len(self.nominals),
            "first": format_instant(self.nominals[0]) if self.nominals else None,
            "last": format_instant(self.nominals[-1]) if self.nominals else None,
        }


@dataclass(frozen=True)
class FeedInstanceDependencies:
    """``writers`` without entries: it lands from outside."""

    instance: InstanceInfo
    writers: tuple[tuple[Workload, datetime, InstanceState], ...]
    readings: tuple[Reading, ...]
    future: tuple[FutureReads, ...]

    def as_data(self) -> dict[str, Any]:
        writers = [
            {
                "entity": workload.name,
                "kind": workload.kind,
                "cluster": workload.cluster,
                "instance": format_instant(nominal),
                "state": state.value,
            }
            for workload, nominal, state in self.writers
        ]
        return {
            **self.instance.as_data(),
            "written_by": writers,
            "read_by": [one.as_data() for one in self.readings],
            "will_read": [one.as_data() for one in self.future],
        }


def feed_instance_dependencies(
    installation: Installation, feed: str, instance: datetime, cluster: str | None = None
) -> FeedInstanceDependencies:
    """Searches the clusters of all colos, in the ledger only; ``cluster`` None: the only one of the feed.

    Raises:
        UnknownEntityError: unknown feed or cluster, or on several clusters and none is named.
        UnknownInstanceError: the feed has no such instance there.
        DeniedError: the user may not read the feed.
    """
    store = installation.entities
    where = _cluster(store, feed, cluster)
    (info,) = instance_status(installation, InstanceQuery(feed, "feed", start=instance, cluster=where)).items
    everywhere = installation.all_entities
    writers = writers_of(everywhere, everywhere.feed(feed), where, instance)
    keys = [(one.name, one.cluster, nominal) for one, nominal in writers]
    with installation.ledger.engine.connect() as connection:
        records = PROCESS_ROWS.some(connection, keys)
        read = readings(connection, where, feed, instance)
    states = [records[key].state if key in records else InstanceState.WAITING for key in keys]
    known = {one.key for one in read}
    return FeedInstanceDependencies(
        info,
        tuple((one, nominal, state) for (one, nominal), state in zip(writers, states, strict=True)),
        tuple(read),
        tuple(_future(everywhere, feed, where, instance, known)),
    )


def _cluster(store: EntityStore, name: str, cluster: str | None) -> str:
    clusters = [found.name for found, _ in store.feed_clusters(store.feed(name))]
    if cluster is None and len(clusters) == 1:
        return clusters[0]
    if cluster is None:
        raise UnknownEntityError(
            f"feed {name!r} is on several clusters: say which one with --cluster ({', '.join(clusters)})"
        )
    if cluster not in clusters:
        raise UnknownEntityError(f"feed {name!r} is not on cluster {cluster!r}; it is on: {', '.join(clusters)}")
    return cluster


def _future(store: EntityStore, name: str, cluster: str, instance: datetime, known: set[Key]) -> Iterator[FutureReads]:
    timeline = feed_timeline(store.feed(name), cluster)
    for workload in store.workloads:
        if workload.reads_on != cluster:
            continue
        for declared in workload.inputs:
            if declared.feed != name:
                continue
            if not declared.is_of_times:
                yield FutureReads(workload, declared.name, None)
                continue
            nominals = consumers(declared, workload.timeline, timeline, workload.timezone, instance)
            open_ones = tuple(one for one in nominals if (workload.name, workload.cluster, one) not in known)
            if open_ones:
                yield FutureReads(workload, declared.name, open_ones)
