"""Checks that a store answers and can be written, without leaving anything there."""

from __future__ import annotations

from uuid import uuid4

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained


def probe_reading(store: ClusterStore) -> bool:
    with driver_explained(store.cluster.name, f"list {store.endpoint}"):
        try:
            return bool(store.fs.ls(store.path(""), detail=False))
        except FileNotFoundError:
            return False


def probe_writing(store: ClusterStore) -> None:
    """Writes and removes a small file below the root; makes no folder, which others could begin to use."""
    root = store.path("")
    where = store.url("")
    with driver_explained(store.cluster.name, f"write below {where}"):
        folder = store.staging
        while folder != root and not store.fs.exists(folder):
            folder = folder.rpartition("/")[0]
        path = f"{folder.rstrip('/')}/doctor.{uuid4().hex}"
        try:
            store.fs.pipe_file(path, b"falcon doctor\n")
        except FileNotFoundError:  # of a bucket the driver says no more
            raise StorageError(f"cluster {store.cluster.name!r}: {where} is not there") from None
    with driver_explained(store.cluster.name, f"remove what was written as {path}"):
        store.files.remove([path])
