"""Ticks that decide only on what has changed: all other decisions of a coordinator stand.

What is known of them is in the memory of one process, and correct whatever other processes do: a decision follows from
tables and the clock, and each tick finds what changed there since its last look. A new process decides on everything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from sqlalchemy import Engine

from falcon_assets.entities.status import statuses
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import Name
from falcon_assets.instances.coordination.cluster_reruns import ClusterReruns, reruns_on, with_sources
from falcon_assets.instances.coordination.cluster_snapshot import WRITTEN_AFTER
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook
from falcon_assets.instances.coordination.input_gates import Closed, input_gates
from falcon_assets.instances.coordination.ledger_watch import watch_of
from falcon_assets.instances.coordination.news import Mark, StatusRow, mark_of, status_rows, touched
from falcon_assets.instances.rules.pending_reruns import PendingReruns
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.standing import FEED, WORKLOAD, Standing, Subject, standing_of
from falcon_assets.instances.runs.dead_runs import free_instances_of_deleted_runs, unfinished_runs
from falcon_assets.instances.store.process_rows import look_again
from falcon_assets.planning.retries import timeout_of

REPAIR_SECONDS = 600.0
"""After so long everything is decided again, whatever was noticed."""
_OFTEN_SECONDS = 0.5
"""How long nobody looks at what is decided in every tick, or by a clock that may be fast."""
_RUNS_SECONDS = 4.0
"""How often runs are looked at that may have died."""
_NOT_PENDING = PendingReruns()


@dataclass(frozen=True)
class _Look:
    """What decisions of a tick depend on, besides instances.

    ``at`` is on the falcon clock, ``runs`` has the workloads of unfinished runs.
    """

    mark: Mark
    at: datetime
    runs: Mapping[str, Subject | None]
    statuses: Mapping[Subject, StatusRow]
    reruns: Mapping[str, ClusterReruns]
    gates: Closed


@dataclass
class StandingDecisions:
    """The decisions of a coordinator's last ticks; its methods are called with the lock of the pipeline."""

    coordinator: Coordinator
    standing: dict[Name, Standing] = field(default_factory=dict, init=False)
    _last: _Look | None = field(default=None, init=False)
    _looked: datetime | None = field(default=None, init=False)
    """When the database was told last that somebody looks."""
    _all_at: float = field(default=0.0, init=False)
    _ticked_at: float = field(default=0.0, init=False)

    def wait(self, engine: Engine, seconds: float) -> None:
        """Returns when something happens, or a time comes, or after so many seconds."""
        last, now, clock = self._last, self.coordinator.settings.now(), self.coordinator.settings.clock
        times = [one.until for one in self.standing.values() if one.until is not None]
        if self._looked is not None:
            times.append(self._looked + WRITTEN_AFTER)
        left = (min(times) - now).total_seconds() if times else seconds
        is_fast = clock.origin is not None or any(one.is_open for one in self.standing.values())
        often = is_fast or last is None or bool(last.mark.runs or last.mark.unfolded)
        watch_of(engine).wait(
            last.mark if last else None, max(0.0, min(seconds, left, _OFTEN_SECONDS if often else left))
        )

    def is_quiet(self, engine: Engine) -> bool:
        """Whether a tick would have nothing to do, by one statement; needs no lock."""
        last, now = self._last, self.coordinator.settings.now()
        if last is None or self._is_overdue(last, now) or self._is_due(now):
            return False
        with engine.connect() as connection:
            mark = mark_of(connection)
        waits_for_runs = bool(mark.runs) and time.monotonic() - self._ticked_at >= _RUNS_SECONDS
        return mark == last.mark and not mark.unfolded and not waits_for_runs

    def tick(self, ledger: Ledger) -> Outlook:
        """Decides on what may have changed; all else is not touched, and is not in the outlook."""
        coordinator, now, last = self.coordinator, self.coordinator.settings.now(), self._last
        everything = last is None or self._is_overdue(last, now)
        self._ticked_at = time.monotonic()
        dead = coordinator.dead_runs.end(ledger) if everything or last is None or last.mark.runs else ()
        ledger.catch_up()
        look = self._look(ledger, now, None if everything else last)
        if everything or last is None or look.runs.keys() != last.runs.keys():
            free_instances_of_deleted_runs(ledger, now, coordinator.workloads)
        only = None if everything or last is None else self._stale(ledger, last, look)
        if only is None:
            self.standing.clear()
            self._all_at = time.monotonic()
        for key in only or ():
            self.standing.pop(key, None)
        outlook = Outlook((), {}, coordinator.refused)
        if only is None or only:
            outlook = coordinator.decide(ledger, only=only, keep=self._keep)
        if self._looked is None or now - self._looked >= WRITTEN_AFTER:
            with ledger.engine.begin() as connection:
                for cluster, names in self._names.items():
                    look_again(connection, cluster, names, now)
            self._looked = now
        self._last = look
        return Outlook(outlook.runs, outlook.decisions, outlook.problems, dead)

    def _is_overdue(self, last: _Look, now: datetime) -> bool:
        return now < last.at or time.monotonic() - self._all_at >= REPAIR_SECONDS

    def _is_due(self, now: datetime) -> bool:
        """Whether there is something to do, whatever the tables say."""
        if self._looked is None or now - self._looked >= WRITTEN_AFTER or len(self.standing) < len(self._timeouts):
            return True
        return any(one.is_open or (one.until is not None and one.until <= now) for one in self.standing.values())

    def _keep(self, situation: Situation, decision: Decision, producers: Sequence[Situation]) -> None:
        workload = situation.workload
        self.standing[workload.name, workload.cluster] = standing_of(situation, decision, producers)

    def _look(self, ledger: Ledger, now: datetime, last: _Look | None) -> _Look:
        """The ledger must be up to date; what changes after this look and before the decisions is seen by the next."""
        coordinator = self.coordinator
        with ledger.engine.begin() as connection:
            if last is None:  # entities that are new have their status then
                statuses(connection, [one.entity for one in coordinator.workloads], now)
        with ledger.engine.connect() as connection:
            mark = mark_of(connection)
            known = last.statuses if last and last.mark.statuses == mark.statuses else status_rows(connection)
            reruns = {one: reruns_on(connection, coordinator.store, one, (), now) for one in self._clusters}
            gates = input_gates(connection, coordinator.store, now)(self._gated)
        runs = last.runs if last and last.mark.runs == mark.runs else self._runs(ledger)
        return _Look(mark, now, runs, known, reruns, gates)

    def _runs(self, ledger: Ledger) -> dict[str, Subject | None]:
        found: dict[str, Subject | None] = {}
        for run in unfinished_runs(ledger.instance):
            process, cluster = run.tags.get(run_tags.PROCESS), run.tags.get(run_tags.CLUSTER)
            found[run.run_id] = (WORKLOAD, cluster, process) if process and cluster else None
        return found

    def _stale(self, ledger: Ledger, last: _Look, look: _Look) -> set[Name]:
        with ledger.engine.connect() as connection:
            subjects = touched(connection, last.mark.said)
        subjects |= {
            one for run in last.runs.keys() ^ look.runs.keys() if (one := last.runs.get(run) or look.runs.get(run))
        }
        subjects |= {key for key, _ in last.statuses.items() ^ look.statuses.items()}
        subjects |= {one for where in self._clusters for one in _asked(where, last.reruns[where], look.reruns[where])}
        subjects |= {
            (FEED, *key) for key in last.gates.keys() | look.gates.keys() if last.gates.get(key) != look.gates.get(key)
        }
        return {key for key in self._timeouts if self._is_stale(key, subjects, look.at)}

    def _is_stale(self, key: Name, subjects: set[Subject], now: datetime) -> bool:
        one = self.standing.get(key)
        if one is None or one.is_open or (one.until is not None and one.until <= now):
            return True
        paused = self._looked is not None and now - self._looked >= self._timeouts[key]
        return paused or not one.subjects.isdisjoint(subjects)

    @cached_property
    def _timeouts(self) -> dict[Name, timedelta]:
        decided = (one for one in self.coordinator.workloads if (one.name, one.cluster) not in self.coordinator.refused)
        return {(one.name, one.cluster): timeout_of(one) for one in decided}

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, cluster in self._timeouts:
            found.setdefault(cluster, []).append(name)
        return found

    @cached_property
    def _clusters(self) -> set[str]:
        """Where workloads may ask for reruns on which decisions depend."""
        sources = self.coordinator.store.sources
        return {one for cluster in self._names for one in with_sources(sources, cluster)}

    @cached_property
    def _gated(self) -> set[Name]:
        return {(one.reads_on, read.feed) for one in self.coordinator.workloads for read in one.gated}


def _asked(cluster: str, before: ClusterReruns, after: ClusterReruns) -> Iterator[Subject]:
    """What requested reruns on a cluster changed."""
    for name in before.requests.keys() | after.requests.keys():
        if before.requests.get(name) != after.requests.get(name):
            yield WORKLOAD, cluster, name
    for where in before.pending.keys() | after.pending.keys():
        one, other = (found.pending.get(where, _NOT_PENDING).by_feed for found in (before, after))
        yield from ((FEED, where, feed) for feed in one.keys() | other.keys() if one.get(feed) != other.get(feed))
