"""Data that a process instance really read and wrote, from Spark's listener, as instances of feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

from falcon_assets.errors import FalconError, UnreachableError, WorkflowError
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.model.feed import Feed
from falcon_assets.planning.data_usage import FoundInstance, Usage
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind


@dataclass(frozen=True)
class FeedPlaces:
    """Places of feeds, on all clusters; safe from several threads. Answers are cached, so it is made for one run."""

    feeds: Mapping[str, Feed]
    own: StoresOf
    others: Sequence[StoresOf] = ()
    _kinds: dict[tuple[str, str], StorageKind] = field(default_factory=dict, init=False)
    _found: dict[str, FoundInstance | None] = field(default_factory=dict, init=False)
    _silent: set[str] = field(default_factory=set, init=False)
    _asking: Lock = field(default_factory=Lock, init=False)

    def find(self, place: str) -> FoundInstance | None:
        """The feed instance at a place or above it, or None; the own cluster is first, files before tables."""
        with self._asking:
            if place not in self._found:
                self._found[place] = next(self._at(place), None)
            return self._found[place]

    def _at(self, place: str) -> Iterator[FoundInstance]:
        for are_tables in (False, True):
            for stores in (self.own, *self.others):
                cluster = stores.cluster.name
                for feed in self.feeds.values():
                    if feed.on(cluster) is None or (feed.table_on(cluster) is not None) is not are_tables:
                        continue
                    if instance := self._instance_at(stores, feed, place):
                        yield FoundInstance(feed.name, instance, "" if stores is self.own else cluster)

    def _instance_at(self, stores: StoresOf, feed: Feed, place: str) -> datetime | None:
        cluster = stores.cluster.name
        if cluster in self._silent:
            return None
        try:
            if (cluster, feed.name) not in self._kinds:
                self._kinds[cluster, feed.name] = kind_of(stores(feed))
            return self._kinds[cluster, feed.name].instance_at(feed, place)
        except UnreachableError:  # the others there would be waited for as long
            self._silent.add(cluster)
        except FalconError:  # somebody else's feed, whose store or template does not work
            pass
        return None

    def read(self, usage: Usage) -> Iterator[Consumption]:
        """The undeclared instances that were read, with their present versions."""
        for name, instance, cluster in usage.undeclared:
            feed = self.feeds[name]
            stores = next((one for one in self.others if one.cluster.name == cluster), self.own)
            store, path = stores(feed), InstancePaths(feed, stores.cluster).data(instance)
            try:
                version = kind_of(store).version(path, feed.availability_flag).version
            except FalconError:  # it was removed meanwhile
                version = None
            yield Consumption(name, instance, version, cluster or None, path=f"{store.root or ''}{path}")


def require_declared(usage: Usage, process: str, file: Path | str) -> None:
    """Raises WorkflowError, with advice, where an instance with ``strict_lineage`` exceeded its declaration."""
    if usage.problem:
        why = f"strict_lineage is set, and what it read and wrote is not known: {usage.problem}"
        raise WorkflowError(f"process {process!r}: {file}: {why}; falcon doctor says more")
    if usage.unknown:
        why = f"strict_lineage is set, and nobody knows where it {', or where it '.join(usage.unknown)}"
        raise WorkflowError(
            f"process {process!r}: {file}: {why}: read and write by Spark's queries, or remove strict_lineage"
        )
    if usage.breaches:
        said = "; ".join(usage.breaches)
        raise WorkflowError(
            f"process {process!r}: {file}: {said}: declare that in the process, or remove strict_lineage from it"
        )
