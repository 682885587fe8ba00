"""Data versions: a fingerprint of the content of an instance."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.instances.instance_files import InstanceFiles, files_of

_ATTEMPTS = 5


@dataclass(frozen=True)
class DataVersion:
    version: str
    """128 bits, hexadecimal: equal exactly where names, sizes and contents of the files are."""
    files: int
    bytes: int


def fingerprint(store: ClusterStore, path: str, flag: str | None) -> DataVersion:
    """Returns the version of the instance at ``path``, from the sorted (relative name, size, content checksum).

    Modification times, the order of directories and empty folders do not matter. An instance that is replaced while it
    is read is read again: the version is never one of a mixture. Raises StorageError if nothing is there, it cannot be
    read, a link in it leaves the root, or it keeps changing.
    """
    return count_files(store, path, flag)[0]


def count_files(store: ClusterStore, path: str, flag: str | None) -> tuple[DataVersion, InstanceFiles]:
    base = store.path(path)
    with explained(store.cluster.name, f"read {path}"):
        for _ in range(_ATTEMPTS):
            before = _identity(store, path, base)
            try:
                contents = list(_contents(store.files, files_of(store, base, flag)))
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
    files: FileAccess, entries: Iterable[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[bytes, int, bytes]]:
    for relative, entry in entries:
        reported = files.told_checksum(entry)
        if reported is not None:
            yield os.fsencode(relative), entry["size"], reported
        else:
            size, checksum = files.content(entry["name"], entry["size"])
            yield os.fsencode(relative), size, bytes.fromhex(checksum)


def version_of_entries(files: FileAccess, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> DataVersion:
    """Returns the version of files by their relative names and fsspec's entries."""
    return version_of(_contents(files, entries))


def version_of(contents: Iterable[tuple[bytes, int, bytes]]) -> DataVersion:
    """Returns the version of files with these names (:func:`os.fsencode`), sizes and checksums, in any order."""
    digest, files, size_of_all = hashlib.blake2b(digest_size=16), 0, 0
    for name, size, content in sorted(contents):
        # Lengths first, so that no two lists of files give the same bytes.
        digest.update(len(name).to_bytes(8, "big") + name + size.to_bytes(8, "big") + content)
        files += 1
        size_of_all += size
    return DataVersion(digest.hexdigest(), files, size_of_all)
