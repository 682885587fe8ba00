"""The executors of a cluster at a moment: what is known of them, and what runs use of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.dagster_internals.tables import existing_run_keys, unfinished_jobs
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.mapping import run_tags
from falcon_assets.instances.coordination.capabilities import capabilities_of
from falcon_assets.instances.rules.executors import ExecutorChoice, ExecutorState, NoExecutor
from falcon_assets.instances.rules.queues import cores_of
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.store.executors import Reserved, known_executors, note, reserve, reserved_runs
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import DEFAULT_EXECUTOR, Capability, ClusterExecutor
from falcon_assets.planning.capabilities import needs_of
from falcon_assets.planning.executor_health import ExecutorRecord, Health
from falcon_assets.planning.workloads import Workload

_RESERVED_FOR = timedelta(minutes=2)
"""A run that does not exist after so long never will: its daemon was stopped in between."""


class Executors:
    """Counts the runs that exist, those that other coordinators are about to start, and those that are chosen since."""

    def __init__(
        self,
        connection: Connection,
        store: EntityStore,
        cluster: str,
        now: datetime,
        *,
        of_default: bool = False,
    ) -> None:
        """``now`` is the real time; ``of_default``: the runs of an executor that is the only one are counted, too."""
        self._cluster, self._store, self._now = store.everywhere[cluster], store, now
        self._states: dict[str, ExecutorRecord] = {}
        self._stored: dict[str, Reserved] = {}
        self._reserved: dict[str, Reserved] = {}
        self._jobs, self._cores = Counter[str](), Counter[str]()
        self._wanted = set[str]()
        declared = self._cluster.executors
        if not (declared or of_default):
            return
        self._states = known_executors(connection, self._cluster)
        workloads = {one.job_name: one for one in store.workloads if one.cluster == cluster}
        there = [(job, tags) for job, tags in unfinished_jobs(connection) if job in workloads]
        for job, tags in there:
            if needs_of(workloads[job], store.everywhere, store.datasources) is not None:
                name = tags.get(run_tags.EXECUTOR, "") if declared else DEFAULT_EXECUTOR
                self._use(name, workloads[job], run_tags.slots_of(tags, 1))
        self._stored = reserved_runs(connection, self._cluster)
        self._reserved = self._to_come(connection)
        for name, reserved in self._reserved.items():
            for _, job, slots in reserved.values():
                self._use(name, workloads.get(job), slots)

    @classmethod
    def alone(cls, connection: Connection, store: EntityStore, cluster: str, now: datetime) -> Executors:
        """No other coordinator chooses executors of the cluster until the end of the transaction."""
        if store.everywhere[cluster].executors:
            lock_in_transaction(connection, f"falcon executors {cluster}")
        return cls(connection, store, cluster, now)

    def choice(self, workload: Workload) -> ExecutorChoice | None:
        """None: there is nothing to choose, or the workload needs none."""
        needs = needs_of(workload, self._store.everywhere, self._store.datasources) if self._states else None
        if needs is None:
            return None
        return ExecutorChoice([self._state(one, workload, needs) for one in self._cluster.executors])

    def want(self, workload: Workload, decision: Decision) -> None:
        """Has provisioned executors started, where instances wait for one after the decision."""
        waits = any(isinstance(one, NoExecutor) for one in decision.waiting.values())
        choice = self.choice(workload) if waits else None
        self._wanted.update(choice.to_start if choice else ())

    def admit(self, workload: Workload, launched: Mapping[str, tuple[str, int]]) -> None:
        """Key of a run that is about to exist -> its executor and slots."""
        for key, (name, slots) in launched.items():
            if name in self._states:
                self._use(name, workload, slots)
                self._reserved.setdefault(name, {})[key] = (self._now.isoformat(), workload.job_name, slots)

    def remember(self, connection: Connection) -> None:
        """Tells other coordinators which runs are about to exist, and who starts executors which are to be started."""
        changed = {name: one for name, one in self._reserved.items() if one != self._stored.get(name, {})}
        reserve(connection, self._cluster, changed)
        for name in self._wanted:
            note(connection, self._cluster, name, lambda record: replace(record, wanted_at=self._now))

    def own_cores(self, name: str) -> int:
        """How many cores runs have on the executor, or will."""
        return self._cores[name]

    def jobs(self, name: str) -> int:
        """How many instances run on the executor, or will."""
        return self._jobs[name]

    def _to_come(self, connection: Connection) -> dict[str, Reserved]:
        """The reserved runs that do not exist yet."""
        keys = [key for of_one in self._stored.values() for key in of_one]
        there = existing_run_keys(connection, keys) if keys else set()

        def is_to_come(key: str, reserved: tuple[str, str, int]) -> bool:
            return key not in there and self._is_young(reserved[0])

        return {
            name: {key: one for key, one in of_one.items() if is_to_come(key, one)}
            for name, of_one in self._stored.items()
        }

    def _is_young(self, reserved_at: str) -> bool:
        return abs(self._now - datetime.fromisoformat(reserved_at)) < _RESERVED_FOR

    def _use(self, name: str, workload: Workload | None, slots: int) -> None:
        executor = next((one for one in self._cluster.all_executors if one.name == name), None)
        if executor is not None:
            self._jobs[name] += slots
            self._cores[name] += self._needed(executor, workload)

    def _state(self, executor: ClusterExecutor, workload: Workload, needs: Iterable[Capability]) -> ExecutorState:
        record = self._states[executor.name]
        can = capabilities_of(executor)
        return ExecutorState(
            executor,
            lacks=next((one for one in sorted(needs) if one not in can), None),
            is_for_others=executor.queue is not None and executor.queue != workload.queue,
            is_stopped=record.health in (Health.STOPPED, Health.STARTING),
            offline=record.problem,
            jobs=self._jobs[executor.name],
            cores=self._cores[executor.name],
            needs=self._needed(executor, workload),
            load=record.load(self._now),
        )

    def _needed(self, executor: ClusterExecutor, workload: Workload | None) -> int:
        """How many cores a run has on the executor."""
        where = self._cluster.on(executor.name)
        if workload is not None and _takes_all(executor, where, workload):
            known = self._states.get(executor.name)
            load = known.load(self._now) if known else None
            return load.cores if load and load.cores else 1
        return cores_of(workload, where, os.cpu_count() or 1) if workload is not None else 1


def _takes_all(executor: ClusterExecutor, cluster: Cluster, workload: Workload) -> bool:
    """A standalone cluster gives an application all free cores, where nothing limits it."""
    said = {**cluster.properties, **workload.entity.properties}
    return executor.endpoint.startswith("spark://") and "spark.cores.max" not in said
