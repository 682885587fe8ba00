"""Publishing outputs: a reader sees the whole old instance, the whole new one, or none, whatever crashes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.data_version import DataVersion
from falcon_assets.storage.publication.object_publication import ObjectPublication
from falcon_assets.storage.publication.output_target import OutputTarget
from falcon_assets.storage.publication.rename_publication import RenamePublication

__all__ = ["InstancePublication", "OutputTarget", "publish_instance"]


class InstancePublication(Protocol):
    """The outputs of one process instance on their way to their final paths."""

    def staging(self, name: str) -> str:
        """Absolute path that output ``name`` is to be written to; nothing is there yet."""

    def commit(self, name: str) -> DataVersion:
        """Puts what was written for output ``name`` in place of its old instance, complete and with its flag.

        Raises:
            StorageError: nothing was written, or the store refuses; the old instance is then where it was.
        """


def publish_instance(
    store: ClusterStore, process_key: str, outputs: Mapping[str, OutputTarget]
) -> AbstractContextManager[InstancePublication]:
    """A publication of ``outputs`` (by output name), by the protocol that fits the store.

    On entering, each final path is locked against other runs, and what a crashed run left there is repaired. On
    leaving, what was not committed is dropped. On local stores, replaced instances stay in the staging location for a
    minute or two, for the sake of those who are reading them, and go with a later publication on the store.

    Args:
        store: Where the outputs go.
        process_key: The process instance, for messages.
        outputs: Their final paths, none within another.

    Raises:
        StorageError: an output on an object store has no flag; on entering: a path is being written by another run,
            is not fit to be written, or the store refuses.
    """
    if store.is_local:
        return RenamePublication(store, process_key, outputs)
    return ObjectPublication(store, process_key, outputs)
