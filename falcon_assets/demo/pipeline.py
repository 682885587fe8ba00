"""Runs the processes of the demo over a span of time, headless, each through a real Dagster run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import dagster as dg
import networkx as nx

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration import names
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.planning.inputs import output_instance
from falcon_assets.planning.paths import InstancePaths
from falcon_assets.planning.process_partitions import ProcessPartitions, process_partitions
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.storage.availability import is_available
from falcon_assets.storage.cluster_store import ClusterStore

RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
"""Dagster's tags of a run over a range of partitions."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class PendingWork:
    """The instances of a process on a cluster that have still to run.

    Attributes:
        process: The process.
        cluster: Where.
        partitions: How its assets are partitioned.
        ranges: First and last partition of each contiguous stretch of them.
        count: How many instances that is.
    """

    process: Process
    cluster: Cluster
    partitions: ProcessPartitions
    ranges: tuple[tuple[datetime, datetime], ...]
    count: int


def pending_work(
    store: EntityStore,
    files: Callable[[Cluster], ClusterStore],
    instance: dg.DagsterInstance,
    first: datetime,
    last: datetime,
) -> Iterator[PendingWork]:
    """What has to run from ``first`` to ``last``: one cluster after the other, producers before consumers.

    An instance is done when Dagster has recorded all its outputs and they are still there.
    """
    order = _in_order(store)
    for cluster in store.clusters.values():
        for process in order:
            if not process.on(cluster.name):
                continue
            partitions = process_partitions(process, cluster.name, store.feeds)
            recorded = _recorded(process, cluster, instance)
            done = [
                (nominal, _is_done(store, process, cluster, partitions, nominal, recorded, files(cluster)))
                for nominal in partitions.nominal.between(first, last)
            ]
            stretches = [
                [partitions.partition_of(nominal) for nominal, _ in stretch]
                for finished, stretch in groupby(done, key=lambda pair: pair[1])
                if not finished
            ]
            ranges = tuple((stretch[0], stretch[-1]) for stretch in stretches)
            yield PendingWork(process, cluster, partitions, ranges, sum(map(len, stretches)))


def run(
    work: PendingWork, definitions: dg.Definitions, instance: dg.DagsterInstance, progress: Callable[[int], None]
) -> None:
    """Runs the pending instances, one Dagster run per contiguous stretch.

    Args:
        work: What to run.
        definitions: The code location.
        instance: Where the runs are recorded.
        progress: Called now and then with the number of instances that were published since it started.

    Raises:
        WorkflowError: a run failed; its text is the failure's.
    """
    job = definitions.resolve_job_def(names.job_name(work.cluster.name, work.process.name))
    watch = _Watch(work, instance, progress)
    with watch:
        for start, end in work.ranges:
            keys = [key_of(work.partitions.timeline, at) for at in (start, end)]
            result = job.execute_in_process(
                instance=instance,
                tags=dict(zip(RANGE_TAGS, keys, strict=True)),
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
            if not result.success:
                raise WorkflowError(_failure(result))


class _Watch:
    """Tells how many instances Dagster has recorded, while a run goes on in another thread."""

    def __init__(self, work: PendingWork, instance: dg.DagsterInstance, progress: Callable[[int], None]) -> None:
        key = names.asset_key(work.cluster.name, work.process.outputs[0].feed)
        newest = instance.fetch_materializations(key, limit=1).records
        self._after = dg.AssetRecordsFilter(key, after_storage_id=newest[0].storage_id if newest else 0)
        self._instance, self._progress, self._limit = instance, progress, work.count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _count(self) -> None:
        if self._limit:
            self._progress(len(self._instance.fetch_materializations(self._after, limit=self._limit).records))

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self._count()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._count()


def _in_order(store: EntityStore) -> list[Process]:
    """The processes, producers before consumers; in the order of the definitions otherwise."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for process in store.processes.values():
        graph.add_node(f"process {process.name}")
        graph.add_edges_from((f"feed {one.feed}", f"process {process.name}") for one in process.inputs)
        graph.add_edges_from((f"process {process.name}", f"feed {one.feed}") for one in process.outputs)
    order = list(nx.lexicographical_topological_sort(graph, key=list(graph).index))
    return [store.processes[node.removeprefix("process ")] for node in order if node.startswith("process ")]


def _recorded(process: Process, cluster: Cluster, instance: dg.DagsterInstance) -> set[str]:
    """The partitions that Dagster has recorded for all outputs."""
    keys = [names.asset_key(cluster.name, output.feed) for output in process.outputs]
    return set.intersection(*(set(instance.get_materialized_partitions(key)) for key in keys))


def _is_done(
    store: EntityStore,
    process: Process,
    cluster: Cluster,
    partitions: ProcessPartitions,
    nominal: datetime,
    recorded: set[str],
    files: ClusterStore,
) -> bool:
    if key_of(partitions.timeline, partitions.partition_of(nominal)) not in recorded:
        return False
    for output in process.outputs:
        feed = store.feeds[output.feed]
        written = output_instance(output, feed_timeline(feed, cluster.name), nominal, process.timezone)
        if written is None or not is_available(files, feed, InstancePaths(feed, cluster).data(written)):
            return False
    return True


def _failure(result: dg.ExecuteInProcessResult) -> str:
    said = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    texts = [one.user_failure_data.description or "" for one in said if one.user_failure_data]
    return "\n".join(texts) or f"run {result.run_id} failed; the UI shows why: make up"
