"""Data versions: a fingerprint of what an instance holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.instance_files import InstanceFiles, files_of

_ATTEMPTS = 5


@dataclass(frozen=True)
class DataVersion:
    """What an instance held when it was read."""

    version: str
    """128 bits, hexadecimal: equal exactly where names, sizes and contents of the files are."""
    files: int
    """How many files that are data."""
    bytes: int
    """Their total size."""


def fingerprint(store: ClusterStore, path: str, flag: str | None) -> DataVersion:
    """The version of the instance at ``path``: hashed over the sorted (relative name, size, content checksum).

    The files are those of :mod:`falcon_assets.storage.instances.data_files`. Modification times, the order of
    directories and empty folders do not matter. An instance that is replaced while it is read is read again, so that
    the version is never one of a mixture.

    Args:
        store: Where it lies.
        path: Its path below the root; a folder or a single file.
        flag: Name of the feed's availability flag.

    Raises:
        StorageError: nothing is there, it cannot be read, a link in it leaves the root, or it keeps changing.
    """
    return count_files(store, path, flag)[0]


def count_files(store: ClusterStore, path: str, flag: str | None) -> tuple[DataVersion, InstanceFiles]:
    """The version of the instance at ``path``, and the files that it was made of; arguments as :func:`fingerprint`.

    Raises:
        StorageError: as :func:`fingerprint`.
    """
    base = store.path(path)
    with explained(store.cluster.name, f"read {path}"):
        for _ in range(_ATTEMPTS):
            before = _identity(store, path, base)
            try:
                contents = list(_contents(store, files_of(store, base, flag)))
            except FileNotFoundError:
                if before is None:
                    raise _nothing(store, path) from None
                continue
            if _identity(store, path, base) == before:
                sizes = {os.fsdecode(name): size for name, size, _ in contents}
                return version_of(contents), InstanceFiles(store, path, flag, sizes)
    raise StorageError(f"cluster {store.cluster.name!r}: {path} keeps changing while it is read")


def _identity(store: ClusterStore, path: str, base: str) -> object | None:
    try:
        return store.files.identity(base)
    except FileNotFoundError:
        raise _nothing(store, path) from None


def _nothing(store: ClusterStore, path: str) -> StorageError:
    return StorageError(f"cluster {store.cluster.name!r}: there is nothing at {path}")


def _contents(
    store: ClusterStore, entries: Iterable[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[bytes, int, bytes]]:
    """(relative name, size, checksum) of each of those files."""
    for relative, entry in entries:
        told = store.files.told_checksum(entry)
        if told is not None:
            yield os.fsencode(relative), entry["size"], told
        else:
            size, checksum = store.files.content(entry["name"], entry["size"])
            yield os.fsencode(relative), size, bytes.fromhex(checksum)


def version_of_entries(store: ClusterStore, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> DataVersion:
    """The version of an instance with those files, which nobody changes meanwhile.

    Args:
        store: Where they lie.
        entries: Relative name and fsspec's entry of each one.

    Raises:
        OSError: as the store says.
    """
    return version_of(_contents(store, entries))


def version_of(contents: Iterable[tuple[bytes, int, bytes]]) -> DataVersion:
    """The version of an instance with those files, in any order.

    Args:
        contents: Relative name (as :func:`os.fsencode` gives it), size and checksum of each one.
    """
    digest, files, size_of_all = hashlib.blake2b(digest_size=16), 0, 0
    for name, size, content in sorted(contents):
        # Lengths first, so that no two lists of files give the same bytes.
        digest.update(len(name).to_bytes(8, "big") + name + size.to_bytes(8, "big") + content)
        files += 1
        size_of_all += size
    return DataVersion(digest.hexdigest(), files, size_of_all)
