"""Entities, their history and the ledger, at any time of 2013-01-01."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.late.sensors import LateArrivalHandler, LateOutlook
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook, PlannedRun
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import land_rows
from tests.hours import hour
from tests.records import R, read_record

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""The configuration of a run that prints nothing."""


@dataclass(frozen=True)
class World:
    """What tests of decisions and of runs share; data of an hour lies in a folder of its name."""

    store: EntityStore
    settings: Settings
    instance: dg.DagsterInstance
    ledger: Ledger

    def stores(self, cluster: str) -> StoresOf:
        """Where feeds lie on that cluster."""
        return StoresOf(self.store.cluster(cluster), self.settings.home, self.settings.environ)

    def at(self, time: str) -> Settings:
        """The settings with a clock that stands still at that time of the day."""
        return replace(self.settings, clock=Clock(origin=parse_instant(f"2013-01-01T{time}Z")))

    def definitions(self, time: str) -> dg.Definitions:
        return definitions_of(self.store, self.at(time))

    def folder(self, cluster: str, feed: str, number: int) -> Path:
        return self.settings.home / f"data/{cluster}/{feed}/2013-01-01-{number:02}"

    def write(self, feed: str, number: int, *numbers: int) -> None:
        """An hour lands on ``primary``, with a row for each number."""
        land_rows(self.folder("primary", feed, number), *({"n": n} for n in numbers))

    def result(self, feed: str, number: int) -> list[int]:
        """The numbers of the rows that Spark wrote on ``primary``."""
        files = sorted(self.folder("primary", feed, number).glob("part-*.json"))
        return [json.loads(line)["n"] for file in files for line in file.read_text().splitlines()]

    def collect(self, time: str) -> None:
        sources = (self.store.everywhere[name] for name in self.store.foreign_sources)
        for cluster in (*self.store.clusters.values(), *sources):
            assert Collector(self.store, cluster, self.at(time)).collect(self.ledger, 60).problems == {}

    def late(self, time: str, *processes: str) -> LateOutlook:
        return LateArrivalHandler(self.at(time).now, self._workloads(processes)).decide(self.ledger)

    def decide(self, time: str, *processes: str, **limits: Any) -> Outlook:
        return self.outlook(time, self._workloads(processes), **limits)

    def _workloads(self, processes: tuple[str, ...]) -> Sequence[Workload]:
        return self.store.workloads_of(*processes) if processes else self.store.workloads

    def outlook(self, time: str, workloads: Sequence[Workload], **limits: Any) -> Outlook:
        outlook = Coordinator(self.store, self.at(time), workloads).decide(self.ledger, **limits)
        assert outlook.problems == {}
        return outlook

    def step(self, time: str, *processes: str) -> list[str]:
        """Everything that there is to do at that time, run after run; the keys of the runs in their order."""
        return [run.run_key for run, _ in self.play(time, self._workloads(processes))]

    def play(self, time: str, workloads: Sequence[Workload]) -> list[tuple[PlannedRun, dg.ExecuteInProcessResult]]:
        """The same, with the results of the runs."""
        played: list[tuple[PlannedRun, dg.ExecuteInProcessResult]] = []
        while True:
            self.collect(time)
            LateArrivalHandler(self.at(time).now, workloads).decide(self.ledger)
            runs = self.outlook(time, workloads).runs
            if not runs:
                return played
            played.extend((run, self.execute(run, time)) for run in runs)
            assert len(played) < 50

    def execute(self, run: PlannedRun, time: str, **tags: str) -> dg.ExecuteInProcessResult:
        return self.run_job(run.job_name, time, tags={**run.tags, **tags})

    def run_job(self, name: str, time: str, **how: Any) -> dg.ExecuteInProcessResult:
        job = self.definitions(time).resolve_job_def(name)
        return job.execute_in_process(instance=self.instance, run_config=QUIET, raise_on_error=False, **how)

    def rows(self, process: str) -> dict[int, dict[str, Any]]:
        """What the ledger knows about the instances of a process, by their hour."""
        self.ledger.catch_up()
        table = PROCESS_INSTANCES
        with self.ledger.engine.connect() as connection:
            found = connection.execute(select(table).where(table.c.process == process).order_by(table.c.nominal))
            return {row.nominal.hour: dict(row._mapping) for row in found}

    def published(self, cluster: str, feed: str, number: int) -> list[FeedInstanceAvailable]:
        """What every materialization of an instance says, oldest first."""
        return self.records(FeedInstanceAvailable, cluster, feed, number)

    def records(self, kind: type[R], cluster: str, feed: str, number: int) -> list[R]:
        """The same, as records of another kind."""
        key, partition = dg.AssetKey([cluster, feed]), format_instant(hour(number))
        filters = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
        records = self.instance.fetch_materializations(filters, limit=100, ascending=True).records
        return [read_record(kind, record) for record in records]

    def everything(self) -> dict[str, list[Any]]:
        with self.ledger.engine.connect() as connection:
            return {
                table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
                for table in (PROCESS_INSTANCES, FEED_INSTANCES, CONSUMED, FOLD)
            }


MakeWorld: TypeAlias = Callable[..., Any]
"""Builds a world from files with definitions, of another class than :class:`World` if one is given."""


def run_instance(installation: Installation, process: str, partition: str, cluster: str = "primary") -> None:
    """Runs an instance of a process in the process of the test, as a person does who materializes it."""
    definitions = definitions_of(installation.entities, installation.settings)
    job = definitions.resolve_job_def(f"{cluster}__{process.replace('-', '_')}_job")
    assert job.execute_in_process(partition_key=partition, instance=installation.instance, run_config=QUIET).success


@pytest.fixture(scope="module")
def make_world(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> MakeWorld:
    """Worlds in the environment of the module."""

    def make(files: dict[str, str], kind: type[World] = World) -> World:
        store = load_entities(write_entities(files))
        return kind(store, settings, instance, open_ledger(settings, instance))

    return make


def world_of(files: dict[str, str], kind: type[World] = World) -> Callable[..., Any]:
    """A fixture: the world of these definitions, for all tests of the module."""

    @pytest.fixture(scope="module")
    def world(make_world: MakeWorld) -> World:
        return make_world(files, kind)

    return world


def said(reasons: Mapping[datetime, object] | Iterable[tuple[datetime, object]]) -> dict[datetime, str]:
    """Why instances wait, or wait no longer, in words."""
    return {nominal: str(reason) for nominal, reason in dict(reasons).items()}
