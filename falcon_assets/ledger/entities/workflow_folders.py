"""Workflows of earlier versions as files again: laid out below FALCON_HOME, in a folder named after their content."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from falcon_assets.catalog.workflow_files import WorkflowFile, files_at
from falcon_assets.durable import sync, sync_tree
from falcon_assets.errors import LockedError, StorageError
from falcon_assets.file_locks import locked
from falcon_assets.ledger.entities.workflow_contents import content_parts

_FOLDER = "workflows"
_NEW = ".new"
_DAMAGED = ".damaged"
_PATIENCE_SECONDS = 120.0


def workflow_folder(connection: Connection, home: Path, name: str, files: Sequence[WorkflowFile]) -> Path:
    """The folder that holds the files, which are for reading only; it is made where it is not there, or is damaged.

    Whoever finds it finds it whole. Several processes may ask at once.

    Args:
        connection: To the contents.
        home: FALCON_HOME.
        name: Of the folder; the same for the same files.
        files: What is to be in it; all of them are kept.

    Raises:
        StorageError: it cannot be written.
    """
    folder = home / _FOLDER / name
    if _is_whole(folder, files):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / ".lock", _PATIENCE_SECONDS, "lays out workflows"):
            if not _is_whole(folder, files):
                _make(connection, folder, files)
    except LockedError as error:
        raise StorageError(str(error)) from error
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return folder


def _make(connection: Connection, folder: Path, files: Sequence[WorkflowFile]) -> None:
    new, damaged = folder.with_name(_NEW), folder.with_name(_DAMAGED)
    for left in (new, damaged):  # of who was killed here
        shutil.rmtree(left, ignore_errors=True)
    new.mkdir()
    for one in files:
        path = new / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for part in content_parts(connection, one.hash or ""):
                file.write(part)
        path.chmod(0o444)
    if not _is_whole(new, files):
        raise StorageError(f"the database does not hold what {', '.join(one.path for one in files)} had in it")
    sync_tree(new)
    if folder.exists():
        folder.rename(damaged)
    new.rename(folder)
    sync(folder.parent)
    shutil.rmtree(damaged, ignore_errors=True)


def _is_whole(folder: Path, files: Sequence[WorkflowFile]) -> bool:
    return folder.is_dir() and all(files_at(folder, one.path) == (one,) for one in files)
