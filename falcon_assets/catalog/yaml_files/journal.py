"""Changes to the files of a tree of definitions: all of them or none, whenever the process is killed.

New contents are first written to a hidden folder of the tree, then listed in one file, the journal. With it the change
is decided: the next process, a command or a load, finishes the rest. Without a journal nothing has happened.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from falcon_assets.base.durable import make_folders, sync
from falcon_assets.base.file_locks import locked
from falcon_assets.catalog.yaml_files.file_changes import AnyChange
from falcon_assets.errors import DefinitionStoreError, LockedError, UnwritableDefinitionsError

T = TypeVar("T")
FOLDER = ".falcon"
"""In the root of the tree; hidden, so that nothing in it is read as a definition."""
_JOURNAL = "journal.json"
_CHANGED = "changed"
_ATTEMPTS = 20
_PATIENCE = 120.0
_PART_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)


@contextmanager
def locked_tree(root: Path) -> Iterator[None]:
    """Excludes other changes of the tree; creates the folder if missing.

    Raises:
        DefinitionStoreError: the tree cannot be written, or other changes take too long.
    """
    try:
        _own_folder(root)
        with locked(root / FOLDER / "lock", _PATIENCE, f"changes {root}"):
            _finish(root)
            yield
    except LockedError as error:
        raise DefinitionStoreError(str(error)) from error
    except OSError as error:
        raise _unwritable(root, error) from error


def apply_changes(root: Path, changes: Sequence[AnyChange], note: dict[str, Any]) -> None:
    """Writes the changes, all or none; the caller holds :func:`locked_tree`.

    ``changes`` has each file once; ``note`` (user, command, reason) is written to the journal.

    Raises:
        DefinitionStoreError: the tree cannot be written; either nothing has changed, or the next process finishes it.
    """
    folder = root / FOLDER
    files = [
        {
            "path": os.fsdecode(change.path.relative_to(root)),
            "before": change.before_hash,
            "after": change.after_hash,
        }
        for change in changes
    ]
    try:
        for number, change in enumerate(changes):
            if change.after_hash is not None:
                _write(_staged(root, number), change.parts(), like=change.path)
        new = folder / f"{_JOURNAL}.new"
        _write(new, [json.dumps({**note, "files": files}, indent=2).encode()], like=None)
        sync(folder)
        new.replace(folder / _JOURNAL)
        sync(folder)
        _finish(root)
    except OSError as error:
        raise _unwritable(root, error) from error


def finish_journal(root: Path) -> None:
    """Finishes a change whose process was killed; waits for one in progress. Raises as :func:`locked_tree`."""
    if (root / FOLDER / _JOURNAL).exists():
        with locked_tree(root):
            pass


def read_between_changes(root: Path, read: Callable[[], T]) -> T:
    """Repeats ``read`` until the tree did not change meanwhile. Raises as :func:`locked_tree`."""
    for _ in range(_ATTEMPTS):
        finish_journal(root)
        before = _last_change(root)
        found = read()
        if _last_change(root) == before and not (root / FOLDER / _JOURNAL).exists():
            break
    return found


def _last_change(root: Path) -> int:
    try:
        return (root / FOLDER / _CHANGED).stat().st_mtime_ns
    except OSError:
        return 0


def _finish(root: Path) -> None:
    """Does the rest of the journal; removes new contents without a journal."""
    folder = root / FOLDER
    journal = folder / _JOURNAL
    if journal.exists():
        for number, file in enumerate(_noted(journal)):
            _finish_file(root, root / str(file["path"]), _staged(root, number), file)
        (folder / _CHANGED).touch()
        journal.unlink()
        sync(folder)
    for left in [*folder.glob("new-*"), folder / f"{_JOURNAL}.new"]:
        left.unlink(missing_ok=True)


def _noted(journal: Path) -> list[dict[str, str | None]]:
    try:
        files: list[dict[str, str | None]] = json.loads(journal.read_text())["files"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DefinitionStoreError(f"{journal} is damaged: look at the files around it, then remove it") from error
    return files


def _finish_file(root: Path, path: Path, staged: Path, file: dict[str, str | None]) -> None:
    """Skips a file that another program has written since; refuses files outside of the tree."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise DefinitionStoreError(f"{path} is not in {root}: remove {root / FOLDER / _JOURNAL}")
    there = _hash_of(path)
    if there not in (file["before"], file["after"]):
        _LOG.warning("%s was changed by somebody else while a command was interrupted: it is left unchanged", path)
    elif there != file["after"]:
        if file["after"] is None:
            path.unlink()
        else:
            make_folders(path.parent)
            staged.replace(path.resolve())
        sync(path.resolve().parent)


def _own_folder(root: Path) -> None:
    folder = root / FOLDER
    if not folder.is_dir():
        make_folders(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def _write(path: Path, content: Iterable[bytes], like: Path | None) -> None:
    with path.open("wb") as file:
        file.writelines(content)
        if like is not None and like.exists():
            os.fchmod(file.fileno(), like.stat().st_mode & 0o777)
        file.flush()
        os.fsync(file.fileno())


def _staged(root: Path, number: int) -> Path:
    return root / FOLDER / f"new-{number}"


def _hash_of(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(_PART_BYTES):
                digest.update(part)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _unwritable(root: Path, error: OSError) -> UnwritableDefinitionsError:
    return UnwritableDefinitionsError(f"the definitions in {root} cannot be changed: {error.strerror or error}")
