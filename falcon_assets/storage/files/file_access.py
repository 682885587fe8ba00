"""Operations that file systems do in different ways; for all others there is fsspec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from typing import Any, ClassVar

from fsspec import AbstractFileSystem

from falcon_assets.planning.eviction import Space
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.checksum import checksum


class FileAccess(ABC):
    """The files of a file system, also pickled for tasks elsewhere; methods raise OSError from the store."""

    requests: ClassVar[int]
    """Files to read or write at once: on another host, more than one save time."""
    cannot: ClassVar[frozenset[Ability]]
    marks_at_sight: ClassVar[bool]
    """Whether a root is marked at the first look, as it may go away unnoticed; else at the first write."""
    looks_by_request: ClassVar[bool]

    def __init__(self, fs: AbstractFileSystem) -> None:
        self.fs = fs

    def keeps_attributes_of(self, source: FileAccess) -> bool:
        """Whether copies keep owner, permissions and times: not between kinds of stores, whose users differ."""
        return type(self) is type(source) and self.cannot.isdisjoint((Ability.MODES, Ability.TIMES))

    @abstractmethod
    def refresh(self) -> None: ...

    @abstractmethod
    def real(self, path: str) -> str: ...

    @abstractmethod
    def endpoint(self, url: str) -> str: ...

    def is_own(self, folder: str) -> bool:
        """Whether nobody but this machine writes there, so that its operating system tells what is written."""
        return False

    @abstractmethod
    def is_mounted(self, root: str) -> bool:
        """Whether a root that once had content is there; true if that needs no mounting."""

    @abstractmethod
    def is_empty(self, root: str) -> bool:
        """Whether a root that is there has no entries; false if asking is a request."""

    def space(self, root: str) -> Space | None:
        """Measures the file system of a root; None: it does not say how full it is."""
        return None

    @abstractmethod
    def stamp(self, path: str) -> object | None:
        """Returns a value that changes with another file in that place; None if asking is a request."""

    @abstractmethod
    def put_new(self, path: str, content: bytes) -> bytes:
        """Writes a small file, whole or not at all, unless one exists; returns the content that is there then."""

    @property
    @abstractmethod
    def tells_changes(self) -> bool:
        """Whether a folder's modification time shows when an entry was added or deleted."""

    @abstractmethod
    def changed_at(self, entry: Mapping[str, Any]) -> datetime | None: ...

    @abstractmethod
    def unlinked(self, folder: str, only: str | None = None) -> Iterable[tuple[str, bool]]:
        """Returns the name of each entry of ``folder``, or ``only``, and whether it is a folder; no links, devices."""

    def all_below(self, base: str) -> Iterable[Mapping[str, Any]] | None:
        """Lists every file at ``base`` or below, fresh from the store; None: folders have to be walked."""
        return None

    def identity(self, path: str) -> object | None:
        """Returns a value that changes with another folder or file in that place; None: nothing can be moved there."""
        info = self.fs.info(path)
        return info.get("ino"), info.get("created")

    @abstractmethod
    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        """Reads the file in blocks, each valid until the next; more than ``size`` if it is larger, so this shows."""

    def small(self, path: str, size: int) -> bytes:
        return b"".join(self.blocks(path, size))

    def content(self, path: str, size: int) -> tuple[int, str]:
        digest, total = checksum(), 0
        for block in self.blocks(path, size):
            digest.update(block)
            total += len(block)
        return total, digest.hexdigest()

    def told_checksum(self, entry: Mapping[str, Any]) -> bytes | None:
        """Returns the store's own digest of the content, without reading it; None: it has none."""
        etag = entry.get("ETag")  # S3's
        return str(etag).encode() if etag else None

    @abstractmethod
    def version(self, path: str) -> str:
        """Returns a value that changes when the file is written anew; StorageError: there is none without reading."""

    @abstractmethod
    def without_links(self, base: str, left_out: Callable[[str], bool]) -> Mapping[str, tuple[int, str]] | None:
        """Returns size and version of each file below ``base``, by name; None: there are links, or no folder."""

    @abstractmethod
    def remove(self, paths: Iterable[str]) -> None:
        """Removes these files only, by one request for many if the store can; FileNotFoundError: all are missing."""

    @abstractmethod
    def remove_tree(self, path: str) -> None: ...

    def copy(self, source: str, target: str, size: int) -> None:
        self.fs.cp_file(source, target)

    def discard(self, path: str) -> None:
        """Removes as much of what is there as it can; nobody else may use it."""
        with suppress(OSError):
            self.remove_tree(path)

    def entries(self, folder: str) -> list[str]:
        """Returns the paths in a folder, in the order that is fastest to remove; none if it is missing."""
        try:
            return [str(path) for path in self.fs.ls(folder, detail=False)]
        except FileNotFoundError:
            return []

    def is_link(self, path: str) -> bool:
        return False

    def has_links(self, path: str) -> bool:
        """Whether a move might make links lead elsewhere."""
        return False

    # The rest is for stores that can rename.

    def locked(self, path: str, seconds: float) -> AbstractContextManager[bool]:
        """Holds a lock that dies with its holder; gives False if others hold it so long. True if there are no locks."""
        return nullcontext(True)

    def move(self, path: str, place: str) -> None:
        """Renames in one step; FileExistsError: something is there."""
        self.fs.mv(path, place)

    def require_moves(self, path: str, place: str) -> None:  # noqa: B027 - most stores are one file system
        """Raises OSError if nothing can be moved from ``path`` to ``place``, whose folder may be missing."""

    def link(self, path: str, place: str) -> None:
        """Gives a file another place, with the folders above it, by a copy where the store has no links."""
        self.fs.cp_file(path, place)

    def write(self, path: str, content: bytes) -> None:
        """Writes a small file, with the folders above it."""
        self.fs.pipe_file(path, content)

    def make_folder(self, path: str) -> None:
        """Makes a folder, with those above it, that survive a power cut."""
        self.fs.makedirs(path, exist_ok=True)

    def sync(self, path: str) -> None:  # noqa: B027 - servers keep what they have answered
        """Makes a file, or the names in a folder, survive a power cut."""

    def sync_tree(self, path: str) -> None:  # noqa: B027 - as above
        """Makes a file or folder survive a power cut, with everything in it."""

    def set_permission(self, path: str, permission: str | None) -> None:
        """Gives ``path`` and everything in it the octal mode ``permission``; None and ``*`` change nothing.

        As in Hadoop, files get no execute bits. The owner keeps all rights to folders, and may read and write files.
        """
        if permission is None or permission == "*":
            return
        found = {path: self.fs.info(path)}
        if found[path]["type"] == "directory":
            found |= self.fs.find(path, withdirs=True, detail=True)
        for name, entry in found.items():
            self.fs.chmod(name, mode_of(permission, is_folder=entry["type"] == "directory"))

    def remove_side_files(self, folder: str, keep: str | None) -> None:
        folders = [folder]
        while folders:
            for entry in self.fs.ls(folders.pop(), detail=True):
                path, name = str(entry["name"]), str(entry["name"]).rpartition("/")[2]
                if is_side_file(name) and path != f"{folder}/{keep}":
                    self.fs.rm(path, recursive=True)
                elif entry["type"] == "directory":
                    folders.append(path)


def is_side_file(name: str) -> bool:
    """Whether it is one of Hadoop's: ``ChecksumFileSystem`` (``.NAME.crc``), ``FileOutputCommitter`` (the others)."""
    return name in ("_SUCCESS", "_temporary") or (name.startswith(".") and name.endswith(".crc"))


def mode_of(permission: str, *, is_folder: bool) -> int:
    mode = int(permission, 8)
    return mode | 0o700 if is_folder else mode & 0o666 | 0o600
