"""Data of a process instance during its computation: where Spark reads its inputs and writes its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from falcon_assets.compute.executor import Executor, InProcessExecutor
from falcon_assets.errors import StorageError
from falcon_assets.instances.runs.spark_access import SparkAccess
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.process_instance import ProcessInstance
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD
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
        holds = any(one.feed.holds for one in self.plan.outputs)  # one that fails its checks holds back all of them
        outputs = {}
        for one in self.plan.outputs:
            target = target_on(self.executor.cluster, one.feed, one.instance, one.path)
            outputs[one.name] = (self.store_of(one.feed), replace(target, holds=holds))
        return publications(held, self._key, outputs, staging)

    def _staging(self) -> LocalStaging | None:
        return self._access.staging

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings for its own access to object stores; else empty."""
        return self._access.settings

    @property
    def needs_spark(self) -> bool:
        return not isinstance(self.executor, InProcessExecutor)

    @cached_property
    def _access(self) -> SparkAccess:
        feeds = [*(one.feed for one in self.plan.inputs), *(one.feed for one in self.plan.outputs)]
        return SparkAccess(self.executor, self.store, [self.store_of(feed) for feed in feeds], self.in_session)

    @property
    def _key(self) -> str:
        return f"{self.plan.process.name} at {format_instant(self.plan.nominal)}"


def publications(
    entered: ExitStack,
    key: str,
    outputs: Mapping[str, tuple[ClusterStore, OutputTarget]],
    staging: LocalStaging | None = None,
    held: Mapping[str, HeldData] = NOTHING_HELD,
) -> Publications:
    """Enters a publication for each store; raises StorageError; ``staging`` and ``held`` as for each of them."""
    found: dict[str, InstancePublication] = {}
    stores = {_place_of(store): store for store, _ in outputs.values()}
    for place, store in sorted(stores.items()):  # in the same order for all runs, as within a publication
        ours = {name: target for name, (of, target) in outputs.items() if _place_of(of) == place}
        kind, (name, first) = kind_of(store), next(iter(ours.items()))
        if Ability.SPARK_OUTPUT in kind.cannot:
            raise StorageError(
                f"{key}: output {name!r} lies at {store.shown(first.path)}: outputs are published on file://, on HDFS "
                "and on object stores only"
            )
        own = {name: held[name] for name in ours if name in held}
        found |= dict.fromkeys(ours, entered.enter_context(kind.publish(key, ours, staging, own)))
    return found


def _place_of(store: ClusterStore) -> tuple[str, str]:
    return store.root or "", store.endpoint


def target_on(cluster: Cluster, feed: Feed, instance: datetime, path: str) -> OutputTarget:
    table, target = feed.table_on(cluster.name), output_target(feed, instance, path)
    if table is None:
        return target
    return replace(target, format=feed.format, makes_table=table.create, merges_schema=table.merge_schema)
