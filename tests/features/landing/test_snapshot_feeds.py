"""A table that others replace in place: processes wait until it is refreshed, and record the version they read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession
from sqlalchemy import select

from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import StorageError, UnknownInstanceError
from falcon_assets.features.entities.lookup import lookup
from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.lineage.asking import lineage_impact, lineage_path, show_lineage
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.history.tables import CONSUMED, DATA_VERSIONS, FEED_INSTANCES
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.features.landing.snapshot_tables import refresh, run, said
from tests.operations.opening import OpenAt

ENTITIES = """---
kind: feed
name: carriers
snapshot: true
frequency: days(1)
availability_flag: _SUCCESS
format: csv
schema: "code string, name string"
late_arrival: {cut_off: days(1)}
locations: {data: /carriers}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
---
kind: feed
name: rates
snapshot: true
frequency: hours(1)
format: csv
locations: {data: /rates.csv}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
---
kind: feed
name: named
frequency: days(1)
format: csv
locations: {data: "/named/${YEAR}-${MONTH}-${DAY}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
---
kind: process
name: names
frequency: days(1)
timeout: days(10)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
inputs: [{name: carriers, feed: carriers, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: named, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
schedule: true
"""


@pytest.fixture(scope="module")
def home(settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]) -> Path:
    write_entities({"all.yaml": cluster_yaml() + ENTITIES, "all.sql": "SELECT * FROM carriers"})
    return settings.home


def tick(installation: Installation) -> Collection:
    store, settings = installation.entities, installation.settings
    return Collector(store, store.cluster("primary"), settings).collect(installation.ledger, 60)


def versions(installation: Installation) -> dict[str, str]:
    """Day -> the version of the table that is recorded for it."""
    return {format_instant(instance)[8:10]: version for instance, version in recorded(installation, "carriers").items()}


def recorded(installation: Installation, feed: str) -> dict[datetime, str]:
    """Instance -> version."""
    installation.ledger.catch_up()
    table = FEED_INSTANCES.c
    asked = select(table.instance, table.version).where(table.feed == feed).order_by(table.instance)
    with installation.ledger.engine.connect() as connection:
        return {row.instance: row.version for row in connection.execute(asked)}


def consumed(installation: Installation) -> dict[str, tuple[str, bool]]:
    """Day -> the version of the table that the process read, and whether it is stale."""
    installation.ledger.catch_up()
    with installation.ledger.engine.connect() as connection:
        rows = connection.execute(select(CONSUMED).order_by(CONSUMED.c.nominal))
        return {format_instant(row.nominal)[8:10]: (row.version, row.stale) for row in rows}


def test_one_refresh_is_the_instance_of_every_time_up_to_it(home: Path, open_at: OpenAt) -> None:
    refresh(home, "UA,United\n", "2013-01-02T05:00Z")
    with open_at("2013-01-02T06:00Z") as installation:
        assert run(installation).succeeded == 2
        there = versions(installation)
        assert there.keys() == {"01", "02"}
        assert consumed(installation) == {day: (version, False) for day, version in there.items()}
        assert (home / "data/primary/named/2013-01-02").is_dir()
        assert tick(installation).recorded == 0


def test_what_is_older_is_waited_for_and_that_is_said(home: Path, open_at: OpenAt) -> None:
    why = "snapshot last refreshed at 2013-01-02T05:00Z, needs >= 2013-01-03T00:00Z"
    with open_at("2013-01-03T06:00Z") as installation:
        result = run(installation)
        assert result.succeeded == 0
        listed = said("instance", "list", "names", "--start", "2013-01-03T00:00Z", "--json")
        assert "waits for carriers: carriers refreshed at or after 2013-01-03T00:00Z" in listed
        of_feed = said("instance", "list", "carriers", "--type", "feed", "--start", "2013-01-03T00:00Z", "--json")
        assert "needs a refresh at or after 2013-01-03T00:00Z" in of_feed
        assert why in said("explain", "names", "2013-01-03T00:00Z")
        assert why in said("instance", "triage", "names", "2013-01-03T00:00Z")
        (there,) = collect_instances(installation, "carriers", *[parse_instant("2013-01-03T00:00Z")] * 2)
        assert there.missing == ((parse_instant("2013-01-03T00:00Z"), why),)
        assert versions(installation).keys() == {"01", "02"}


def test_a_push_of_what_is_not_refreshed_is_refused(home: Path, open_at: OpenAt, instance: dg.DagsterInstance) -> None:
    with open_at("2013-01-03T06:00Z") as installation:
        pushed = dg.AssetMaterialization(["primary", "carriers"], partition="2013-01-03T00:00Z")
        instance.report_runless_asset_event(pushed)
        assert tick(installation).recorded == 0
        assert versions(installation).keys() == {"01", "02"}


def test_a_run_by_hand_refuses_old_data_too(home: Path, open_at: OpenAt, instance: dg.DagsterInstance) -> None:
    with open_at("2013-01-03T06:00Z") as installation:
        definitions = definitions_of(installation.entities, installation.settings)
        job = definitions.resolve_job_def("primary__names_job")
        done = job.execute_in_process(
            instance=instance, partition_key="2013-01-03T00:00Z", resources=definitions.resources, raise_on_error=False
        )
        assert not done.success
        assert "03" not in consumed(installation)


def test_the_next_refresh_is_read_and_recorded(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-04T06:00Z") as installation:
        first = versions(installation)["02"]
        refresh(home, "UA,United\nDL,Delta\n", "2013-01-04T05:30Z")
        assert run(installation).succeeded == 2
        there = versions(installation)
        assert there.keys() == {"01", "02", "03", "04"}
        assert there["01"] == there["02"] == first
        assert there["03"] == there["04"] != first
        assert consumed(installation) == {day: (version, False) for day, version in there.items()}
        shown = json.loads(said("lineage", "show", "named", "2013-01-04T00:00Z", "--json"))
        assert there["04"] in json.dumps(shown)


def test_what_was_made_from_a_version_is_found_by_any_of_its_instances(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-04T06:00Z") as installation:
        for day in ("03", "04"):
            found = lineage_impact(installation, VersionQuery("carriers", parse_instant(f"2013-01-{day}T00:00Z")))
            assert [(one.feed, one.instance.day) for one in found.derived] == [("named", 3), ("named", 4)]
            assert {(edge.input, edge.process) for edge in found.graph.edges} == {(found.version.number, "names")}


def test_the_way_down_starts_at_any_of_its_instances(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-04T06:00Z") as installation:
        for day in ("03", "04"):
            start = VersionQuery("carriers", parse_instant(f"2013-01-{day}T00:00Z"))
            found = show_lineage(installation, start, up=False, down=True, depth=1)
            made = [one for one in found.graph.versions.values() if one.number != found.version.number]
            assert sorted((one.feed, one.instance.day) for one in made) == [("named", 3), ("named", 4)]
            for one in made:
                way = lineage_path(installation, start, VersionQuery("named", one.instance))
                assert way.graph.versions.keys() == {way.version.number, one.number}
                assert [(edge.input, edge.output) for edge in way.graph.edges] == [(way.version.number, one.number)]
            with pytest.raises(UnknownInstanceError, match="was not made from"):
                lineage_path(installation, start, VersionQuery("named", parse_instant("2013-01-02T00:00Z")))


def test_its_path_belongs_to_the_newest_instance_that_is_recorded(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-06T06:00Z") as installation:
        for path in ("/carriers/part.csv", f"{home}/data/primary/carriers", "/carriers/"):
            (found,) = lookup(installation, path).items
            assert (found.feed, found.location, found.instance) == (
                "carriers",
                "data",
                parse_instant("2013-01-04T00:00Z"),
            )
        assert lookup(installation, "/carriers.csv").items == ()
        (rates,) = lookup(installation, "/rates.csv").items  # nothing is recorded of it
        assert rates.instance == parse_instant("2013-01-06T06:00Z")


def test_another_refresh_before_the_next_time_is_late_data_of_the_newest_instance_only(
    home: Path, open_at: OpenAt
) -> None:
    with open_at("2013-01-04T08:00Z") as installation:
        before = versions(installation)
        refresh(home, "B6,JetBlue\n", "2013-01-04T07:00Z")
        assert tick(installation).recorded == 1
        after = versions(installation)
        assert {day for day in after if after[day] != before[day]} == {"04"}
        assert [day for day, (_, stale) in consumed(installation).items() if stale] == ["04"]
        table = DATA_VERSIONS.c
        history = select(table.version).where(
            table.feed == "carriers", table.instance == parse_instant("2013-01-04T00:00Z")
        )
        with installation.ledger.engine.connect() as connection:
            every = connection.execute(history.order_by(table.id)).scalars().all()
        assert every == [before["04"], after["04"]]


def test_a_table_without_its_flag_is_left_for_the_next_tick(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-05T08:00Z") as installation:
        refresh(home, "US,US Airways\n", "2013-01-05T07:00Z")
        flag = home / "data/primary/carriers/_SUCCESS"
        flag.unlink()
        assert tick(installation) == Collection(recorded=0, left=0, problems={})
        flag.touch()
        assert tick(installation).recorded == 1
        assert "05" in versions(installation)


def test_what_ticks_found_nothing_for_is_made_up_for_however_long_ago(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-05T09:30Z") as installation:
        assert tick(installation).recorded == 0
    with open_at("2013-01-09T09:30Z") as installation:
        assert tick(installation).recorded == 0
        rates = home / "data/primary/rates.csv"
        rates.write_text("EUR,1.3\n")
        seconds = parse_instant("2013-01-09T09:20Z").timestamp()
        os.utime(rates, (seconds, seconds))
        line = feed_timeline(installation.entities.feed("rates"), "primary")
        some = [parse_instant(f"2013-01-08T{hour}:00Z") for hour in ("03", "04")]
        collect_instances(installation, "rates", *some)  # leaves a gap before them
        assert list(recorded(installation, "rates")) == some
        assert tick(installation).recorded == 1  # one refresh is the data of all that had none
        assert list(recorded(installation, "rates")) == line.until(parse_instant("2013-01-09T09:00Z"))
        assert tick(installation).recorded == 0


def test_a_refresh_while_it_is_read_publishes_nothing(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-05T10:00Z") as installation:
        feeds, cluster = installation.entities.feeds, installation.entities.cluster("primary")
        stores = StoresOf(cluster, home, {})
        process, nominal = installation.entities.process("names"), parse_instant("2013-01-05T00:00Z")
        store = ClusterStore(cluster, home, {})
        executor = SparkExecutor(cluster, lambda: store.working, home)
        where = (store, stores, installation.entities.root, "etl", "run")
        runner = InstanceRunner(process, executor, feeds, *where, clock=lambda feed: installation.settings.clock)
        ready = runner.prepare(nominal)

        class Refreshing(SparkExecutor):
            def session(self) -> SparkSession:
                refresh(home, "AA,American\n", "2013-01-05T09:00Z")
                return super().session()

        with pytest.raises(StorageError, match="feed carriers was refreshed while it was read: nothing is published"):
            replace(runner, executor=Refreshing(cluster, executor.working, home)).run(ready)
        kind, named = kind_of(stores(feeds["named"])), feeds["named"]
        assert not kind.is_available(named, "/named/2013-01-05")
        assert runner.run(ready).outputs
        assert kind.is_available(named, "/named/2013-01-05")
