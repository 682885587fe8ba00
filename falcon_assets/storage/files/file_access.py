"""What file systems do in different ways; what they all do alike, fsspec does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar

from fsspec import AbstractFileSystem

from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.checksum import checksum


class FileAccess(ABC):
    """The files of a file system; paths are as fsspec takes them. It can be pickled, and shipped to where tasks run.

    Args:
        fs: The file system.
    """

    requests: ClassVar[int]
    """How many files to read or write at once: with those of another host, more than one gain time."""
    cannot: ClassVar[frozenset[Ability]]
    """What nobody can do with it."""
    marks_at_sight: ClassVar[bool]
    """Whether a root is marked when it is looked at first, because it may go away without a word; else it is when
    something is written there: a bucket may be somebody else's."""
    looks_by_request: ClassVar[bool]
    """Whether it takes a request to another host to see whether a root is there."""

    def __init__(self, fs: AbstractFileSystem) -> None:
        self.fs = fs
        """The file system."""

    def keeps_attributes_of(self, source: FileAccess) -> bool:
        """Whether a copy from there can have owner, permissions and times of its source.

        Between kinds of stores it cannot: users of one are nobody, or somebody else, on the other.
        """
        return type(self) is type(source) and self.cannot.isdisjoint((Ability.MODES, Ability.TIMES))

    @abstractmethod
    def refresh(self) -> None:
        """Forgets what was listed: others write there too."""

    @abstractmethod
    def real(self, path: str) -> str:
        """The path without symbolic links in it."""

    @abstractmethod
    def endpoint(self, url: str) -> str:
        """What answers, or does not, for all that lies below the URL of a root."""

    @abstractmethod
    def is_mounted(self, root: str) -> bool:
        """Whether a root is there that something is known to have been in; where that needs no mounting, it is."""

    @abstractmethod
    def is_empty(self, root: str) -> bool:
        """Whether a root that is there has nothing in it; where asking is a request, it is said to have something.

        Raises:
            OSError: as the store says.
        """

    @abstractmethod
    def stamp(self, path: str) -> object | None:
        """Changes when another file takes the place of that one; None where asking is a request.

        Raises:
            OSError: as the store says.
        """

    @abstractmethod
    def put_new(self, path: str, content: bytes) -> bytes:
        """Writes a small file, whole or not at all, unless there is one already; the content that is there then.

        Raises:
            OSError: as the store says.
        """

    @property
    @abstractmethod
    def tells_changes(self) -> bool:
        """Whether folders have a modification time that says when an entry came or went."""

    @abstractmethod
    def changed_at(self, entry: Mapping[str, Any]) -> datetime | None:
        """When a file or folder was changed, from fsspec's entry; None where nobody knows."""

    @abstractmethod
    def unlinked(self, folder: str, only: str | None = None) -> Iterable[tuple[str, bool]]:
        """Name of each folder (True) and file (False) in ``folder``; no links, no devices.

        Args:
            folder: Where.
            only: The one name that is asked for; None: all.

        Raises:
            OSError: as the store says.
        """

    def all_below(self, base: str) -> Iterable[Mapping[str, Any]] | None:
        """Every file at ``base`` or below as fsspec tells it, fresh from the store; None: folders have to be walked.

        Raises:
            OSError: as the store says.
        """
        return None

    def identity(self, path: str) -> object | None:
        """Changes when another folder or file is moved to that path; None where none can be.

        Raises:
            FileNotFoundError: nothing is there; not said where it is None.
            OSError: as the store says.
        """
        info = self.fs.info(path)
        return info.get("ino"), info.get("created")

    @abstractmethod
    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        """The content of the file in blocks, each of which is good until the next one is asked for.

        Args:
            path: Its path.
            size: How large it is said to be; one that turns out larger gives more than that, so that it is noticed.
            at_most: Makes the size of blocks smaller.

        Raises:
            OSError: as the store says.
        """

    def small(self, path: str, size: int) -> bytes:
        """The whole content of a small file; some more of one that is larger than ``size``, so that it is noticed.

        Raises:
            OSError: as the store says.
        """
        return b"".join(self.blocks(path, size))

    def content(self, path: str, size: int) -> tuple[int, str]:
        """Size and checksum of the content of a file.

        Args:
            path: Its path.
            size: How large it is said to be.

        Raises:
            OSError: as the store says.
        """
        digest, total = checksum(), 0
        for block in self.blocks(path, size):
            digest.update(block)
            total += len(block)
        return total, digest.hexdigest()

    def told_checksum(self, entry: Mapping[str, Any]) -> bytes | None:
        """What the store itself says of the content of a file: where that is the same, so is the content.

        Nothing is read then. None: the store says nothing.

        Args:
            entry: fsspec's, of the file.

        Raises:
            OSError: as the store says.
        """
        etag = entry.get("ETag")  # S3's
        return str(etag).encode() if etag else None

    @abstractmethod
    def version(self, path: str) -> str:
        """What shows, without reading it, that a file was written anew.

        Raises:
            StorageError: the store tells nothing that could.
            OSError: as the store says.
        """

    @abstractmethod
    def without_links(self, base: str, left_out: Callable[[str], bool]) -> Mapping[str, tuple[int, str]] | None:
        """Size and version of each file below ``base``, by relative name; None where there are links or no folder.

        Args:
            base: The folder.
            left_out: Names of files and folders that are not looked at.

        Raises:
            StorageError: the store tells nothing that could be a version.
            OSError: as the store says.
        """

    @abstractmethod
    def remove(self, paths: Iterable[str]) -> None:
        """Removes those files, and no others; many by one request, where the store can.

        Raises:
            FileNotFoundError: none of them is there.
            OSError: as the store says.
        """

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """Removes what is at ``path`` and below, and nothing else.

        Raises:
            FileNotFoundError: nothing is there.
            OSError: as the store says.
        """

    def copy(self, source: str, target: str, size: int) -> None:
        """Copies a file of so many bytes to another place on the same store; its content does not leave that.

        Raises:
            OSError: as the store says.
        """
        self.fs.cp_file(source, target)
