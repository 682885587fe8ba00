"""Finds and reads definition files, within limits.

Any user with access to the folder may write definitions: reading them must not hang, exhaust memory or disclose other
files.
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
MAX_FILES = 20_000
MAX_BYTES = 50_000_000
"""Of all files together."""

_SUFFIXES = (".yaml", ".yml")


class UnfitFileError(Exception):
    """A file or folder that is not read; the text is a sentence with the reason."""


def definition_files(root: Path, report: Callable[[Path, str], None]) -> Iterator[tuple[Path, bytes]]:
    """Yields every ``*.yaml`` and ``*.yml`` below ``root`` in the order of the paths, except hidden files and folders.

    ``report`` receives the path of what is not read, and the reason.
    """
    total = 0
    for number, path in enumerate(_paths(root, report)):
        if number == MAX_FILES:
            report(root, f"there are more than {MAX_FILES:,} files of definitions: the others are not read")
            return
        try:
            raw = file_content(path, root)
        except UnfitFileError as error:
            report(path, str(error))
            continue
        total += len(raw)
        if total > MAX_BYTES:
            report(path, f"the files up to this one hold more than {MAX_BYTES:,} bytes: it and the others are not read")
            return
        yield path, raw


def read_contents(root: Path) -> Mapping[Path, bytes] | None:
    """Returns the contents of these files between two changes by commands; None: some cannot be read.

    Raises:
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    unread: list[Path] = []
    found = read_between_changes(root, lambda: dict(definition_files(root, lambda path, _why: unread.append(path))))
    return None if unread else found


def definition_paths(root: Path) -> Iterator[Path]:
    """Yields the paths of these files, :data:`MAX_FILES` at most, without unreadable folders."""
    return islice(_paths(root, lambda _path, _why: None), MAX_FILES)


def _paths(root: Path, report: Callable[[Path, str], None]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        report(Path(error.filename), f"the folder cannot be read: {error.strerror}")

    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_definition_file(path := Path(folder, name)):
                yield path


def is_definition_file(path: Path) -> bool:
    return path.name.endswith(_SUFFIXES) and not path.name.startswith(".")


def file_content(path: Path, root: Path) -> bytes:
    """Returns the content of a definition file.

    Raises:
        UnfitFileError: it cannot be read, is no regular file, leads out of ``root`` or is too large.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(root.resolve()):
            raise UnfitFileError("the link points outside the folder of the definitions: its target is not read")
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself, before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "it is a link to itself"
        raise UnfitFileError(f"the file cannot be read: {reason}") from error
    return plain_content(path)


def plain_content(path: Path) -> bytes:
    """Returns the content of a file that a user named.

    Raises:
        UnfitFileError: it cannot be read, is no regular file or is too large.
    """
    try:
        # Not blocking: opening a pipe would wait for somebody who writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UnfitFileError("it is not a plain file")
            raw = file.read(min(found.st_size, MAX_FILE_BYTES) + 1)  # room for more takes longer than the reading
            if len(raw) > found.st_size:
                raw += file.read(MAX_FILE_BYTES + 1 - len(raw))
    except OSError as error:
        raise UnfitFileError(f"the file cannot be read: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise UnfitFileError(f"the file has more than {MAX_FILE_BYTES:,} bytes: split it")
    return raw


def text_of(raw: bytes) -> str:
    """Raises UnicodeDecodeError where the file was not read without problems."""
    return raw.decode("utf-8-sig")


def shown_path(path: Path) -> str:
    """Returns the path relative to the working directory if it is below it, else absolute; on one line, in UTF-8."""
    absolute = path.absolute()
    try:
        text = str(absolute.relative_to(Path.cwd()))
    except ValueError:
        text = str(absolute)
    return printable(text)
