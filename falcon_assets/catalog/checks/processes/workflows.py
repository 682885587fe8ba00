"""Workflows: their files exist below the entity root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from falcon_assets.catalog.checks.processes.variables import workflows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.catalog.yaml_files.documents import shown_path
from falcon_assets.errors import Problem
from falcon_assets.model.process import Process

LIB_SUFFIXES = (".jar", ".py", ".zip", ".egg")


def check_workflows(definitions: Definitions) -> Iterator[Problem]:
    """Missing workflow files, and files outside of the root."""
    root = definitions.root.resolve()
    verdicts: dict[str, str | None] = dict.fromkeys(definitions.files_to_come)
    libs: dict[str, str | None] = dict.fromkeys(definitions.files_to_come)
    for process in definitions.processes.values():
        for path, workflow in workflows(process.entity):
            for key, file in workflow.files().items():
                if file not in verdicts:
                    verdicts[file] = _file_problem(definitions.root, root, file)
                message = verdicts[file]
                if message is not None:
                    yield process.problem((*path, key), message)
            for index, lib in enumerate(workflow.lib):
                if lib not in libs:
                    libs[lib] = _lib_problem(definitions.root, root, lib)
                message = libs[lib]
                if message is not None:
                    yield process.problem((*path, "lib", index), message)


def have_files(root: Path, processes: Iterable[Process]) -> bool:
    """Whether the workflows of processes that had no problem have their files still."""
    resolved = root.resolve()
    found = [workflow for process in processes for _, workflow in workflows(process)]
    files = dict.fromkeys(file for one in found for file in one.files().values())
    libs = dict.fromkeys(lib for one in found for lib in one.lib)
    asked = (*((_file_problem, one) for one in files), *((_lib_problem, one) for one in libs))
    return all(problem(root, resolved, path) is None for problem, path in asked)


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


def _lib_problem(shown_root: Path, root: Path, path: str) -> str | None:
    try:
        if (root / path).is_dir() and (root / path).resolve().is_relative_to(root):
            files = [one.name for one in (root / path).iterdir() if one.suffix in LIB_SUFFIXES]
            return None if files else f"there is no jar and no Python file in the folder {path!r}"
    except (OSError, ValueError, RuntimeError):
        return f"{path!r} is not a legal path"
    if "," in path:
        return f"{path!r} has a comma, which spark-submit takes for the end of it"
    message = _file_problem(shown_root, root, path)
    if message is None and Path(path).suffix not in LIB_SUFFIXES:
        return f"{path!r} is neither a jar nor Python: write {', '.join(LIB_SUFFIXES)}, or a folder of them"
    return message
