"""Evaluation of SLAs: new breaches, and those that are over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import EntityStatus, Status, statuses
from falcon_assets.errors import FalconError
from falcon_assets.features.sla import store as sla_breaches
from falcon_assets.features.sla import store as sla_progress
from falcon_assets.features.sla.lists import InstanceKey
from falcon_assets.features.sla.rules import (
    Deadline,
    Scheduled,
    ToJudge,
    breaches,
    feed_deadlines,
    kept,
    process_deadlines,
    seen_until,
    to_judge,
)
from falcon_assets.features.sla.store import BreachState, Cleared, DeadlineKey, Evaluation, JudgedSpan
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import last_collected
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.clock import is_set_back
from falcon_assets.planning.replication import replicated_timeline
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.workloads import Workload
from falcon_assets.planning.writers import not_from_outside

_BUDGET = 20_000
"""Instances judged at once; the next evaluation continues."""


_PAUSE_SECONDS = 120.0
"""After a pause this long between evaluations, collectors count as off, too."""
_CATCH_UP_SECONDS = 300.0
"""The time for collectors to search after such a pause; only then unrecorded data counts as absent."""


@dataclass(frozen=True)
class SlaOutcome:
    """The result of an evaluation.

    Attributes:
        breached: New breaches, including those met late.
        cleared: Older breaches that are over.
        is_complete: False: it must be repeated at once.
        kept: Instances past their time that met their SLA.
    """

    breached: int
    cleared: int
    is_complete: bool
    kept: tuple[InstanceKey, ...] = ()


class SlaEvaluation:
    def __init__(
        self,
        store: EntityStore,
        cluster: str,
        now: Callable[[], datetime],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now`` is the falcon clock, ``seconds`` a monotonic clock of real time."""
        self.problems: dict[tuple[str, str], str] = {}
        """(kind, name) -> why it cannot be evaluated."""
        self.cluster, self._now, self._seconds = cluster, now, seconds
        self._began = self._last = -math.inf
        there = [feed for feed in store.feeds.values() if feed.on(cluster) and store.includes(cluster, feed.name)]
        feeds = [feed for feed in there if feed.sla_on(cluster)]
        self._landing = {
            one.name for one in feeds if not not_from_outside(one, cluster, store.producers(one.name, cluster))
        }
        here = [one for one in store.workloads if one.cluster == cluster and one.sla]
        workloads = [one for one in here if store.includes(cluster, one.assets[0])]
        self._entities: list[Feed | Process] = [*feeds, *(one.entity for one in workloads)]
        self.deadlines = (*self._of_feeds(store, feeds), *self._of_processes(workloads))
        self._is_reviewed = False

    def evaluate(self, ledger: Ledger) -> SlaOutcome:
        """Records new breaches and clears those that are met, in one transaction, under the lock of the cluster.

        The first call also withdraws breaches of deadlines that are not declared any more.
        """
        ledger.catch_up()
        with ledger.engine.begin() as connection:
            lock_in_transaction(connection, f"falcon sla {self.cluster}")
            now, event_id = self._now(), sla_progress.folded(connection)
            last = sla_progress.last_evaluation(connection, self.cluster)
            before = last.at if last else None
            if before is not None and is_set_back(before, now):
                sla_progress.forget_judged(connection, self.cluster)
                before = now
            tasks, is_complete = self._tasks(connection, before, now)
            breached, in_time = self._judge(connection, tasks, now)
            cleared = self._cleared(connection, last.event_id if last else 0, now)
            sla_breaches.clear_breaches(connection, cleared)
            done = Evaluation(max(before or now, now), event_id)
            sla_progress.set_evaluated(connection, self.cluster, done)
        self._is_reviewed = True
        return SlaOutcome(breached, len(cleared), is_complete, tuple(in_time))

    def _of_feeds(self, store: EntityStore, feeds: Iterable[Feed]) -> Iterator[Deadline]:
        for feed in feeds:
            sla = feed.sla_on(self.cluster)
            if sla is not None:
                yield from feed_deadlines(feed.name, self.cluster, sla, _instances(store, feed, self.cluster))

    def _of_processes(self, workloads: Iterable[Workload]) -> Iterator[Deadline]:
        for one in workloads:
            if one.sla is not None:
                try:
                    yield from process_deadlines(one.name, one.cluster, one.sla, one.timeline)
                except FalconError as error:
                    self.problems["process", one.name] = str(error)

    def _tasks(
        self, connection: Connection, evaluated: datetime | None, now: datetime
    ) -> tuple[list[tuple[Deadline, ToJudge]], bool]:
        status = statuses(connection, self._entities, now)
        judged, budget = sla_progress.judged(connection, self.cluster), _BUDGET
        looked, is_starting = last_collected(connection, self.cluster), self._is_starting()
        tasks, moved = [], {}
        for one in self.deadlines:
            scheduled = scheduled_by(status[one.declared_by])
            is_landing = one.kind == "feed" and one.entity in self._landing
            seen = seen_until(now, looked.get(one.entity) if is_landing else None, is_starting=is_starting)
            task = to_judge(one, scheduled, judged.get(one.key), evaluated, now, budget, seen)
            budget -= len(task.indexes)
            if task.judged is not None:
                moved[one.key] = task.judged
            if task.indexes:
                tasks.append((one, task))
        sla_progress.set_judged(connection, moved)
        return tasks, budget > 0

    def _is_starting(self) -> bool:
        """Returns whether evaluation resumed a short while ago: collectors had no time to catch up."""
        at = self._seconds()
        if at - self._last > _PAUSE_SECONDS:
            self._began = at
        self._last = at
        return at - self._began < _CATCH_UP_SECONDS

    def _judge(
        self, connection: Connection, tasks: Sequence[tuple[Deadline, ToJudge]], now: datetime
    ) -> tuple[int, list[InstanceKey]]:
        spans = [
            JudgedSpan(one.key, one.timeline.instance(task.indexes[0]), one.timeline.instance(task.indexes[-1]))
            for one, task in tasks
        ]
        known = sla_progress.known_in(connection, spans)
        found = [breach for one, task in tasks for breach in breaches(one, task.indexes, known.get(one.key, {}))]
        in_time = [
            (one.kind, one.entity, one.cluster, instance)
            for one, task in tasks
            for instance in kept(one, task.indexes, known.get(one.key, {}))
        ]
        return sla_breaches.record_breaches(connection, found, now), in_time

    def _cleared(self, connection: Connection, event_id: int, now: datetime) -> list[Cleared]:
        cleared = []
        for breach in sla_breaches.changed_since(connection, self.cluster, event_id):
            if breach.met_at is not None:
                cleared.append(Cleared(breach.key, BreachState.MET, max(breach.met_at, breach.deadline)))
            elif not breach.known.expected:
                cleared.append(Cleared(breach.key, BreachState.WITHDRAWN, now))
        if not self._is_reviewed:
            known = {one.key for one in cleared}
            cleared += [one for one in self._withdrawn(connection, now) if one.key not in known]
        return cleared

    def _withdrawn(self, connection: Connection, now: datetime) -> Iterator[Cleared]:
        declared: dict[DeadlineKey, Deadline] = {one.key: one for one in self.deadlines}
        for key, instances in sla_breaches.open_instances(connection, self.cluster).items():
            deadline = declared.get(key)
            if key[:2] in self.problems:
                continue
            for instance in instances:
                if deadline is None or not deadline.timeline.contains(instance):
                    yield Cleared((*key, instance), BreachState.WITHDRAWN, now)


def scheduled_by(status: EntityStatus) -> Scheduled:
    if status.status is Status.RUNNING:
        return Scheduled(since=status.since)
    return Scheduled(until=status.since)


def _instances(store: EntityStore, feed: Feed, cluster: str) -> Timeline:
    if store.replications_to(feed.name, cluster):
        return replicated_timeline(feed, cluster) or feed_timeline(feed, cluster)
    return feed_timeline(feed, cluster)
