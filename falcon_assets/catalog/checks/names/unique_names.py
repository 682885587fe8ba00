"""Names that must differ: entities of a kind, clusters of an entity, inputs and outputs, sub-partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from falcon_assets.catalog.declared import Declared, Definitions, cluster_names
from falcon_assets.catalog.yaml_files.documents import KeyPath, key_path_text
from falcon_assets.errors import Problem
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


def check_unique_names(definitions: Definitions) -> Iterator[Problem]:
    """Names that are taken already, each with the place that took it."""
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
    """Path and name of each repetition, with the path of the first."""
    first: dict[str, KeyPath] = {}
    for path, name in names:
        if name in first:
            yield path, name, first[name]
        first.setdefault(name, path)
