"""Chooses the kind of storage of a store: the one place where that is decided."""

from __future__ import annotations

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.kinds.objects.object_storage import ObjectStorage
from falcon_assets.storage.kinds.renaming.renaming_storage import RenamingStorage
from falcon_assets.storage.kinds.rollup_storage import RollupStorage
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.kinds.tables.table_storage import TableStorage
from falcon_assets.storage.kinds.volumes_storage import VolumesStorage
from falcon_assets.storage.rollup_store import RollupStore
from falcon_assets.storage.tables.table_store import TableStore
from falcon_assets.storage.volumes import VolumesStore


def kind_of(store: ClusterStore) -> StorageKind:
    if isinstance(store, TableStore):
        return TableStorage(store)
    if isinstance(store, RollupStore):
        return RollupStorage(store, kind_of)
    if isinstance(store, VolumesStore):
        return VolumesStorage(store, kind_of)
    if Ability.RENAME in store.files.cannot:
        return ObjectStorage(store)
    return RenamingStorage(store)
