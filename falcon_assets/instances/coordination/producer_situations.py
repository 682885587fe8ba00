"""Situations of the workloads that write awaited feeds, on any cluster, read on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import statuses
from falcon_assets.errors import FalconError
from falcon_assets.history.queries import Name
from falcon_assets.instances.coordination.cluster_reruns import reruns_on
from falcon_assets.instances.coordination.cluster_snapshot import ClusterSnapshot
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.planning.workloads import Workload

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class ProducerSituations:
    connection: Connection
    store: EntityStore
    unfinished: Collection[dg.DagsterRun]
    now: datetime
    until: datetime | None = None
    asked: dict[Name, Situation] = field(default_factory=dict, init=False)
    """Those that were returned, by name and cluster; whoever wants to know what a decision depends on clears it."""
    _known: dict[tuple[str, str], Situation | None] = field(default_factory=dict, init=False)
    _found: dict[Name, Sequence[Situation]] = field(default_factory=dict, init=False)
    _snapshots: dict[tuple[str, str], tuple[ClusterSnapshot, Readiness]] = field(default_factory=dict, init=False)

    def add(self, snapshot: ClusterSnapshot, cluster: str, members: Iterable[Readiness]) -> None:
        """Reuses a snapshot that was made for other reasons."""
        for one in members:
            self._snapshots.setdefault((one.workload.name, cluster), (snapshot, one))

    def of(self, cluster: str, feed: str) -> Sequence[Situation]:
        """Leaves out workloads that cannot be decided on."""
        if (cluster, feed) not in self._found:
            found = (self._situation(one) for one in self.store.writers(feed, cluster))
            self._found[cluster, feed] = [one for one in found if one is not None]
        self.asked.update(((one.workload.name, one.workload.cluster), one) for one in self._found[cluster, feed])
        return self._found[cluster, feed]

    def _situation(self, workload: Workload) -> Situation | None:
        key = (workload.name, workload.cluster)
        if key not in self._known:
            try:
                if key not in self._snapshots:
                    self._add_upstream(workload)
                snapshot, readiness = self._snapshots[key]
                self._known[key] = snapshot.situation(readiness, 0)
            except FalconError:  # it is said where it is decided on
                self._known[key] = None
        return self._known[key]

    def _add_upstream(self, workload: Workload) -> None:
        """Makes one snapshot of all on its cluster that it depends on, itself included."""
        found: dict[str, Workload] = {}
        new = [workload]
        while new:
            found.update((one.name, one) for one in new)
            inputs = {(declared.feed, one.reads_on) for one in new for declared in one.inputs}
            makers = (one for key in inputs for one in self.store.writers(*key) if one.cluster == workload.cluster)
            new = [one for one in {one.name: one for one in makers}.values() if one.name not in found]
        members = [Readiness(one) for one in found.values() if (one.name, one.cluster) not in self._snapshots]
        cluster, connection, now = workload.cluster, self.connection, self.now
        status = statuses(connection, [one.workload.entity for one in members], now)
        reruns = reruns_on(connection, self.store, cluster, (), now)
        what = (connection, cluster, members, status, self.unfinished, now, self.until, reruns)
        self.add(ClusterSnapshot(*what, producers=self.of), cluster, members)
