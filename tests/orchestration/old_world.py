"""Feeds with a long past on a cluster, a collector, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import dagster as dg
from sqlalchemy import select, update

from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.features.landing.old_instances import OldInstances
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.tables import FEED_INSTANCES, INCOMPLETE, PASSES, PUSHED
from falcon_assets.model.instant import format_instant, parse_instant
from tests.records import has_record
from tests.world import World

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: {cluster}, validity: {{start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
"""


@dataclass(frozen=True)
class OldWorld(World):
    """It is the first of January 2013; what is a year old is older than any horizon."""

    passing: dict[str, OldInstances] = field(default_factory=dict)

    def collector(self, cluster: str, time: str = "00:30") -> Collector:
        return Collector(self.store, self.store.cluster(cluster), self.at(time))

    def tick(self, cluster: str, time: str = "00:30") -> Collection:
        return self.collector(cluster, time).collect(self.ledger, 60)

    def go_on(self, cluster: str, requests: int = 1000, *, seconds: float = 60) -> Collection:
        """A look at the past, as if the last pass had begun two minutes ago."""
        if cluster not in self.passing:
            self.passing[cluster] = OldInstances(self.collector(cluster))
        with self.ledger.engine.begin() as connection:
            connection.execute(update(PASSES).values(before=PASSES.c.before - timedelta(minutes=2)))
        self.ledger.catch_up()
        return self.passing[cluster].collect(self.ledger, seconds, requests)

    def folder(self, cluster: str, feed: str, instance: str) -> Path:
        return self.settings.home / f"data/{cluster}/{feed}/{instance[:10]}/{instance[11:13]}"

    def land(self, cluster: str, feed: str, *instances: str, complete: bool = True) -> None:
        for instance in instances:
            folder = self.folder(cluster, feed, instance)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "part.csv").write_text("a,1\n")
            if complete:
                (folder / "_SUCCESS").touch()

    def events(self, cluster: str, feed: str) -> list[dg.AssetMaterialization]:
        """What was recorded in full, as it came."""
        key = dg.AssetKey([cluster, feed])
        records = self.instance.fetch_materializations(key, limit=1000, ascending=True).records
        events = [event for record in records if (event := record.asset_materialization)]
        return [event for event in events if has_record(FeedInstanceAvailable, event)]

    def recorded(self, cluster: str, feed: str) -> list[str]:
        return [(event.partition or "")[:13] for event in self.events(cluster, feed)]

    def known(self, feed: str) -> list[str]:
        """The instances in the ledger."""
        self.ledger.catch_up()
        found = select(FEED_INSTANCES.c.instance).where(FEED_INSTANCES.c.feed == feed)
        with self.ledger.engine.connect() as connection:
            return sorted(format_instant(one) for one in connection.execute(found).scalars())

    def incomplete(self, feed: str) -> list[str]:
        found = select(INCOMPLETE.c.instance).where(INCOMPLETE.c.feed == feed)
        with self.ledger.engine.connect() as connection:
            return sorted(format_instant(one)[:13] for one in connection.execute(found).scalars())

    def waiting(self, feed: str) -> list[str]:
        """The pushes without an answer."""
        self.ledger.catch_up()
        found = select(PUSHED.c.partition).where(PUSHED.c.feed == feed).order_by(PUSHED.c.event_id)
        with self.ledger.engine.connect() as connection:
            return list(connection.execute(found).scalars())


def hours(first: str, count: int) -> Iterator[str]:
    """So many hours, as partition keys."""
    start = parse_instant(first)
    return (format_instant(start + timedelta(hours=number)) for number in range(count))
