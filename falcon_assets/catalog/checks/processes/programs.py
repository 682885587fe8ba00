"""Programs of workflows: what is wrong with them is known before the first instance."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.processes.variables import workflows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.catalog.yaml_files.documents import shown_path
from falcon_assets.errors import Position, Problem
from falcon_assets.model.process import Process
from falcon_assets.planning.instances.process_instance import BUILT_IN


def check_programs(definitions: Definitions) -> Iterator[Problem]:
    """Mistakes in SQL and Python; what may work nevertheless is a warning.

    Every file is read and parsed, so this is for who asks, and not for everything that loads definitions.
    """
    told: set[Problem] = set()
    for process in definitions.processes.values():
        views = [one.name for one in process.entity.inputs]
        parameters = _parameters(process.entity, definitions)
        for _, workflow in workflows(process.entity):
            try:
                found = list(workflow.mistakes(definitions.root, views, parameters))
            except OSError:  # another check says so
                continue
            for file, one in found:
                path = definitions.root / file
                lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
                snippet = lines[one.line - 1] if one.line <= len(lines) else ""
                position = Position(shown_path(path), one.line, one.column)
                problem = Problem(position, "", one.message, snippet, not one.is_certain, one.is_doubt)
                if problem not in told:  # processes may share a file
                    told.add(problem)
                    yield problem


def _parameters(process: Process, definitions: Definitions) -> set[str]:
    """The variables that it has on any of its clusters and that a statement can name."""
    clusters = [definitions.clusters[one.name].entity for one in process.clusters if one.name in definitions.clusters]
    names = {*BUILT_IN, *process.properties, *(name for one in clusters for name in one.variables)}
    return {name for name in names if name.isascii() and name.isidentifier()}
