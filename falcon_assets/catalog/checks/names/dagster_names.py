"""Names that differ here and not in Dagster: of clusters, of pipelines, and of what runs on one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.instances.dagster_names import job_name, op_name, replication_work
from falcon_assets.planning.workloads.replication_workload import replication_pipeline


class _Claim(NamedTuple):
    """A name in Dagster, and what needs it."""

    name: str
    what: str
    declared: Declared[Cluster] | Declared[Feed] | Declared[Process]
    path: KeyPath


def check_dagster_names(definitions: Definitions) -> Iterator[Problem]:
    """Names in Dagster that two things need, each once, with the place of the other."""
    yield from _met(_sensors(definitions))
    yield from _met(_jobs(definitions))
    yield from _met(_assets(definitions))


def _met(claims: Iterator[_Claim]) -> Iterator[Problem]:
    first: dict[str, _Claim] = {}
    told = set[tuple[str, str]]()
    for claim in claims:
        other = first.setdefault(claim.name, claim)
        if other.what != claim.what and (claim.what, other.what) not in told:
            told.add((claim.what, other.what))
            where = other.declared.document.position(other.path)
            message = f"{claim.what} needs the name {claim.name!r} in Dagster, as {other.what} at {where} does"
            yield claim.declared.problem(claim.path, f"{message}: rename one of them")


def _sensors(definitions: Definitions) -> Iterator[_Claim]:
    """What is named after clusters and pipelines; Spark's resources are as well."""
    for cluster in definitions.clusters.values():
        name = cluster.entity.name
        yield _Claim(op_name(name, "collector"), f"cluster {name!r}", cluster, ("name",))
    for feed in definitions.feeds.values():
        for index, entry in enumerate(feed.entity.clusters):
            if entry.type == "target":
                name = op_name(replication_pipeline(entry.name), "coordinator")
                what = f"the replication to cluster {entry.name!r}"
                yield _Claim(name, what, feed, ("clusters", index, "name"))
    for process in definitions.processes.values():
        pipeline = process.entity.pipelines[0]
        yield _Claim(op_name(pipeline, "coordinator"), f"pipeline {pipeline!r}", process, ("pipelines", 0))


def _jobs(definitions: Definitions) -> Iterator[_Claim]:
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            yield from _job(entry.name, process.entity.name, f"process {process.entity.name!r}", process)
    for feed in definitions.feeds.values():
        for target in feed.entity.clusters:
            if target.type == "target":
                work = replication_work(feed.entity.name)
                yield from _job(target.name, work, f"the replication of feed {feed.entity.name!r}", feed)


def _assets(definitions: Definitions) -> Iterator[_Claim]:
    """The assets of processes without outputs, and of the feeds that are called like one."""
    effects = [process for process in definitions.processes.values() if not process.entity.outputs]
    called_alike = (definitions.feeds.get(process.entity.name) for process in effects)
    for feed in filter(None, called_alike):
        for there in feed.entity.clusters:
            yield _Claim(f"{there.name}/{feed.entity.name}", f"feed {feed.entity.name!r}", feed, ("name",))
    for process in effects:
        for entry in process.entity.clusters:
            what = f"process {process.entity.name!r}, which has no outputs,"
            yield _Claim(f"{entry.name}/{process.entity.name}", what, process, ("name",))


def _job(cluster: str, work: str, what: str, declared: Declared[Feed] | Declared[Process]) -> Iterator[_Claim]:
    op = op_name(cluster, work)
    for name in (op, job_name(op)):
        yield _Claim(name, what, declared, ("name",))
