"""Plays a world: real files, real sensors, real runs, and a clock that is put forward by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.simulation.commands import obey
from tests.simulation.ground import Ground
from tests.simulation.world import World
from tests.world import QUIET

KINDS = ("collector", "late_arrival", "coordinator")


class HandClock(Clock):
    """A frozen clock that can be put forward."""

    def put(self, time: datetime) -> None:
        object.__setattr__(self, "origin", time)


class Player:
    """A world on a Dagster instance."""

    def __init__(self, world: World, store: EntityStore, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.world, self.store, self.instance = world, store, instance
        self.clock = HandClock(origin=world.begin)
        self.settings = replace(settings, clock=self.clock)
        self.ledger = open_ledger(self.settings, instance)
        self.definitions = definitions_of(store, self.settings)
        self.repository = self.definitions.get_repository_def()
        self.job = cache(self.definitions.resolve_job_def)
        self.ground = Ground(world, store, settings)
        self.run_keys: Counter[str] = Counter()
        self.broken_off: list[str] = []
        (settings.home / "counters").mkdir()

    def play(self) -> None:
        for now in self.world.ticks:
            self.clock.put(now)
            obey(self.world, self.store, self.ledger, now)
            self.ground.land(now)
            kinds: Sequence[str] = KINDS
            while self._evaluated(kinds):
                kinds = KINDS[1:]  # nothing lands while the clock stands still

    def _evaluated(self, kinds: Sequence[str]) -> bool:
        """Every sensor of these kinds once, then the runs that they asked for; False when they asked for none."""
        requests: list[dg.RunRequest] = []
        names = [sensor.name for sensor in self.repository.sensor_defs]
        for kind in kinds:
            for name in sorted(name for name in names if name.endswith(f"__{kind}")):
                requests += self._tick(name).run_requests or []
        for request in requests:
            self._execute(request)
        return bool(requests)

    def _tick(self, name: str) -> Any:
        sensor = self.repository.get_sensor_def(name)
        with dg.build_sensor_context(instance=self.instance, repository_def=self.repository) as context:
            return sensor.evaluate_tick(context)

    def _execute(self, request: dg.RunRequest) -> None:
        assert request.run_key, request
        assert request.job_name, request
        self.run_keys[request.run_key] += 1
        result = self.job(request.job_name).execute_in_process(
            instance=self.instance,
            tags={**request.tags, "dagster/run_key": request.run_key},
            run_config=QUIET,
            raise_on_error=False,
        )
        for event in result.all_events:
            # Instances that fail on their own are reported by a dagster.Failure at the end of the run.
            if event.is_step_failure and event.step_failure_data.user_failure_data is None:
                self.broken_off.append(f"{request.run_key}: {event.step_failure_data.error_display_string}")
