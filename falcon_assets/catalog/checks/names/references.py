"""Names of other entities: they must exist, and be where they are needed."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions, cluster_names
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


def check_references(definitions: Definitions) -> Iterator[Problem]:
    """Unknown clusters, feeds and inputs, and feeds that are not on the cluster of their process."""
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


def feed_references(process: Process) -> Iterator[tuple[KeyPath, str]]:
    """Where a process names a feed, inputs first, and the name."""
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
