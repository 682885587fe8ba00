"""The files of an instance with their sizes and marks: what a copy is planned by."""

from __future__ import annotations

import os

from fsspec import AbstractFileSystem

from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.files.local_files import local_mark
from falcon_assets.storage.files.remote_files import entry_mark
from falcon_assets.storage.instances.data_files import is_data, is_hidden
from falcon_assets.storage.instances.instance_files import files_of


def list_files(store: ClusterStore, path: str, flag: str | None) -> dict[str, ListedFile]:
    """The files that are data of the instance at ``path`` by relative name, fresh from the store; "" is a single file.

    Nothing is there: no files.

    Args:
        store: Where it lies.
        path: Its path below the root.
        flag: Name of the feed's availability flag.

    Raises:
        StorageError: a link in it leaves the root, or the store cannot be read.
    """
    base = store.path(path)
    with explained(store.cluster.name, f"list {path}"):
        try:
            if not store.is_local:
                store.fs.invalidate_cache()
                return _found(store.fs, base, flag)
            found = _scanned(base, flag)
            if found is None:  # there are links: whether they may be followed takes longer to say
                found = {
                    name: ListedFile(entry["size"], store.files.mark(entry["name"]))
                    for name, entry in files_of(store, base, flag)
                }
        except FileNotFoundError:
            return {}
    return found


def _scanned(base: str, flag: str | None) -> dict[str, ListedFile] | None:
    """The files of a local instance without links in it; None where there are some."""
    if not os.path.isdir(base):  # noqa: PTH112 - a text
        return None
    found: dict[str, ListedFile] = {}
    folders = [""]
    while folders:
        prefix = folders.pop()
        with os.scandir(f"{base}/{prefix}") as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                if entry.is_symlink():
                    return None
                if entry.is_dir():
                    folders.append(f"{prefix}{entry.name}/")
                elif entry.is_file() and is_data(prefix + entry.name, flag):
                    status = entry.stat()
                    found[prefix + entry.name] = ListedFile(status.st_size, local_mark(status))
    return found


def _found(fs: AbstractFileSystem, base: str, flag: str | None) -> dict[str, ListedFile]:
    """The files of an instance in another store: one request for thousands of them, where the store can."""
    found: dict[str, ListedFile] = {}
    for name, entry in fs.find(base, detail=True).items():
        relative = str(name)[len(base) + 1 :]
        if is_data(relative, flag):
            found[relative] = ListedFile(entry["size"], entry_mark(entry))
    return found
