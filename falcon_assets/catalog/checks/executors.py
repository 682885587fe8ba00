"""Checks of the executors of clusters."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.planning.capabilities import needs_of
from falcon_assets.planning.workloads import ProcessWorkload


def check_executors(definitions: Definitions) -> Iterator[Problem]:
    """Executors of one name, and processes that no executor of a cluster ever takes."""
    for cluster in definitions.clusters.values():
        first = set[str]()
        for index, one in enumerate(cluster.entity.executors):
            if one.name in first:
                yield cluster.problem(("executors", index, "name"), f"another executor is called {one.name!r}")
            first.add(one.name)
    for process in definitions.processes.values():
        for index, entry in enumerate(process.entity.clusters):
            there = definitions.clusters.get(entry.name)
            if there is not None and there.entity.executors and (why := _why_none(definitions, process, there)):
                yield process.warning(("clusters", index, "name"), f"no executor of cluster {entry.name!r} {why}")


def _why_none(definitions: Definitions, process: Declared[Process], cluster: Declared[Cluster]) -> str | None:
    entity = process.entity
    names = {*(one.feed for one in entity.inputs), *(one.feed for one in entity.outputs)}
    if names - definitions.feeds.keys():
        return None
    feeds = {name: definitions.feeds[name].entity for name in names}
    workload = ProcessWorkload(entity, cluster.entity.name, feeds)
    needs = needs_of(workload, {cluster.entity.name: cluster.entity}, {})
    if needs is None:
        return None
    able = [one for one in cluster.entity.executors if one.capabilities is None or needs <= {*one.capabilities}]
    if not able:
        missing = " and ".join(f"{source} to {target}" for source, target in sorted(needs))
        return f"can move data from {missing}: its instances wait for ever"
    if all(one.queue not in (None, workload.queue) for one in able):
        queue = f"takes work of the queue {workload.queue!r}" if workload.queue else "takes work without a queue"
        return f"{queue}: its instances wait for ever"
    return None
