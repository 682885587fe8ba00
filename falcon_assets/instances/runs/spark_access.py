"""How Spark reaches the stores of some feeds: by itself, with settings, or by copies on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.data.connectors import connector_settings, has_connector
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.local_staging import LocalStaging


@dataclass(frozen=True)
class SparkAccess:
    """``store`` is that of the cluster; not ``in_session``: what computes cannot be inspected before."""

    executor: Executor
    store: ClusterStore
    stores: Sequence[ClusterStore]
    in_session: bool = True

    @property
    def staging(self) -> LocalStaging | None:
        """For object stores without a connector in Spark; else None."""
        if not self._object_stores or self._by_connector:
            return None
        return LocalStaging.of(self.store)

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings for its own access to object stores; else empty."""
        if not self._object_stores or not self._by_connector:
            return {}
        found: dict[str, str] = {}
        for store in self._object_stores:
            found |= connector_settings(store.fs.protocol, store.path(""), store.fs.storage_options)
        return found

    @cached_property
    def _by_connector(self) -> bool:
        """Whether Spark has its own access to the object stores: where it can, and where folders are not shared."""
        if not self.executor.shares_folders:
            return True
        if not self.in_session:
            return False
        schemes = {kind_of(store).connector for store in self._object_stores}
        return all(scheme is not None and has_connector(self.executor.session(), scheme) for scheme in schemes)

    @cached_property
    def _object_stores(self) -> list[ClusterStore]:
        return [found for store in self.stores for found in kind_of(store).object_stores]
