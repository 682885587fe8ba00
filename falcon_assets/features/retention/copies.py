"""Unfinished copies, to archives by killed passes and to targets by replications, that nothing completes any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import FalconError, StorageError
from falcon_assets.features.retention.store import Eviction
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.run_locks import all_taken, instance_lock
from falcon_assets.model.feed import Feed
from falcon_assets.planning.eviction import StoredInstance, Verdict, plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.reasons_to_keep import Need
from falcon_assets.planning.workloads import ReplicationWorkload, replication_name
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.eviction.evicting import abandon_archive
from falcon_assets.storage.eviction.unfinished_copies import UnfinishedCopy, remove_unfinished


def abandon_copies(
    earlier: Iterable[Eviction],
    going: Iterable[Eviction],
    clusters: Collection[str],
    store_of: Callable[[str, str | None], ClusterStore],
) -> Iterator[tuple[Eviction, FalconError]]:
    """Removes unfinished copies of earlier decisions from places that no present decision uses; archives stay.

    Copies on clusters that are not declared any more stay. Yields those that could not be removed.
    """
    wanted = {place for one in going for place in one.archive_places}
    for one in earlier:
        try:
            for cluster, root, path in sorted(one.archive_places - wanted):
                if cluster in clusters:
                    with driver_explained(cluster, f"remove what was copied to {root}{path}"):
                        abandon_archive(store_of(cluster, root or None), path, one.flag)
        except FalconError as error:
            yield one, error


class CopyVerdict(NamedTuple):
    copy: UnfinishedCopy
    verdict: Verdict
    """Never archives; its instance has no locations."""


def plan_copies(
    unfinished: Sequence[UnfinishedCopy],
    paths: InstancePaths,
    stored: Sequence[StoredInstance],
    now: datetime,
    needs: Callable[[Collection[datetime]], Sequence[Need]],
) -> list[CopyVerdict]:
    """Decides on each unfinished copy whose instance does not exist; copies of existing ones share their verdict."""
    there = {one.nominal for one in stored}
    found = {paths.instance(copy.path): copy for copy in unfinished}
    ours = {nominal: copy for nominal, copy in found.items() if nominal is not None and nominal not in there}
    if not ours:
        return []
    verdicts = plan_eviction(paths, [StoredInstance(nominal, ()) for nominal in ours], now, needs(ours))
    return [CopyVerdict(ours[one.instance.nominal], _deleting(one)) for one in verdicts]


def remove_copies(
    ledger: Ledger,
    replications: Sequence[ReplicationWorkload],
    feed: Feed,
    files: ClusterStore,
    planned: Sequence[CopyVerdict],
) -> Iterator[tuple[CopyVerdict, FalconError | None]]:
    """Removes copies under the locks of their instances, and yields errors; a copy in use by a run stays."""
    for one in planned:
        if one.verdict.action == "keep":
            continue
        nominal = one.verdict.instance.nominal
        cluster = files.cluster.name
        names = {replication_name(feed.name, source) for source in one.copy.sources}
        names |= {replication.name for replication in replications}
        error: FalconError | None = None
        with all_taken(ledger.engine, sorted(instance_lock(name, cluster, nominal) for name in names)) as is_ours:
            try:
                if not is_ours:
                    raise StorageError(
                        f"cluster {cluster!r}: cannot remove what was staged of {one.copy.path}: "
                        "it is being copied by a run; it goes when that has ended"
                    )
                if not remove_unfinished(files, one.copy, feed.availability_flag):
                    continue  # it has come meanwhile
            except FalconError as refusal:
                error = refusal
        yield one, error


def _deleting(verdict: Verdict) -> Verdict:
    """A copy that never was an instance is not archived."""
    if verdict.action == "keep":
        return verdict
    return verdict._replace(action="delete", archive_to=None)
