"""The files of an instance as their folders list them: no content is read."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.files.entry import ETAGS, MODIFIED, modified_at
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.version_pointer import VersionPointer

_ATTEMPTS = 3
_SIGNED = (*MODIFIED, *ETAGS, "created", "ino")
"""Fields that show that a file was written anew. ``rsync`` keeps size and time, but not inode and change time."""


@dataclass(frozen=True)
class Listing:
    signature: str
    """128 bits, hexadecimal, over names, sizes, times and etags: while it stays the same, so does the version."""
    modified: datetime | None
    """The newest modification time of a file, UTC; None: there is no file, or the store keeps none."""


@dataclass(frozen=True)
class InstanceFiles:
    store: ClusterStore
    path: str
    flag: str | None
    sizes: Mapping[str, int]

    def listed_now(self) -> dict[str, int]:
        """Returns the present sizes; empty if the instance is gone."""
        with explained(self.store.cluster.name, f"list {self.path}"):
            self.store.files.refresh()
            try:
                listed = files_of(self.store, self.store.path(self.path), self.flag)
                return {name: int(entry["size"]) for name, entry in listed}
            except FileNotFoundError:
                return {}


def list_instance(store: ClusterStore, path: str, flag: str | None) -> Listing:
    """Lists the data files of the instance at ``path``, fresh from the store; StorageError if nothing is there."""
    base = store.path(path)
    store.files.refresh()
    with explained(store.cluster.name, f"list {path}"):
        try:
            files = sorted(
                ((os.fsencode(name), _followed(store, entry)) for name, entry in files_of(store, base, flag)),
                key=itemgetter(0),
            )
        except FileNotFoundError:
            raise StorageError(f"cluster {store.cluster.name!r}: there is nothing at {path}") from None
    digest = hashlib.blake2b(digest_size=16)
    for name, entry in files:
        signed = repr([entry.get("size"), *(str(entry.get(key)) for key in _SIGNED)]).encode()
        digest.update(len(name).to_bytes(8, "big") + name + len(signed).to_bytes(8, "big") + signed)
    return Listing(digest.hexdigest(), max(filter(None, (modified_at(entry) for _, entry in files)), default=None))


def files_of(
    store: ClusterStore, base: str, flag: str | None, left_out: Callable[[str], bool] = is_hidden
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Returns relative name and fsspec's entry of each data file below the absolute path ``base``, unordered.

    A single file has the name "". On an object store the flag may select the present version. Raises StorageError for
    links out of the root or in circles, and OSError.
    """
    flat = store.files.all_below(base)
    if flat is not None:
        yield from _data(*_present(store, list(flat), base, flag), flag, left_out)
        return
    if store.fs.isfile(base):
        yield "", store.fs.info(base)
        return
    for entry in _files(left_out, store, base, ()):
        relative = str(entry["name"])[len(base) + 1 :]
        if relative != flag:
            yield relative, entry


def _present(
    store: ClusterStore, flat: Sequence[Mapping[str, Any]], base: str, flag: str | None
) -> tuple[Sequence[Mapping[str, Any]], str]:
    for _ in range(_ATTEMPTS):
        marker = next((one for one in flat if flag and one["size"] and one["name"] == f"{base}/{flag}"), None)
        pointer = VersionPointer.decode(store.fs.cat_file(marker["name"])) if marker else None
        if pointer is None:
            return flat, base
        folder = f"{base}/{pointer.folder}"
        if found := list(store.files.all_below(folder) or ()):
            return found, folder
        flat = list(store.files.all_below(base) or ())  # it was replaced just then, and is not kept
    return (), base


def _data(
    flat: Iterable[Mapping[str, Any]], base: str, flag: str | None, left_out: Callable[[str], bool]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    is_there = False
    for entry in flat:
        is_there = True
        relative = str(entry["name"])[len(base) + 1 :]
        if relative != flag and not any(map(left_out, relative.split("/"))):
            yield relative, entry
    if not is_there:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), base)


def _files(
    left_out: Callable[[str], bool], store: ClusterStore, folder: str, above: tuple[str, ...]
) -> Iterator[Mapping[str, Any]]:
    real = store.files.real(folder)
    if real in above:
        raise StorageError(f"cluster {store.cluster.name!r}: {folder} is a symbolic link to a folder that it lies in")
    for entry in store.fs.ls(folder, detail=True):
        name, kind = str(entry["name"]).rstrip("/"), entry["type"]
        if name == folder or left_out(name.rpartition("/")[2]):
            continue
        if entry.get("islink"):
            kind = _kind_behind_link(store, name)
        if kind == "directory":
            yield from _files(left_out, store, name, (*above, real))
        elif kind == "file":
            yield {**entry, "name": name}


def _kind_behind_link(store: ClusterStore, name: str) -> str:
    store.path(name[len(store.path("")) :])  # raises where the link leaves the root
    return "directory" if store.fs.isdir(name) else "file" if store.fs.isfile(name) else "other"


def _followed(store: ClusterStore, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replaces a link's entry, which has the time of the link itself, by that of the file behind it."""
    return store.fs.info(entry["name"]) if entry.get("islink") else entry
