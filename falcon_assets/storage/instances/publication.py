"""The publication of outputs, by a workflow or by a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData


class InstancePublication(Protocol):
    def staging(self, name: str) -> str:
        """Absolute path for output ``name``; nothing is there yet."""

    def staging_url(self, name: str) -> str: ...

    def keys(self, name: str) -> Mapping[str, str]:
        """Returns the partition keys of output ``name`` -> their types in its table; empty: it is no table."""

    def hold(self, name: str) -> HeldData:
        """Keeps what was written for output ``name`` aside, unpublished.

        It is there until a publication commits another output in its place, or holds one, and for a week at most.
        """

    def commit(self, name: str) -> DataVersion:
        """Puts output ``name``, complete and with its flag, in place of its old instance.

        What was held is gone when the publication ends without an error; to publish it again gives the same. After a
        StorageError it is there, and the old instance is unchanged; on object stores that may be unavailable until the
        next run.
        """
