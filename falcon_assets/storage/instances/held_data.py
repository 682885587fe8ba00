"""Outputs that were written and are kept aside, unpublished."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.storage.instances.data_version import DataVersion


@dataclass(frozen=True)
class HeldData:
    """What was written for an output, and is kept aside.

    Attributes:
        place: Where it lies, as people are told.
        version: Of its files; that of a table's partitions, which they may become, is another one.
    """

    place: str
    version: DataVersion

    @property
    def gone(self) -> str:
        return f"what was held is not at {self.place} any more: the instance has to be computed again"

    @property
    def changed(self) -> str:
        return f"somebody changed what is held at {self.place}: the instance has to be computed again"
