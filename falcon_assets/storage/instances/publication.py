"""The publication of outputs, by a workflow or by a copy."""

from __future__ import annotations

from typing import Protocol

from falcon_assets.storage.instances.data_version import DataVersion


class InstancePublication(Protocol):
    def staging(self, name: str) -> str:
        """Absolute path for output ``name``; nothing is there yet."""

    def staging_url(self, name: str) -> str: ...

    def hold(self, name: str) -> str:
        """Keeps what was written for output ``name`` aside, unpublished; returns where, for people.

        The next attempt removes it, or a pass of retention a week later; in tables the next one of both a day later.
        """

    def commit(self, name: str) -> DataVersion:
        """Puts output ``name``, complete and with its flag, in place of its old instance.

        After a StorageError the old instance is unchanged; on object stores it may be unavailable until the next run.
        """
