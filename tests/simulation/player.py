"""Plays a world: real files, real sensors, real runs, and a clock that is put forward by hand."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.ledger.status import Status, command
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.orchestration.open_ledger import open_ledger
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.data_version import fingerprint
from tests.simulation.world import Arrival, World

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
KINDS = ("collector", "late_arrival", "coordinator")


class HandClock(Clock):
    """A frozen clock that can be put forward."""

    def put(self, time: datetime) -> None:
        object.__setattr__(self, "origin", time)


class Player:
    """A world on a Dagster instance; `versions` names all data versions that came from outside."""

    def __init__(self, world: World, store: EntityStore, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.world, self.store, self.instance = world, store, instance
        self.clock = HandClock(origin=world.begin)
        self.settings = replace(settings, clock=self.clock)
        self.ledger = open_ledger(self.settings, instance)
        self.definitions = build_definitions(store, self.settings)
        self.repository = self.definitions.get_repository_def()
        self.job = cache(self.definitions.resolve_job_def)
        self.versions: dict[tuple[str, str, str], str] = {}
        self.run_keys: Counter[str] = Counter()
        self.broken_off: list[str] = []
        self.landed = 0
        (settings.home / "counters").mkdir()

    def play(self) -> None:
        for now in self.world.ticks:
            self.clock.put(now)
            self._obey(now)
            self._land(now)
            kinds: Sequence[str] = KINDS
            while self._look(kinds):
                kinds = KINDS[1:]  # nothing lands while the clock stands still

    def _obey(self, now: datetime) -> None:
        for one in self.world.commands:
            if one.tick == now:
                status = Status.SUSPENDED if one.verb == "suspend" else Status.RUNNING
                with self.ledger.engine.begin() as connection:
                    command(connection, self.store.process(one.process), status, now)

    def _land(self, now: datetime) -> None:
        while self.landed < len(self.world.arrivals) and self.world.arrivals[self.landed].time <= now:
            self._write(self.world.arrivals[self.landed])
            self.landed += 1

    def _write(self, arrival: Arrival) -> None:
        """The data first, the flag last."""
        cluster, name, instance = arrival.key
        path = self._path(name, instance)
        place = self.settings.home / "data" / cluster / path[1:]
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "data.txt").write_text(f"{arrival.version}\n")
        (place / "_SUCCESS").touch()
        files = ClusterStore(self.store.cluster(cluster), self.settings.home, self.settings.environ)
        self.versions[cluster, name, fingerprint(files, path, "_SUCCESS").version] = arrival.version

    def content(self, cluster: str, feed: str, instance: datetime) -> str:
        """The one line that an instance holds now."""
        (file,) = (self.settings.home / "data" / cluster / self._path(feed, instance)[1:]).glob("*.txt")
        return file.read_text().rstrip("\n")

    def _path(self, name: str, instance: datetime) -> str:
        feed = self.world.feed(name)
        if feed.every[0] == "days":
            return f"/{name}/{instance.astimezone(ZoneInfo(feed.zone)):%Y-%m-%d}"
        return f"/{name}/{instance:%Y-%m-%d-%H-%M}"

    def _look(self, kinds: Sequence[str]) -> bool:
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
