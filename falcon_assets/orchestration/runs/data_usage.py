"""What a process instance really read and wrote: seen by Spark's listener, told by the names of feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from falcon_assets.errors import FalconError, WorkflowError
from falcon_assets.events.inputs import Consumption
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.planning.lineage.usage import FeedInstance, Usage
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of


@dataclass(frozen=True)
class FeedPlaces:
    """The places of feeds on a cluster.

    Attributes:
        feeds: All feeds, by name.
        cluster: The cluster.
        store_of: The store that a feed lies on there.
    """

    feeds: Mapping[str, Feed]
    cluster: Cluster
    store_of: Callable[[Feed], ClusterStore]

    def find(self, place: str) -> FeedInstance | None:
        """The instance of a feed that lies at a place, or above it; None: none does."""
        for feed in self.feeds.values():
            if not feed.on(self.cluster.name):
                continue
            with suppress(FalconError):  # somebody else's feed, whose store or template does not work
                if instance := kind_of(self.store_of(feed)).instance_at(feed, place):
                    return feed.name, instance
        return None

    def read(self, usage: Usage) -> Iterator[Consumption]:
        """The instances that were read and are no inputs, with the versions that are there now."""
        for name, instance in usage.undeclared:
            feed = self.feeds[name]
            store, path = self.store_of(feed), InstancePaths(feed, self.cluster).data(instance)
            try:
                version = kind_of(store).version(path, feed.availability_flag).version
            except FalconError:  # it went meanwhile
                version = None
            yield Consumption(name, instance, version, path=f"{store.root or ''}{path}")


def require_declared(usage: Usage, process: str, file: Path | str) -> None:
    """Refuses what an instance of a process with ``strict_lineage`` has done besides what that declares.

    Raises:
        WorkflowError: says what, and what to do.
    """
    if usage.problem:
        why = f"strict_lineage is set, and what it read and wrote is not known: {usage.problem}"
        raise WorkflowError(f"process {process!r}: {file}: {why}; falcon doctor says more")
    if usage.breaches:
        said = "; ".join(usage.breaches)
        raise WorkflowError(
            f"process {process!r}: {file}: {said}: declare that in the process, or take strict_lineage out of it"
        )
