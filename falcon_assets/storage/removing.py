"""Removing from stores whose drivers take the names of files for patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

_MAGIC = re.compile(r"[*?\[]")


def remove_files(fs: AbstractFileSystem, paths: Iterable[str]) -> None:
    """Removes those files, and no others; many by one request, where the store can.

    Raises:
        FileNotFoundError: none of them is there.
        OSError: as the store says.
    """
    found = list(paths)
    if found:
        fs.rm(found if isinstance(fs, LocalFileSystem) else [_escaped(path) for path in found])


def remove_tree(fs: AbstractFileSystem, path: str) -> None:
    """Removes what is at ``path`` and below, and nothing else.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: as the store says.
    """
    fs.rm(path if isinstance(fs, LocalFileSystem) else _escaped(path), recursive=True)


def _escaped(path: str) -> str:
    """A pattern of fsspec that only ``path`` matches: ``AbstractFileSystem.rm`` expands what it is given."""
    return _MAGIC.sub(r"[\g<0>]", path)
