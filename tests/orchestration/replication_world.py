"""Feeds that are replicated, and their history, at any time of 2013-01-01."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy import select

from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.late.sensors import LateArrivalHandler
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import FilesCopied
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator, PlannedRun
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.workloads import Workload
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.hours import hour
from tests.orchestration.ledger_world import LedgerWorld
from tests.records import R, read_record

FEED = """---
kind: feed
name: %s
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(6)}
locations: {data: "/%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
%s
schedule: %s
"""
SPAN = "validity: {start: 2013-01-01T%s:00Z, end: 2013-01-01T%s:00Z}"


def on(name: str, role: str, start: str = "00", end: str = "08", more: str = "") -> str:
    return f"  - {{name: {name}, type: {role}, {SPAN % (start, end)}{more}}}"


def feed(name: str, *clusters: str, schedule: str = "true", more: str = "") -> str:
    return FEED % (name, name, "\n".join(clusters), schedule) + more


@dataclass(frozen=True)
class ReplicationWorld(LedgerWorld):
    """The entities and their history, at any time of that day."""

    def folder(self, cluster: str, feed: str, number: int) -> Path:
        return self.settings.home / f"data/{cluster}/{feed}/2013-01-01-{number:02}"

    def land(self, cluster: str, feed: str, number: int, **files: int) -> None:
        folder = self.folder(cluster, feed, number)
        for name, value in files.items():
            file = folder / f"{name.replace('__', '/')}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"n": value}) + "\n")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_SUCCESS").touch()

    def files(self, cluster: str, feed: str, number: int) -> dict[str, int] | None:
        """What a complete instance holds; None where there is none."""
        folder = self.folder(cluster, feed, number)
        if not (folder / "_SUCCESS").exists():
            return None
        return {
            str(file.relative_to(folder)): json.loads(file.read_text())["n"] for file in sorted(folder.rglob("*.json"))
        }

    def chosen(self, feed: str, cluster: str | None = None) -> list[Workload]:
        """What reads the feed, on that cluster or on any."""
        readers = [one for one in self.store.workloads if one.inputs[0].feed == feed]
        return [one for one in readers if cluster in (None, one.cluster)]

    def collect(self, time: str) -> None:
        for cluster in self.store.clusters.values():
            assert Collector(self.store, cluster, self.at(time)).collect(self.ledger, 60).problems == {}

    def step(self, time: str, feed: str, cluster: str | None = None) -> list[str]:
        """Everything that there is to do at that time for what reads the feed; the keys of the runs in their order."""
        keys: list[str] = []
        while True:
            self.collect(time)
            LateArrivalHandler(self.at(time).now, self.chosen(feed, cluster)).decide(self.ledger)
            outlook = Coordinator(self.store, self.at(time), self.chosen(feed, cluster)).decide(self.ledger)
            assert outlook.problems == {}
            if not outlook.runs:
                return keys
            for run in outlook.runs:
                assert self.execute(run, time).success
                keys.append(run.run_key)
            assert len(keys) < 50

    def execute(self, run: PlannedRun, time: str) -> dg.ExecuteInProcessResult:
        return self.run_job(run.job_name, time, tags=dict(run.tags))

    def run_job(self, name: str, time: str, **how: Any) -> dg.ExecuteInProcessResult:
        job = definitions_of(self.store, self.at(time)).resolve_job_def(name)
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        return job.execute_in_process(instance=self.instance, run_config=quiet, raise_on_error=False, **how)

    def waiting(self, time: str, feed: str) -> dict[tuple[str, str], dict[int, str]]:
        outlook = Coordinator(self.store, self.at(time), self.chosen(feed)).decide(self.ledger)
        assert outlook.runs == ()
        return {
            key: {nominal.hour: str(why) for nominal, why in decision.waiting.items()}
            for key, decision in outlook.decisions.items()
            if decision.waiting
        }

    def published(self, cluster: str, feed: str, number: int) -> list[FeedInstanceAvailable]:
        """What every materialization of an instance says, oldest first."""
        return self._said(FeedInstanceAvailable, cluster, feed, number)

    def copied(self, cluster: str, feed: str, number: int) -> list[FilesCopied]:
        """What the copies were that it was published from."""
        return self._said(FilesCopied, cluster, feed, number)

    def _said(self, kind: type[R], cluster: str, feed: str, number: int) -> list[R]:
        filters = dg.AssetRecordsFilter(
            asset_key=dg.AssetKey([cluster, feed]), asset_partitions=[format_instant(hour(number))]
        )
        records = self.instance.fetch_materializations(filters, limit=100, ascending=True).records
        return [read_record(kind, record) for record in records]

    def messages(self, cluster: str, feed: str, number: int) -> list[str]:
        """What the runs that published an instance said of their copies."""
        key, partition = dg.AssetKey([cluster, feed]), format_instant(hour(number))
        filters = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
        records = self.instance.fetch_materializations(filters, limit=100).records
        logs = [entry for one in records for entry in self.instance.all_logs(one.run_id)]
        return [entry.user_message for entry in logs if " files, " in entry.user_message]

    def everything(self) -> dict[str, list[Any]]:
        with self.ledger.engine.connect() as connection:
            return {
                table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
                for table in (PROCESS_INSTANCES, FEED_INSTANCES, CONSUMED, FOLD)
            }
