"""Outputs on their way to where readers find them."""

from __future__ import annotations

from typing import Protocol

from falcon_assets.storage.instances.data_version import DataVersion


class InstancePublication(Protocol):
    """The outputs of one process instance on their way to their final paths."""

    def staging(self, name: str) -> str:
        """Absolute path that output ``name`` is to be written to; nothing is there yet."""

    def staging_url(self, name: str) -> str:
        """The same as a URL for Spark."""

    def commit(self, name: str) -> DataVersion:
        """Puts what was written for output ``name`` in place of its old instance, complete and with its flag.

        Raises:
            StorageError: nothing was written, or the store refuses; the old instance is then where it was.
        """
