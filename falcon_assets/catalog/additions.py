"""Checks of definitions that are about to be written, and paths for their files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from falcon_assets.catalog.checks import check_all
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.catalog.yaml_files.documents import Files
from falcon_assets.errors import DefinitionStoreError, Problem
from falcon_assets.settings import Settings

_FOLDERS = {
    "cluster": "clusters",
    "datasource": "datasources",
    "flow": "flows",
    "feed": "feeds",
    "process": "processes",
}


def require_changeable(settings: Settings, instead: str) -> None:
    """Checks that commands may change the definitions.

    Raises:
        DefinitionStoreError: they may not; the text ends with what to do ``instead``.
    """
    if settings.read_only:
        where = f"{shown_path(settings.entity_defs)} is deployed by something else"
        raise DefinitionStoreError(f"FALCON_ENTITY_DEFS_READONLY is set: {where}; {instead}")


def why_unwritable(root: Path) -> str | None:
    """Why the definitions cannot be changed, as far as the system says it before one tries; None: they can."""
    try:
        if not os.access(root, os.W_OK, effective_ids=True):
            return f"the definitions in {root} can only be read: entities cannot be changed"
        full = os.statvfs(root).f_bavail == 0
    except OSError:  # they are missing, which is no obstacle
        return None
    return f"the disk of the definitions in {root} is full: entities cannot be changed" if full else None


def problems_of(root: Path, files: Files, workflows: Iterable[str] = ()) -> list[Problem]:
    """Returns the problems that ``falcon validate`` would report, unordered; ``workflows`` would be written as well."""
    definitions, problems = parse_documents(root, files)
    problems += check_all(replace(definitions, files_to_come=frozenset(workflows)))
    return problems


def free_path(root: Path, kind: str, name: str, taken: Iterable[Path]) -> Path:
    folder, number = root / _FOLDERS[kind], 1
    path = folder / f"{name}.yaml"
    while path in taken or os.path.lexists(path):
        number += 1
        path = folder / f"{name}-{number}.yaml"
    return path
