"""Holes in the texts of processes: what ``${...}`` names must be there when an instance is planned."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.model.template import parse_template
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.instances.process_instance import BUILT_IN
from falcon_assets.planning.windows.interpolate import interpolate


def check_variables(definitions: Definitions) -> Iterator[Problem]:
    """Properties, partitions of inputs and arguments with unknown variables or bad expressions."""
    for process in definitions.processes.values():
        for path, text, names in _texts(process.entity):
            try:
                parse_template(text)
            except ExpressionError as error:
                yield process.problem(path, str(error))
                continue
            for entry in process.entity.clusters:
                cluster = definitions.clusters.get(entry.name)
                message = _message(process.entity, cluster.entity, text, names) if cluster is not None else None
                if message is not None:
                    yield process.problem(path, message)


def _texts(process: Process) -> Iterator[tuple[KeyPath, str, tuple[str, ...]]]:
    """Path, text and the names that the process itself adds to those of its cluster."""
    for key, text in process.properties.items():
        yield ("properties", key), text, ()
    own = tuple(process.properties)
    for index, declared in enumerate(process.inputs):
        if declared.partition is not None:
            yield ("inputs", index, "partition"), declared.partition, own
    feeds = (*(declared.name for declared in process.inputs), *(output.name for output in process.outputs))
    for path, workflow in workflows(process):
        for steps, text in workflow.templates():
            yield (*path, *steps), text, (*own, *feeds)


def workflows(process: Process) -> Iterator[tuple[KeyPath, Workflow]]:
    """The workflow of the process and those of its late inputs, with their keys."""
    yield ("workflow",), process.workflow
    late = process.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        if entry.workflow is not None:
            yield ("late_process", "inputs", index, "workflow"), entry.workflow


def _message(process: Process, cluster: Cluster, text: str, names: tuple[str, ...]) -> str | None:
    """What goes wrong when the text is filled in for the first instance on the cluster."""
    entry = process.on(cluster.name)
    if entry is None or "${" not in text:
        return None
    values = dict.fromkeys((*cluster.variables, *names, *BUILT_IN), "")
    try:
        interpolate(text, values, entry.validity.start, process.timezone, "")
    except ExpressionError as error:
        return f"{error} on cluster {cluster.name!r}"
    return None
