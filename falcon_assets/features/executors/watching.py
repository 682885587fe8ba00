"""Probes of the executors of a cluster, those that are due, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.endpoints.probing import probe
from falcon_assets.compute.spark.sessions import own_application
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.coordination.provisioning import Provisioning
from falcon_assets.instances.store.executors import forget_others, known_executors, note_answer
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import Answer, ExecutorRecord, Health
from falcon_assets.settings import Settings

_AT_ONCE, _IN_A_PASS = 8, 24
"""A probe takes 16 seconds at most: a pass ends within a tick of Dagster."""


@dataclass(frozen=True)
class Probed:
    """A probe: what was known before, and what is now."""

    before: ExecutorRecord
    after: ExecutorRecord

    @property
    def news(self) -> str:
        """In words, where it is another state than before; "": it is the same."""
        if self.before.health is self.after.health:
            return ""
        why = f": {self.after.problem}" if self.after.problem else ""
        return f"executor {self.after.name} of {self.after.cluster} is {self.after.health.value}{why}"


@dataclass(frozen=True)
class ExecutorWatch:
    """Watches the executors that a cluster declares."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def provision(self, ledger: Ledger) -> list[str]:
        """Starts provisioned executors that work waits for, and stops idle ones; returns what was done, in words."""
        if not any(one.provision for one in self.cluster.executors):
            return []
        return Provisioning(self.store, self.cluster, self.settings, self.now).step(ledger)

    def probe_due(self, ledger: Ledger, *, all_online: bool = False) -> list[Probed]:
        """Probes executors that are due, ``all_online`` also those that answered last; the longest unasked first."""
        with ledger.engine.begin() as connection:
            forget_others(connection, self.cluster)
            known = known_executors(connection, self.cluster)
        executors = {one.name: one for one in self.cluster.executors}
        there = [one for one in known.values() if not one.provisioned or one.launched_at is not None]
        again = [one for one in there if one.is_due(self.now()) or (all_online and not one.failures)]
        again.sort(key=lambda one: (one.probed_at is not None, one.probed_at))
        return list(self._probed(ledger, [executors[one.name] for one in again[:_IN_A_PASS]]))

    def _probed(self, ledger: Ledger, executors: list[ClusterExecutor]) -> Iterator[Probed]:
        if not executors:
            return
        mine, environ = own_application(), self.settings.environ
        with ThreadPoolExecutor(min(_AT_ONCE, len(executors)), "probes") as pool:
            answers = list(pool.map(lambda one: probe(one, self.cluster.on(one.name), environ, mine), executors))
        for executor, answer in zip(executors, answers, strict=True):
            with ledger.engine.begin() as connection:
                used = Executors(connection, self.store, self.cluster.name, self.now())
                counted = _with_own(answer, used.own_cores(executor.name))
                yield Probed(*note_answer(connection, self.cluster, executor.name, counted, self.now()))


def _with_own(answer: Answer, own_cores: int) -> Answer:
    return replace(answer, load=replace(answer.load, own=own_cores)) if answer.load else answer


def changed(probed: list[Probed]) -> list[str]:
    """What is news, in words, without executors that answer for the first time."""
    return [one.news for one in probed if one.news and not (one.after.health is Health.ONLINE and _is_new(one))]


def _is_new(one: Probed) -> bool:
    return one.before.health is Health.UNKNOWN
