"""Instances on object stores, which have neither rename nor locks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from falcon_assets.planning.retention.eviction import StoredLocation
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules
from falcon_assets.storage.kinds.file_storage import FileStorage
from falcon_assets.storage.kinds.objects.copy_target import ObjectCopyTarget
from falcon_assets.storage.kinds.objects.publication import ObjectPublication
from falcon_assets.storage.kinds.objects.removal import ObjectRemoval
from falcon_assets.storage.kinds.publishing import InstancePublication
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS, StorageKind
from falcon_assets.storage.output_target import OutputTarget


class ObjectStorage(FileStorage):
    """The availability flag is the switch: it goes before anything of an instance does, and comes last."""

    def publish(self, key: str, outputs: Mapping[str, OutputTarget]) -> AbstractContextManager[InstancePublication]:
        return ObjectPublication(self.store, key, outputs)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> ObjectCopyTarget:
        return ObjectCopyTarget(self.store, output, source, rules)

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        return False

    def removal(self, flag: str | None) -> Removal:
        return ObjectRemoval(self.store, flag)

    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        # Without a flag the whole cannot be told from a part.
        self.store.files.refresh()
        return (
            location.kind == "data"
            and flag is not None
            and bool(self.store.fs.exists(f"{self.store.path(location.path)}/{flag}"))
        )

    def purge(self, patience: float = READERS_SECONDS) -> None:
        pass  # what goes is removed at once

    def is_purged(self) -> bool:
        return True
