"""Evaluates SLAs: which breaches are new, and which are over."""

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
from falcon_assets.planning.workloads import ProcessWorkload, not_from_outside

_BUDGET = 20_000
"""How many instances are judged at once: what is more is left for the next time."""


_PAUSE_SECONDS = 120.0
"""Whoever did not evaluate for so long was off, and collectors were off with it."""
_CATCH_UP_SECONDS = 300.0
"""So long collectors have to look once after that; then absent is what they have not found."""


@dataclass(frozen=True)
class SlaOutcome:
    """What an evaluation found.

    Attributes:
        breached: How many breaches are new, those included that were met after all.
        cleared: How many of the older ones are over.
        is_complete: Whether everything was judged; else there is more to do at once.
        kept: The instances whose time is over and that kept their SLA.
    """

    breached: int
    cleared: int
    is_complete: bool
    kept: tuple[InstanceKey, ...] = ()


class SlaEvaluation:
    """The SLAs of the entities on a cluster."""

    def __init__(
        self,
        store: EntityStore,
        cluster: str,
        now: Callable[[], datetime],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Finds the deadlines; ``now`` says the time on the falcon clock, ``seconds`` how much real time passes."""
        self.problems: dict[tuple[str, str], str] = {}
        """Kind and name of what cannot be evaluated, and why."""
        self.cluster, self._now, self._seconds = cluster, now, seconds
        self._began = self._last = -math.inf
        there = [feed for feed in store.feeds.values() if feed.on(cluster) is not None]
        feeds = [feed for feed in there if feed.sla_on(cluster)]
        self._landing = {
            one.name for one in feeds if not not_from_outside(one, cluster, store.producers(one.name, cluster))
        }
        workloads = [one for one in store.process_workloads if one.cluster == cluster and one.entity.sla]
        self._entities: list[Feed | Process] = [*feeds, *(one.entity for one in workloads)]
        self.deadlines = (*self._of_feeds(store, feeds), *self._of_processes(workloads))
        self._is_reviewed = False

    def evaluate(self, ledger: Ledger) -> SlaOutcome:
        """Records the breaches that are new, and clears those that are met, in one transaction.

        The first time it also withdraws the breaches of what is not declared any more.
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

    def _of_processes(self, workloads: Iterable[ProcessWorkload]) -> Iterator[Deadline]:
        for one in workloads:
            if one.entity.sla is not None:
                try:
                    yield from process_deadlines(one.name, one.cluster, one.entity.sla, one.timeline)
                except FalconError as error:
                    self.problems["process", one.name] = str(error)

    def _tasks(
        self, connection: Connection, evaluated: datetime | None, now: datetime
    ) -> tuple[list[tuple[Deadline, ToJudge]], bool]:
        """What is to be judged now; and whether that is all."""
        status = statuses(connection, self._entities, now)
        judged, budget = sla_progress.judged(connection, self.cluster), _BUDGET
        looked, is_starting = last_collected(connection, self.cluster), self._is_starting()
        tasks, moved = [], {}
        for one in self.deadlines:
            scheduled = scheduled_by(status[one.kind, one.entity])
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
        """Whether nobody evaluated for a while until a short while ago: the collectors had no time to catch up."""
        at = self._seconds()
        if at - self._last > _PAUSE_SECONDS:
            self._began = at
        self._last = at
        return at - self._began < _CATCH_UP_SECONDS

    def _judge(
        self, connection: Connection, tasks: Sequence[tuple[Deadline, ToJudge]], now: datetime
    ) -> tuple[int, list[InstanceKey]]:
        """How many breaches are new, and which instances kept their SLA."""
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
        """The breaches of what is not declared any more."""
        declared: dict[DeadlineKey, Deadline] = {one.key: one for one in self.deadlines}
        for key, instances in sla_breaches.open_instances(connection, self.cluster).items():
            deadline = declared.get(key)
            if key[:2] in self.problems:
                continue
            for instance in instances:
                if deadline is None or not deadline.timeline.contains(instance):
                    yield Cleared((*key, instance), BreachState.WITHDRAWN, now)


def scheduled_by(status: EntityStatus) -> Scheduled:
    """When an entity of that status is scheduled."""
    if status.status is Status.RUNNING:
        return Scheduled(since=status.since)
    return Scheduled(until=status.since)


def _instances(store: EntityStore, feed: Feed, cluster: str) -> Timeline:
    """The instances of a feed that can come to a cluster."""
    if store.replications_to(feed.name, cluster):
        return replicated_timeline(feed, cluster) or feed_timeline(feed, cluster)
    return feed_timeline(feed, cluster)
