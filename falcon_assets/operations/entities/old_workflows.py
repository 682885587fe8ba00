"""The files of workflows of an earlier version of a process, beside those that are in the tree now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from falcon_assets.catalog.workflow_files import files_at, parts_of
from falcon_assets.catalog.yaml_files.documents import shown_path
from falcon_assets.catalog.yaml_files.file_changes import WorkflowChange
from falcon_assets.errors import DefinitionStoreError, Position, Problem
from falcon_assets.ledger.entities.workflow_contents import content_parts, kept_files


def old_workflows(
    engine: Engine, root: Path, process: str, version: int
) -> tuple[list[WorkflowChange], list[Problem], list[str]]:
    """What gives the files of a version the content that they had, those that were not kept, and all that were.

    Args:
        engine: The database with the contents.
        root: The folder of the definitions.
        process: Whose workflows.
        version: Of its definition.

    Raises:
        DefinitionStoreError: something else is where a file was.
    """
    with engine.connect() as connection:
        files = kept_files(connection, process, version)
    unkept = [
        Problem(
            Position(shown_path(root / one.path), 1),
            "",
            f"it was not kept with version {version} ({one.problem}): it stays as it is",
            is_warning=True,
        )
        for one in files
        if one.hash is None
    ]
    kept = {one.path: one.hash for one in files if one.hash}
    copies = [_copy(engine, root, path, content) for path, content in kept.items()]
    return [one for one in copies if one.before_hash != one.after_hash], unkept, list(kept)


def _copy(engine: Engine, root: Path, path: str, content: str) -> WorkflowChange:
    target = root / path
    if not target.resolve().is_relative_to(root.resolve()) or (target.exists() and not target.is_file()):
        raise DefinitionStoreError(f"{shown_path(target)} is no file of the tree: move it away, the workflow was there")
    (now,) = files_at(root, path)
    if now.hash is None and target.exists():
        raise DefinitionStoreError(f"{shown_path(target)} cannot be read: {now.problem}")
    before = partial(parts_of, target) if now.hash else None
    return WorkflowChange(target, now.hash, content, before, partial(_parts, engine, content))


def _parts(engine: Engine, content: str) -> Iterator[bytes]:
    with engine.connect() as connection:
        yield from content_parts(connection, content)
