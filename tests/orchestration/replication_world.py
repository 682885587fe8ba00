"""Feeds that are replicated, and their history, at any time of 2013-01-01."""

from __future__ import annotations

import json
from dataclasses import dataclass

import dagster as dg

from falcon_assets.history.events.process_instances import FilesCopied
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.workloads import Workload
from tests.hours import hour
from tests.world import World

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
class ReplicationWorld(World):
    """The entities and their history, at any time of that day."""

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

    def step(self, time: str, feed: str, cluster: str | None = None) -> list[str]:
        """Everything that there is to do at that time for what reads the feed; the keys of the runs in their order."""
        played = self.play(time, self.chosen(feed, cluster))
        assert all(result.success for _, result in played)
        return [run.run_key for run, _ in played]

    def waiting(self, time: str, feed: str) -> dict[tuple[str, str], dict[int, str]]:
        outlook = self.outlook(time, self.chosen(feed))
        assert outlook.runs == ()
        return {
            key: {nominal.hour: str(why) for nominal, why in decision.waiting.items()}
            for key, decision in outlook.decisions.items()
            if decision.waiting
        }

    def copied(self, cluster: str, feed: str, number: int) -> list[FilesCopied]:
        """What the copies were that it was published from."""
        return self.records(FilesCopied, cluster, feed, number)

    def messages(self, cluster: str, feed: str, number: int) -> list[str]:
        """What the runs that published an instance said of their copies."""
        key, partition = dg.AssetKey([cluster, feed]), format_instant(hour(number))
        filters = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
        records = self.instance.fetch_materializations(filters, limit=100).records
        logs = [entry for one in records for entry in self.instance.all_logs(one.run_id)]
        return [entry.user_message for entry in logs if " files, " in entry.user_message]
