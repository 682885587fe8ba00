"""Files of workflows, kept for each version of a process and read in parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, tuple_

from falcon_assets.base.durable import sync, sync_tree
from falcon_assets.base.file_locks import locked
from falcon_assets.catalog.workflow_files import WorkflowFile, files_at, parts_of
from falcon_assets.errors import LockedError, StorageError, printable
from falcon_assets.history.database import parts
from falcon_assets.history.tables import FILE_CONTENTS, WORKFLOW_FILES

_CHANGED = "it changed while it was read"
_ODD = "its path cannot be printed"
_OUTSIDE = "its path leads out of the folder of the definitions"


def keep_workflows(connection: Connection, root: Path, of: Mapping[tuple[str, int], Sequence[WorkflowFile]]) -> None:
    """Stores each content once; a file that cannot be stored is recorded with the reason; the caller holds the lock."""
    new = dict(of)
    for known in parts(of):
        own = (WORKFLOW_FILES.c.process, WORKFLOW_FILES.c.version)
        for row in connection.execute(select(*own).where(tuple_(*own).in_(known)).distinct()):
            del new[row.process, row.version]
    problems = {one: _keep(connection, root, one) for one in {one for files in new.values() for one in files}}
    rows = [
        {
            "process": process,
            "version": version,
            "path": printable(one.path),
            "hash": None if problems[one] else one.hash,
            "problem": problems[one],
        }
        for (process, version), files in new.items()
        for one in files
    ]
    if rows:
        connection.execute(insert(WORKFLOW_FILES), rows)


def kept_files(connection: Connection, process: str, version: int) -> list[WorkflowFile]:
    table = WORKFLOW_FILES.c
    found = select(table.path, table.hash, table.problem).where(table.process == process, table.version == version)
    return [WorkflowFile(*row) for row in connection.execute(found.order_by(table.path))]


def without_files(connection: Connection) -> set[tuple[str, int]]:
    """Versions that cannot run again, as some file could not be stored."""
    table = WORKFLOW_FILES.c
    rows = connection.execute(select(table.process, table.version).where(table.hash.is_(None)).distinct())
    return {(row.process, row.version) for row in rows}


def content_parts(connection: Connection, content: str) -> Iterator[bytes]:
    table = FILE_CONTENTS.c
    number = connection.execute(select(func.count()).where(table.hash == content)).scalar_one()
    for part in range(number):
        yield bytes(
            connection.execute(select(table.data).where(table.hash == content, table.number == part)).scalar_one()
        )


def _keep(connection: Connection, root: Path, one: WorkflowFile) -> str:
    """Returns why the file is not stored; empty: it is."""
    problem = one.problem or ("" if one.is_inside else _OUTSIDE) or ("" if one.path.isprintable() else _ODD)
    if problem:
        return problem
    if connection.execute(select(FILE_CONTENTS.c.number).where(FILE_CONTENTS.c.hash == one.hash).limit(1)).first():
        return ""
    with connection.begin_nested() as savepoint:
        digest = sha256()
        try:
            for number, part in enumerate(parts_of(root / one.path)):
                digest.update(part)
                connection.execute(insert(FILE_CONTENTS), {"hash": one.hash, "number": number, "data": part})
        except OSError as error:
            problem = error.strerror or "unreadable"
        if not problem and digest.hexdigest() != one.hash:
            problem = _CHANGED
        if problem:
            savepoint.rollback()
    return problem


_FOLDER = "workflows"
_NEW = ".new"
_DAMAGED = ".damaged"
_PATIENCE_SECONDS = 120.0


def workflow_folder(connection: Connection, home: Path, name: str, files: Sequence[WorkflowFile]) -> Path:
    """The read-only folder of the files, written where it is missing or damaged; raises StorageError.

    It appears complete, also when a process is killed or several write it at once. ``name`` must be the same for the
    same files only.
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
