"""Requested reruns on a cluster, for coordinators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.instances.rules.pending_reruns import PendingReruns, pending_reruns
from falcon_assets.instances.store import changed_inputs, reruns
from falcon_assets.planning.instance_record import InstanceRecord, RerunRequest
from falcon_assets.planning.late_inputs import late_inputs
from falcon_assets.planning.retries import is_alive
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class ClusterReruns:
    """The requests on a cluster that are alive, by workload and nominal time.

    ``pending`` has, by cluster, the outputs awaited from them, and from those on the clusters that it is replicated
    from.
    """

    requests: Mapping[str, Mapping[datetime, RerunRequest]] = field(default_factory=dict)
    records: Mapping[str, Mapping[datetime, InstanceRecord]] = field(default_factory=dict)
    pending: Mapping[str, PendingReruns] = field(default_factory=dict)


def reruns_on(
    connection: Connection, store: EntityStore, cluster: str, own: Collection[str], now: datetime
) -> ClusterReruns:
    """Reads the live requests on the cluster, and deletes dead ones of workloads in ``own``.

    Readers of late reruns wait already although their own reruns are not requested yet: the late-arrival sensor ticks
    less often than coordinators do.
    """
    clusters = with_sources(store.sources, cluster)
    watched = [key for key in late_inputs(store.late_workloads) if key[0] in clusters]
    # In this order: a rerun that ends in between is alive in the one, or has left its readers stale in the other.
    found = reruns.requested(connection, clusters)
    following = _following(connection, store, watched, now)
    if not found and not following:
        return ClusterReruns()
    alive, served = list[reruns.Requested](), list[reruns.Requested]()
    for one in found:
        (alive if _is_alive(one, store.workload(one.process, one.cluster)) else served).append(one)
    reruns.forget(connection, cluster, [one for one in served if one.cluster == cluster and one.process in own])
    requests: dict[str, dict[datetime, RerunRequest]] = {}
    records: dict[str, dict[datetime, InstanceRecord]] = {}
    for one in alive:
        if one.cluster == cluster:
            requests.setdefault(one.process, {})[one.nominal] = one.request
            records.setdefault(one.process, {})[one.nominal] = one.record
    asked = [*((one.process, one.cluster, one.nominal) for one in alive), *following]
    late_readers = partial(changed_inputs.late_readers, connection, watched)
    return ClusterReruns(requests, records, pending_reruns(asked, store.workload, late_readers))


def with_sources(sources: Mapping[str, Collection[str]], cluster: str) -> set[str]:
    """The cluster, and all clusters from which data reaches it, directly or not."""
    found, new = set[str](), {cluster}
    while new:
        found |= new
        new = {source for one in new for source in sources.get(one, ())} - found
    return found


def _following(
    connection: Connection, store: EntityStore, watched: changed_inputs.LateInputs, now: datetime
) -> list[ProcessKey]:
    """Instances whose late inputs were replaced by late reruns: they run again at the next tick."""
    changed = changed_inputs.changed(connection, watched)
    found = [key for key, one in changed.items() if any(arrival.by_late_rerun for arrival in one.arrivals)]
    if not found:
        return []
    readers = {key: reader for key in found if (reader := store.workload(key[0], key[1]))}
    status = statuses(connection, [one.entity for one in readers.values()], now)
    return [
        key
        for key, reader in readers.items()
        if status[reader.entity.kind, reader.entity.name].status is not Status.SUBMITTED
        and reader.timeline.contains(key[2])
    ]


def _is_alive(one: reruns.Requested, workload: Workload | None) -> bool:
    if workload is None or not workload.timeline.contains(one.nominal):
        return False
    return is_alive(one.request, one.record, workload.retry)
