"""Plays a world on an installation, step by step: the clock is put forward when all is quiet, and not before."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import dagster as dg
from sqlalchemy import select

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.late.sensors import LateArrivalHandler
from falcon_assets.history import queries
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator, PlannedRun
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from tests.faults.installation import Site
from tests.faults.step_clock import COLLECTORS, DECIDERS, StepClock
from tests.simulation.commands import obey
from tests.simulation.ground import Ground
from tests.simulation.world import World
from tests.waiting import wait_until

PATIENCE = 900.0
"""For one step with all that is killed in it, on a machine that is very busy; on a quiet one it takes seconds."""
BEGUN = (8, 28)
"""So many instances begin between two strikes: what is killed has got going again."""
_AGAIN_SECONDS = 3.0
"""What is not launched by then is decided on anew."""
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass
class Strikes:
    """What is done to the installation, one after the other.

    Attributes:
        choose: Of what and when.
        any_time: Kinds of strikes for whatever runs.
        while_late: Kinds of strikes for when a late rerun is at work.
        while_landing: Kinds of strikes for when the collectors find new data.
        next_one: The strike after so many beginnings of instances.
        begun: So many instances begin between two strikes.
        late: The late reruns that were at work when something was struck.
    """

    choose: random.Random
    any_time: list[str]
    while_late: list[str]
    while_landing: list[str]
    next_one: int = 2
    begun: tuple[int, int] = BEGUN
    late: list[str] = field(default_factory=list)

    def due(self, begun: int, late: Sequence[str]) -> str | None:
        """The strike for now."""
        fresh = [run for run in late if run not in self.late]
        if self.while_late and fresh:
            self.late += fresh
            return self.while_late.pop(0)
        if self.any_time and begun >= self.next_one:
            self.late += fresh
            return self.any_time.pop(0)
        return None


class Director:
    """A world on an installation, whose own daemon launches everything.

    The director decides too, while nobody else does: the decision is the same, whoever makes it, and says what is still
    to come. It launches nothing.
    """

    def __init__(self, world: World, site: Site, store: EntityStore, settings: Settings, strikes: Strikes) -> None:
        self.world, self.site, self.store, self.strikes = world, site, store, strikes
        self.clock = StepClock(settings.home)
        self.settings = replace(settings, clock=self.clock)
        self.ground = Ground(world, store, self.settings)
        self.clock.put(world.begin)
        self._collectors = [Collector(store, cluster, self.settings) for cluster in store.clusters.values()]
        self._late_arrival = LateArrivalHandler(self.settings.now, store.process_workloads)
        self._coordinator = Coordinator(store, self.settings, store.process_workloads)
        self._decided: tuple[int, float] = (-1, 0.0)

    def play(self, instance: dg.DagsterInstance) -> Ledger:
        """All of it; the ledger in the end."""
        ledger = open_ledger(self.settings, instance)
        struck = self.strikes.choose.sample(self.world.ticks[1:-3], len(self.strikes.while_landing))
        for now in self.world.ticks:
            with self.clock.alone(DECIDERS):
                with self.clock.alone(COLLECTORS):
                    self.clock.put(now)
                    obey(self.world, self.store, ledger, now)
                    self.ground.land(now)
                    if now not in struck:
                        self._collect(ledger)
                if now in struck:
                    self._strike(self.strikes.while_landing.pop(0))
                    wait_until(lambda: self._collected(ledger), PATIENCE, lambda: self._story(ledger))
                self._late_arrival.decide(ledger)
            wait_until(lambda: self._quiet(ledger), PATIENCE, lambda: self._story(ledger))
        return ledger

    def _collect(self, ledger: Ledger) -> None:
        for collector in self._collectors:
            found = collector.collect(ledger, 60)
            assert (found.left, found.problems) == (0, {})

    def _collected(self, ledger: Ledger) -> bool:
        """Whether the daemon's collectors have gone through everything since the clock was put forward."""
        self.site.ensure()
        with ledger.engine.connect() as connection:
            collected = [at for name in self.store.clusters for at in queries.last_collected(connection, name).values()]
        return min(collected) == self.settings.now()

    def _quiet(self, ledger: Ledger) -> bool:
        """Whether nothing is at work and nothing is to be launched; strikes in between, and mends what is broken."""
        self.site.ensure()
        working = ledger.instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
        if working:
            self._strike_runs(working)
            return False
        runs = ledger.instance.get_runs_count()
        if self._decided[0] == runs and time.monotonic() < self._decided[1] + _AGAIN_SECONDS:
            return False  # the daemon has been told, and has not launched it yet
        with self.clock.alone(DECIDERS):
            to_launch = self._decide(ledger)
            self._decided = (runs, time.monotonic())
            if to_launch or ledger.instance.get_runs(dg.RunsFilter(statuses=UNFINISHED), limit=1):
                return False
            if self._killed(ledger):
                self.clock.put(self.settings.now() + timedelta(minutes=1))  # when they are tried again
                self._decided = (-1, 0.0)
                return False
        return True

    def _decide(self, ledger: Ledger) -> tuple[PlannedRun, ...]:
        self._late_arrival.decide(ledger)
        outlook = self._coordinator.decide(ledger)
        assert outlook.problems == {}
        return outlook.runs

    def _killed(self, ledger: Ledger) -> int:
        """How many instances failed: nothing here does by itself."""
        failed = PROCESS_INSTANCES.c.state == InstanceState.FAILED.value
        with ledger.engine.connect() as connection:
            return len(connection.execute(select(PROCESS_INSTANCES.c.nominal).where(failed)).all())

    def _strike_runs(self, working: Sequence[dg.DagsterRun]) -> None:
        started = [run for run in working if run.status is dg.DagsterRunStatus.STARTED]
        late = [run.run_id for run in started if run_tags.LATE in run.tags]
        begun = len(self.site.journal())
        kind = self.strikes.due(begun, late)
        if kind is not None:
            self._strike(kind)
            self.strikes.next_one = len(self.site.journal()) + self.strikes.choose.randint(*self.strikes.begun)

    def _strike(self, kind: str) -> None:
        time.sleep(self.strikes.choose.uniform(0, 1))  # at any point of what it does
        self.site.strike(kind, self.strikes.choose)

    def _story(self, ledger: Ledger) -> str:
        return "\n".join([f"seed {self.world.seed} at {self.settings.now()}", *self._working(ledger), *self.site.said])

    def _working(self, ledger: Ledger) -> Iterator[str]:
        for run in ledger.instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
            yield f"{run.run_id} {run.status.value} {run.tags}"
