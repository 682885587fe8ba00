"""What has still to run over a span of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import groupby

import dagster as dg
import networkx as nx

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import MissingInputsError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration import names
from falcon_assets.orchestration.instance_run import InstanceRunner
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.planning.inputs import output_instance
from falcon_assets.planning.paths import InstancePaths
from falcon_assets.planning.process_partitions import ProcessPartitions, process_partitions
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.storage.availability import is_available
from falcon_assets.storage.cluster_store import ClusterStore


@dataclass(frozen=True)
class PendingWork:
    """The instances of a process on a cluster that have still to run.

    Attributes:
        process: The process.
        cluster: Where.
        partitions: How its assets are partitioned.
        ranges: First and last partition of each contiguous stretch of those that can run now.
        count: How many instances that is.
        waiting: How many more wait for inputs that are not there.
    """

    process: Process
    cluster: Cluster
    partitions: ProcessPartitions
    ranges: tuple[tuple[datetime, datetime], ...]
    count: int
    waiting: int


class _State(Enum):
    DONE = "done"
    READY = "ready"
    WAITING = "waiting"


def pending_work(
    store: EntityStore,
    files: Callable[[Cluster], ClusterStore],
    instance: dg.DagsterInstance,
    first: datetime,
    last: datetime,
) -> Iterator[PendingWork]:
    """What has to run from ``first`` to ``last``: one cluster after the other, producers before consumers.

    Each is looked at when it is asked for, so what ran before is seen. An instance is done when Dagster has recorded
    all its outputs and they are still there.
    """
    order = _in_order(store)
    for cluster in store.clusters.values():
        for process in order:
            if process.on(cluster.name):
                yield _Look(store, files(cluster), process, cluster, instance).pending(first, last)


class _Look:
    """Looks at one process on one cluster."""

    def __init__(
        self, store: EntityStore, files: ClusterStore, process: Process, cluster: Cluster, instance: dg.DagsterInstance
    ) -> None:
        self.store, self.files, self.process, self.cluster = store, files, process, cluster
        self.partitions = process_partitions(process, cluster.name, store.feeds)
        self.runner = InstanceRunner(process, cluster, store.feeds, files, store.root, user="")
        keys = [names.asset_key(cluster.name, output.feed) for output in process.outputs]
        self.recorded = set.intersection(*(set(instance.get_materialized_partitions(key)) for key in keys))

    def pending(self, first: datetime, last: datetime) -> PendingWork:
        states = [(self._state(nominal), nominal) for nominal in self.partitions.nominal.between(first, last)]
        stretches = [
            [self.partitions.partition_of(nominal) for _, nominal in stretch]
            for state, stretch in groupby(states, key=lambda pair: pair[0])
            if state is _State.READY
        ]
        return PendingWork(
            self.process,
            self.cluster,
            self.partitions,
            ranges=tuple((stretch[0], stretch[-1]) for stretch in stretches),
            count=sum(map(len, stretches)),
            waiting=sum(state is _State.WAITING for state, _ in states),
        )

    def _state(self, nominal: datetime) -> _State:
        key = key_of(self.partitions.timeline, self.partitions.partition_of(nominal))
        if key in self.recorded and self._outputs_are_there(nominal):
            return _State.DONE
        try:
            self.runner.prepare(nominal)
        except MissingInputsError:
            return _State.WAITING
        return _State.READY

    def _outputs_are_there(self, nominal: datetime) -> bool:
        for output in self.process.outputs:
            feed = self.store.feeds[output.feed]
            timeline = feed_timeline(feed, self.cluster.name)
            written = output_instance(output, timeline, nominal, self.process.timezone)
            if written is None or not is_available(self.files, feed, InstancePaths(feed, self.cluster).data(written)):
                return False
        return True


def _in_order(store: EntityStore) -> list[Process]:
    """The processes, producers before consumers; in the order of the definitions otherwise."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for process in store.processes.values():
        graph.add_node(f"process {process.name}")
        graph.add_edges_from((f"feed {one.feed}", f"process {process.name}") for one in process.inputs)
        graph.add_edges_from((f"process {process.name}", f"feed {one.feed}") for one in process.outputs)
    order = list(nx.lexicographical_topological_sort(graph, key=list(graph).index))
    return [store.processes[node.removeprefix("process ")] for node in order if node.startswith("process ")]
