"""Data of a process instance during its computation: where Spark reads its inputs and writes its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.data.connectors import connector_settings, has_connector
from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.process_instance import OutputPlan, ProcessInstance
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget, output_target

Readings: TypeAlias = Mapping[str, list[ReadableInstance]]
Publications: TypeAlias = Mapping[str, InstancePublication]


@dataclass(frozen=True)
class InstanceData:
    """The data of one instance; not ``in_session``: what computes it cannot be inspected before."""

    plan: ProcessInstance
    executor: Executor
    store: ClusterStore
    store_of: Callable[[Feed], ClusterStore]
    in_session: bool

    @contextmanager
    def within_reach(
        self, available: Mapping[str, tuple[tuple[object, str], ...]]
    ) -> Iterator[tuple[Readings, Publications]]:
        """Gives Spark access to inputs and outputs in the context; raises StorageError on entering."""
        with ExitStack() as held:
            staging = self._staging()
            yield self._readings(held, available, staging), self._publications(held, staging)

    @contextmanager
    def readable(self, available: Mapping[str, tuple[tuple[object, str], ...]]) -> Iterator[Readings]:
        with ExitStack() as held:
            yield self._readings(held, available, self._staging())

    def reading(self, feed: Feed, path: str) -> AbstractContextManager[ReadableInstance]:
        """One instance of a feed, in the context; raises StorageError on entering."""
        return self._reading(feed, path, self._staging())

    def _readings(
        self, held: ExitStack, available: Mapping[str, tuple[tuple[object, str], ...]], staging: LocalStaging | None
    ) -> Readings:
        return {
            one.name: [held.enter_context(self._reading(one.feed, path, staging)) for _, path in available[one.name]]
            for one in self.plan.inputs
        }

    def _reading(self, feed: Feed, path: str, staging: LocalStaging | None) -> AbstractContextManager[ReadableInstance]:
        return kind_of(self.store_of(feed)).reading(path, feed.availability_flag, staging)

    def _publications(self, held: ExitStack, staging: LocalStaging | None) -> Publications:
        found: dict[str, InstancePublication] = {}
        stores = {_place_of(store): store for store in (self.store_of(output.feed) for output in self.plan.outputs)}
        for _, store in sorted(stores.items()):  # in the same order for all runs, as within a publication
            ours = [one for one in self.plan.outputs if _place_of(self.store_of(one.feed)) == _place_of(store)]
            kind = kind_of(store)
            if Ability.SPARK_OUTPUT in kind.cannot:
                lies = f"output {ours[0].name!r} lies at {store.shown(ours[0].path)}"
                raise StorageError(
                    f"{self._key}: {lies}: outputs are published on file://, on HDFS and on object stores only"
                )
            targets = {output.name: _target(output, self.executor.cluster) for output in ours}
            publication = held.enter_context(kind.publish(self._key, targets, staging))
            found |= dict.fromkeys(targets, publication)
        return found

    def _staging(self) -> LocalStaging | None:
        """For object stores without a connector in Spark; else None."""
        if not self._object_stores or self._by_connector:
            return None
        return LocalStaging.of(self.store)

    @cached_property
    def _by_connector(self) -> bool:
        """Whether Spark has its own access to the object stores: where it can, and where folders are not shared."""
        if not self.executor.shares_folders:
            return True
        if not self.in_session:
            return False
        schemes = {kind_of(store).connector for store in self._object_stores}
        return all(scheme is not None and has_connector(self.executor.session(), scheme) for scheme in schemes)

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
    def _object_stores(self) -> list[ClusterStore]:
        feeds = [*(one.feed for one in self.plan.inputs), *(one.feed for one in self.plan.outputs)]
        found = (kind_of(self.store_of(feed)).object_store for feed in feeds)
        return [store for store in found if store is not None]

    @property
    def _key(self) -> str:
        return f"{self.plan.process.name} at {format_instant(self.plan.nominal)}"


def _place_of(store: ClusterStore) -> tuple[str, str]:
    return store.root or "", store.endpoint


def _target(output: OutputPlan, cluster: Cluster) -> OutputTarget:
    feed = output.feed
    table = feed.table_on(cluster.name)
    target = output_target(feed, output.instance, output.path)
    if table is None:
        return target
    return replace(target, format=feed.format, makes_table=table.create, merges_schema=table.merge_schema)
