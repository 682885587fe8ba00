"""The files that hold definitions: which ones there are, and what is in them, within limits.

Definitions come from whoever may write into the folder; reading them must not hang, eat the memory or show what
lies elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from falcon_assets.catalog.yaml_files.journal import read_between_changes
from falcon_assets.errors import printable

MAX_FILE_BYTES = 1_000_000
"""Some two thousand entities."""
MAX_FILES = 20_000
MAX_BYTES = 50_000_000
"""Of all files together."""

_SUFFIXES = (".yaml", ".yml")


class UnfitFileError(Exception):
    """A file, or a folder, that is not read; the text is a sentence that says why."""


def definition_files(root: Path, tell: Callable[[Path, str], None]) -> Iterator[tuple[Path, bytes]]:
    """Every ``*.yaml`` and ``*.yml`` below ``root`` in the order of the paths, hidden files and folders left out.

    Args:
        root: The folder.
        tell: Told what is not read, and why.
    """
    total = 0
    for number, path in enumerate(_paths(root, tell)):
        if number == MAX_FILES:
            tell(root, f"there are more than {MAX_FILES:,} files of definitions: the others are not read")
            return
        try:
            raw = file_content(path, root)
        except UnfitFileError as error:
            tell(path, str(error))
            continue
        total += len(raw)
        if total > MAX_BYTES:
            tell(path, f"the files up to this one hold more than {MAX_BYTES:,} bytes: it and the others are not read")
            return
        yield path, raw


def read_contents(root: Path) -> Mapping[Path, bytes] | None:
    """What is in those files between two changes by commands; None where some of it cannot be read.

    Raises:
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    unread: list[Path] = []
    found = read_between_changes(root, lambda: dict(definition_files(root, lambda path, _why: unread.append(path))))
    return None if unread else found


def definition_paths(root: Path) -> Iterator[Path]:
    """Where those files are, :data:`MAX_FILES` at most; what cannot be read is left out."""
    return islice(_paths(root, lambda _path, _why: None), MAX_FILES)


def _paths(root: Path, tell: Callable[[Path, str], None]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        tell(Path(error.filename), f"the folder cannot be read: {error.strerror}")

    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_definition_file(path := Path(folder, name)):
                yield path


def is_definition_file(path: Path) -> bool:
    """Whether a file with that name is one of definitions."""
    return path.name.endswith(_SUFFIXES) and not path.name.startswith(".")


def file_content(path: Path, root: Path) -> bytes:
    """What is in the file.

    Raises:
        UnfitFileError: it cannot be read, is no regular file, leads out of ``root`` or is too large.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(root.resolve()):
            raise UnfitFileError("the link leads out of the folder of the definitions: what it leads to is not read")
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself, before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "it is a link to itself"
        raise UnfitFileError(f"the file cannot be read: {reason}") from error
    return plain_content(path)


def plain_content(path: Path) -> bytes:
    """What is in a file that somebody named.

    Raises:
        UnfitFileError: it cannot be read, is no regular file or is too large.
    """
    try:
        # Not blocking: opening a pipe would wait for somebody who writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnfitFileError("it is not a plain file")
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnfitFileError(f"the file cannot be read: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise UnfitFileError(f"the file has more than {MAX_FILE_BYTES:,} bytes: divide it")
    return raw


def shown_path(path: Path) -> str:
    """The path relative to the working directory where it lies below it, else absolute; on one line, in UTF-8."""
    absolute = path.absolute()
    try:
        text = str(absolute.relative_to(Path.cwd()))
    except ValueError:
        text = str(absolute)
    return printable(text)
