"""The queues of a location at a moment: what unfinished runs use of them, and what they admit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.mapping import run_tags
from falcon_assets.instances.rules.queues import Admission, admission, cores_of
from falcon_assets.model.queue import Queue
from falcon_assets.planning.instance_record import Launch
from falcon_assets.planning.workloads import Workload


class Queues:
    """Counts the runs that exist, and those that are admitted since."""

    def __init__(
        self, declared: Mapping[str, Queue], store: EntityStore, unfinished: Iterable[tuple[str, Mapping[str, str]]]
    ) -> None:
        """``unfinished`` has the job and the tags of each run that has not ended."""
        self._declared, self._store = declared, store
        self._used: dict[str, tuple[int, int]] = {}
        queued = {one.job_name: one for one in store.workloads if one.queue} if declared else {}
        for job, tags in unfinished if queued else ():
            if workload := queued.get(job):
                self._add(workload, [run_tags.slots_of(tags, 1)])

    def admission(self, workload: Workload) -> Admission | None:
        """What is admitted of a workload now; None: it is in no queue."""
        if workload.queue is None:
            return None
        name, cores = workload.queue, self._cores(workload)
        jobs_used, cores_used = self._used.get(name, (0, 0))
        empty = admission(name, self._declared.get(name), workload.entity.acl, cores)
        return replace(empty, jobs_used=jobs_used, cores_used=cores_used)

    def admit(self, workload: Workload, launches: Iterable[Launch]) -> None:
        self._add(workload, [one.slots for one in launches])

    def priority(self, workload: Workload) -> int:
        queue = self._declared.get(workload.queue or "")
        return queue.priority if queue else 0

    def _add(self, workload: Workload, slots: Sequence[int]) -> None:
        """Runs with so many slots each use the queue of a workload."""
        if workload.queue is not None and slots:
            jobs, cores = self._used.get(workload.queue, (0, 0))
            self._used[workload.queue] = jobs + sum(slots), cores + len(slots) * self._cores(workload)

    def _cores(self, workload: Workload) -> int:
        """As many as on the executor where a run has most: which one it gets is decided later."""
        cluster, machine = self._store.everywhere[workload.cluster], os.cpu_count() or 1
        return max(cores_of(workload, cluster.on(one.name), machine) for one in cluster.all_executors)
