"""Checks of names: unique, known, and distinct in Dagster's spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from falcon_assets.catalog.declared import Declared, Definitions, cluster_names, transfers_of
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.catalog.yaml_files.documents import KeyPath, key_path_text
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.process import Process
from falcon_assets.model.transfer import Import
from falcon_assets.planning.compactions import compaction_on
from falcon_assets.planning.dagster_names import compaction_work, job_name, op_name, replication_work, source_collector
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload, exports_on, import_on
from falcon_assets.planning.workloads import compaction_pipeline, replication_pipeline


class _Claim(NamedTuple):
    name: str
    what: str
    declared: Declared[Cluster] | Declared[Feed] | Declared[Process]
    path: KeyPath


def check_dagster_names(definitions: Definitions) -> Iterator[Problem]:
    """Names in Dagster that two entities need, each once, with the place of the other."""
    yield from _met(_sensors(definitions))
    yield from _met(_jobs(definitions))
    yield from _met(_assets(definitions))


def _met(claims: Iterator[_Claim]) -> Iterator[Problem]:
    first: dict[str, _Claim] = {}
    reported = set[tuple[str, str]]()
    for claim in claims:
        other = first.setdefault(claim.name, claim)
        if other.what != claim.what and (claim.what, other.what) not in reported:
            reported.add((claim.what, other.what))
            where = other.declared.document.position(other.path)
            message = f"{claim.what} needs the name {claim.name!r} in Dagster, as {other.what} at {where} does"
            yield claim.declared.problem(claim.path, f"{message}: rename one of them")


def _sensors(definitions: Definitions) -> Iterator[_Claim]:
    for cluster in definitions.clusters.values():
        name = cluster.entity.name
        for sensor in (op_name(name, "collector"), source_collector(name)):
            yield _Claim(sensor, f"cluster {name!r}", cluster, ("name",))
    for feed in definitions.feeds.values():
        for index, entry in enumerate(feed.entity.clusters):
            if entry.type == "target":
                name = op_name(replication_pipeline(entry.name), "coordinator")
                what = f"the replication to cluster {entry.name!r}"
                yield _Claim(name, what, feed, ("clusters", index, "name"))
            elif compaction_on(feed.entity, entry.name):
                name = op_name(compaction_pipeline(entry.name), "coordinator")
                yield _Claim(name, f"compaction on cluster {entry.name!r}", feed, ("compact",))
            for transfer, path in _transfers(feed.entity, index, entry):
                name = op_name(transfer.pipelines[0], "coordinator")
                where = f"in queue {transfer.queue!r}" if transfer.queue else f"on cluster {entry.name!r}"
                yield _Claim(name, f"transfers {where}", feed, path)
    for process in definitions.processes.values():
        pipeline = process.entity.pipelines[0]
        yield _Claim(op_name(pipeline, "coordinator"), f"pipeline {pipeline!r}", process, ("pipelines", 0))


def _jobs(definitions: Definitions) -> Iterator[_Claim]:
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            yield from _job(entry.name, process.entity.name, f"process {process.entity.name!r}", process)
    for feed in definitions.feeds.values():
        for index, target in enumerate(feed.entity.clusters):
            for transfer, path in _transfers(feed.entity, index, target):
                what = f"the {transfer.kind} {transfer.name!r}"
                for name in (transfer.op_name, transfer.job_name):
                    yield _Claim(name, what, feed, path)
            if target.type == "target":
                work = replication_work(feed.entity.name)
                yield from _job(target.name, work, f"the replication of feed {feed.entity.name!r}", feed)
            elif compaction_on(feed.entity, target.name):
                work = compaction_work(feed.entity.name)
                yield from _job(target.name, work, f"the compaction of feed {feed.entity.name!r}", feed)


def _transfers(feed: Feed, index: int, entry: FeedCluster) -> Iterator[tuple[ImportWorkload | ExportWorkload, KeyPath]]:
    if imported := import_on(feed, entry):
        yield imported, ("clusters", index, "import")
    for exported in exports_on(feed, entry):
        yield exported, ("clusters", index, "export")


def _assets(definitions: Definitions) -> Iterator[_Claim]:
    effects = [process for process in definitions.processes.values() if not process.entity.outputs]
    called_alike = (definitions.feeds.get(process.entity.name) for process in effects)
    for feed in filter(None, called_alike):
        for there in feed.entity.clusters:
            yield _Claim(f"{there.name}/{feed.entity.name}", f"feed {feed.entity.name!r}", feed, ("name",))
    for feed in definitions.feeds.values():
        yield from _compacted(definitions, feed)
        yield from _exported(definitions, feed)
    for process in effects:
        for entry in process.entity.clusters:
            what = f"process {process.entity.name!r}, which has no outputs,"
            yield _Claim(f"{entry.name}/{process.entity.name}", what, process, ("name",))


def _compacted(definitions: Definitions, feed: Declared[Feed]) -> Iterator[_Claim]:
    work = compaction_work(feed.entity.name)
    other = definitions.feeds.get(work)
    for entry in other.entity.clusters if other else ():
        if other and compaction_on(feed.entity, entry.name):
            asset = f"{entry.name}/{work}"
            yield _Claim(asset, f"feed {work!r}", other, ("name",))
            yield _Claim(asset, f"the compaction of feed {feed.entity.name!r}", feed, ("compact",))


def _exported(definitions: Definitions, feed: Declared[Feed]) -> Iterator[_Claim]:
    for index, entry in enumerate(feed.entity.clusters):
        for export in exports_on(feed.entity, entry):
            asset, path = f"{entry.name}/{export.assets[0]}", ("clusters", index, "export")
            yield _Claim(asset, f"the export {export.name!r}", feed, path)
            other = definitions.feeds.get(export.assets[0])
            if other and other.entity.on(entry.name):
                yield _Claim(asset, f"feed {other.entity.name!r}", other, ("name",))


def _job(cluster: str, work: str, what: str, declared: Declared[Feed] | Declared[Process]) -> Iterator[_Claim]:
    op = op_name(cluster, work)
    for name in (op, job_name(op)):
        yield _Claim(name, what, declared, ("name",))


def check_references(definitions: Definitions) -> Iterator[Problem]:
    """Unknown clusters, datasources, feeds and inputs, and feeds that are not on the cluster of their process."""
    for entity in definitions.clustered():
        yield from _unknown_clusters(definitions, entity)
    for process in definitions.processes.values():
        for path, name in feed_references(process.entity):
            feed = definitions.feeds.get(name)
            if feed is not None:
                yield from _not_there(definitions, process, feed.entity, path)
            elif not definitions.is_unparsed("feed", name):
                yield process.problem(path, unknown_word("feed", name, tuple(definitions.feeds)))
        yield from _unknown_late_inputs(process)
    for feed in definitions.feeds.values():
        for path, transfer in transfers_of(feed):
            end, key = (transfer.source, "source") if isinstance(transfer, Import) else (transfer.target, "target")
            if end.name not in definitions.datasources and not definitions.is_unparsed("datasource", end.name):
                message = unknown_word("datasource", end.name, tuple(definitions.datasources))
                yield feed.problem((*path, key, "name"), message)


def feed_references(process: Process) -> Iterator[tuple[KeyPath, str]]:
    """Yields key and feed of all inputs and outputs."""
    for index, declared in enumerate(process.inputs):
        yield ("inputs", index, "feed"), declared.feed
    for index, output in enumerate(process.outputs):
        yield ("outputs", index, "feed"), output.feed


def _unknown_clusters(definitions: Definitions, entity: Declared[Feed] | Declared[Process]) -> Iterator[Problem]:
    for index, name in enumerate(cluster_names(entity.entity)):
        if name not in definitions.clusters and not definitions.is_unparsed("cluster", name):
            message = unknown_word("cluster", name, tuple(definitions.clusters))
            yield entity.problem(("clusters", index, "name"), message)


def _not_there(definitions: Definitions, process: Declared[Process], feed: Feed, path: KeyPath) -> Iterator[Problem]:
    for entry in process.entity.clusters:
        if entry.name in definitions.clusters and feed.on(entry.name) is None:
            there = ", ".join(cluster.name for cluster in feed.clusters)
            message = f"feed {feed.name!r} is not on cluster {entry.name!r}, where this process runs; it is on {there}"
            yield process.problem(path, message)


def _unknown_late_inputs(process: Declared[Process]) -> Iterator[Problem]:
    late = process.entity.late_process
    names = tuple(declared.name for declared in process.entity.inputs)
    for index, entry in enumerate(late.inputs if late else ()):
        if entry.input not in names:
            path = ("late_process", "inputs", index, "input")
            yield process.problem(path, unknown_word("input", entry.input, names))


def check_unique_names(definitions: Definitions) -> Iterator[Problem]:
    """Names that are declared twice, with the place of the first."""
    for document, first in definitions.again:
        kind, name = document.data["kind"], document.data["name"]
        yield document.problem(("name",), f"{kind} {name!r} is already defined at {first.position(('name',))}")
    for entity in definitions.clustered():
        clusters = [(("clusters", index, "name"), name) for index, name in enumerate(cluster_names(entity.entity))]
        for path, name, first_path in _repeated(clusters):
            yield entity.problem(path, f"cluster {name!r} is listed twice, first in {_line(entity, first_path)}")
    for feed in definitions.feeds.values():
        parts = [(("partitions", index), name) for index, name in enumerate(feed.entity.partitions)]
        for path, name, first_path in _repeated(parts):
            yield feed.problem(path, f"partition {name!r} is declared twice, first in {_line(feed, first_path)}")
    for process in definitions.processes.values():
        for path, name, first_path in _repeated(_variables(process.entity)):
            taken = f"{key_path_text(first_path)} in {_line(process, first_path)}"
            message = f"the name {name!r} is taken by {taken}: inputs and outputs share one set of names"
            yield process.problem(path, message)
        late = process.entity.late_process
        entries = [(("late_process", "inputs", i, "input"), e.input) for i, e in enumerate(late.inputs if late else ())]
        for path, name, first_path in _repeated(entries):
            yield process.problem(path, f"input {name!r} is listed twice, first in {_line(process, first_path)}")


def _variables(process: Process) -> list[tuple[KeyPath, str]]:
    inputs: list[tuple[KeyPath, str]] = [(("inputs", i, "name"), entry.name) for i, entry in enumerate(process.inputs)]
    return [*inputs, *((("outputs", i, "name"), entry.name) for i, entry in enumerate(process.outputs))]


def _line(entity: Declared[Feed] | Declared[Process], path: KeyPath) -> str:
    return f"line {entity.document.position(path).line}"


def _repeated(names: Iterable[tuple[KeyPath, str]]) -> Iterator[tuple[KeyPath, str, KeyPath]]:
    first: dict[str, KeyPath] = {}
    for path, name in names:
        if name in first:
            yield path, name, first[name]
        first.setdefault(name, path)
