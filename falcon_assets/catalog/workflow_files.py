"""The files of workflows of processes, and their contents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath

from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.model.process import Process
from falcon_assets.model.workflow import Workflow

PART_BYTES = 1 << 20
_COMPILED = "__pycache__"
LIB_SUFFIXES = (".jar", ".py", ".zip", ".egg")


@dataclass(frozen=True)
class WorkflowFile:
    """A file of a workflow; its path is relative to the root of the definitions.

    ``hash`` is the SHA-256 of its content; None: it cannot be read, for the reason in ``problem``.
    """

    path: str
    hash: str | None
    problem: str = ""

    @property
    def said(self) -> str:
        return self.hash or self.problem

    @property
    def is_inside(self) -> bool:
        """Whether the path stays within any folder that it is appended to."""
        path = PurePosixPath(os.path.normpath(self.path))
        return not path.is_absolute() and ".." not in path.parts


def declared_paths(process: Process) -> tuple[str, ...]:
    """Returns the files and folders that the workflows of the process name, including those for late data."""
    late = process.late_process.inputs if process.late_process else ()
    workflows = [process.workflow, *(one.workflow for one in late if one.workflow)]
    return tuple(sorted({file for one in workflows for file in (*one.files().values(), *one.lib)}))


def files_at(root: Path, declared: str) -> tuple[WorkflowFile, ...]:
    path = root / declared
    if not path.is_dir():
        return (_file(path, declared),)
    return tuple(_file(file, f"{declared.rstrip('/')}/{file.relative_to(path)}") for file in sorted(_files_in(path)))


def hash_at(root: Path, declared: str, files: Iterable[WorkflowFile]) -> str:
    """Returns the hash of the files of :func:`files_at`: of a single file its own, else a combined one."""
    if (root / declared).is_dir():
        skipped = len(declared.rstrip("/")) + 1
        return combined(f"{one.path[skipped:]}\0{one.said}" for one in files)
    return "".join(one.said for one in files)


def combined(lines: Iterable[str]) -> str:
    return sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def parts_of(path: Path) -> Iterator[bytes]:
    """Yields the content of a file in parts, at least one.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        yield file.read(PART_BYTES)
        while part := file.read(PART_BYTES):
            yield part


def _files_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one != _COMPILED]
        yield from (Path(parent, name) for name in names)


def _file(path: Path, name: str) -> WorkflowFile:
    try:
        if not path.is_file():  # a pipe would be waited for
            return WorkflowFile(name, None, "no file")
        with path.open("rb") as file:
            return WorkflowFile(name, file_digest(file, "sha256").hexdigest())
    except OSError as error:
        return WorkflowFile(name, None, error.strerror or "unreadable")


def workflows(process: Process) -> Iterator[tuple[tuple[str | int, ...], Workflow]]:
    """Yields the workflow of the process and those of its late inputs, with their keys."""
    yield ("workflow",), process.workflow
    late = process.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        if entry.workflow is not None:
            yield ("late_process", "inputs", index, "workflow"), entry.workflow


@dataclass(frozen=True)
class WorkflowPaths:
    files: tuple[str, ...]
    libs: tuple[str, ...]

    def are_there(self, root: Path) -> bool:
        """Whether all of them, which had no problem once, still have none."""
        resolved = root.resolve()
        asked = (*((file_problem, one) for one in self.files), *((lib_problem, one) for one in self.libs))
        return all(problem(root, resolved, path) is None for problem, path in asked)


def workflow_paths(processes: Iterable[Process]) -> WorkflowPaths:
    found = [workflow for process in processes for _, workflow in workflows(process)]
    return WorkflowPaths(
        tuple(dict.fromkeys(file for one in found for file in one.files().values())),
        tuple(dict.fromkeys(lib for one in found for lib in one.lib)),
    )


def file_problem(shown_root: Path, root: Path, path: str) -> str | None:
    """Returns the problem of a file's path, relative to the root; None: there is none."""
    try:
        target = (root / path).resolve()
        if not target.is_relative_to(root):
            return f"{path!r} points outside the folder of the entity definitions, {shown_path(shown_root)}"
        if not target.is_file():
            return f"{path!r} is not a file in the folder of the entity definitions, {shown_path(shown_root)}"
    except (OSError, ValueError, RuntimeError):
        return f"{path!r} is not a legal path"
    return None


def lib_problem(shown_root: Path, root: Path, path: str) -> str | None:
    """As :func:`file_problem`, for a library or a folder of libraries."""
    try:
        if (root / path).is_dir() and (root / path).resolve().is_relative_to(root):
            files = [one.name for one in (root / path).iterdir() if one.suffix in LIB_SUFFIXES]
            return None if files else f"there is no jar and no Python file in the folder {path!r}"
    except (OSError, ValueError, RuntimeError):
        return f"{path!r} is not a legal path"
    if "," in path:
        return f"{path!r} has a comma, which spark-submit takes for the end of it"
    message = file_problem(shown_root, root, path)
    if message is None and Path(path).suffix not in LIB_SUFFIXES:
        return f"{path!r} is neither a jar nor Python: write {', '.join(LIB_SUFFIXES)}, or a folder of them"
    return message
