"""Workflows: their files exist below the entity root, and the texts handed to them can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.documents import KeyPath, shown_path
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.process import Process
from falcon_assets.model.template import parse_template
from falcon_assets.model.workflow import SparkSubmitWorkflow, Workflow


def check_workflows(definitions: Definitions) -> Iterator[Problem]:
    """Missing workflow files, files outside of the root, and templates with mistakes in arguments and properties."""
    root = definitions.root.resolve()
    verdicts: dict[str, str | None] = {}
    for process in definitions.processes.values():
        for path, workflow in _workflows(process.entity):
            if workflow.path is not None:
                if workflow.path not in verdicts:
                    verdicts[workflow.path] = _file_problem(definitions.root, root, workflow.path)
                message = verdicts[workflow.path]
                if message is not None:
                    yield process.problem((*path, "path"), message)
            if isinstance(workflow, SparkSubmitWorkflow):
                for index, text in enumerate(workflow.args):
                    yield from _unreadable(process, (*path, "args", index), text)
        for key, text in process.entity.properties.items():
            yield from _unreadable(process, ("properties", key), text)


def _workflows(process: Process) -> Iterator[tuple[KeyPath, Workflow]]:
    yield ("workflow",), process.workflow
    late = process.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        if entry.workflow is not None:
            yield ("late_process", "inputs", index, "workflow"), entry.workflow


def _file_problem(shown_root: Path, root: Path, path: str) -> str | None:
    try:
        target = (root / path).resolve()
        if not target.is_relative_to(root):
            return f"{path!r} leads out of the folder of the entity definitions, {shown_path(shown_root)}"
        if not target.is_file():
            return f"{path!r} is not a file in the folder of the entity definitions, {shown_path(shown_root)}"
    except (OSError, ValueError, RuntimeError):
        return f"{path!r} is not a legal path"
    return None


def _unreadable(process: Declared[Process], path: KeyPath, text: str) -> Iterator[Problem]:
    try:
        parse_template(text)
    except ExpressionError as error:
        yield process.problem(path, str(error))
