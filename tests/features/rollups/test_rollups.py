"""Roll-ups become available when their members are there, and processes read them as any feed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event

from falcon_assets.features.compaction.readers import InstanceReaders
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.replay.operations import replay_instance
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.rollups.passes import RollupPass, missing_members
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.features.landing.snapshot_tables import run, said
from tests.operations.opening import OpenAt
from tests.operations.rows import process_row, write

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: clicks
frequency: minutes(5)
availability_flag: _SUCCESS
late_arrival: {cut_off: hours(6)}
locations: {data: "/clicks/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: clicks-hourly
frequency: hours(1)
rollup: {of: [clicks]}
late_arrival: {cut_off: hours(6)}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: clicks-daily
frequency: days(1)
rollup: {of: [clicks-hourly]}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: sums
frequency: hours(1)
locations: {data: "/sums/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: summing
frequency: hours(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
inputs: [{name: clicks, feed: clicks-hourly, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: sums, feed: sums, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
late_process: {policy: backoff, delay: minutes(10), inputs: [{input: clicks}]}
strict_lineage: true
schedule: true
"""


def at(text: str) -> datetime:
    return parse_instant(f"2013-01-01T{text}Z")


def land(installation: Installation, slot: datetime, *numbers: int) -> None:
    folder = installation.settings.home / f"data/clicks/{slot:%Y-%m-%d-%H-%M}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": numbers}), folder / "part.parquet")
    (folder / "_SUCCESS").touch()


def land_hour(installation: Installation, hour: int, but: int | None = None) -> None:
    for slot in range(12):
        if slot != but:
            land(installation, at(f"{hour:02}:00") + timedelta(minutes=5 * slot), hour, slot)


def record(installation: Installation) -> int:
    """What a collector and a pass over roll-ups record; the number of versions of roll-ups."""
    store = installation.entities
    Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 60)
    return RollupPass(store, "primary", installation.settings).record(installation.ledger)


def listed(installation: Installation, feed: str, instance: datetime) -> InstanceInfo:
    (found,) = list_instances(installation, InstanceQuery(feed, "feed", start=instance)).items
    return found


def test_an_hour_is_there_when_its_slots_are(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    write_entities({"all.yaml": ENTITIES, "all.sql": "SELECT sum(n) AS total, count(*) AS rows FROM clicks"})
    with open_at("2013-01-01T03:30Z") as installation:
        land_hour(installation, 0)
        land_hour(installation, 1, but=7)
        assert record(installation) == 1
        first = listed(installation, "clicks-hourly", at("00:00"))
        assert (first.state.value, first.as_data()["feed"]["files"]) == ("AVAILABLE", 12)
        second = listed(installation, "clicks-hourly", at("01:00"))
        assert second.reason and second.reason["text"] == "lacks 1 of its 12 members: clicks 2013-01-01T01:35Z"
        third = listed(installation, "clicks-hourly", at("02:00"))
        assert third.reason and third.reason["text"].startswith("lacks 12 of its 12 members: clicks 2013-01-01T02:00Z")
        assert record(installation) == 0
        land(installation, at("01:35"), 1)
        assert record(installation) == 1
        assert listed(installation, "clicks-hourly", at("01:00")).state.value == "AVAILABLE"
        day = listed(installation, "clicks-daily", at("00:00"))
        assert day.reason and day.reason["text"].startswith(
            "lacks 22 of its 24 members: clicks-hourly 2013-01-01T02:00Z"
        )


def rows(installation: Installation, hour: int) -> list[dict[str, int]]:
    folder = installation.settings.home / f"data/sums/2013-01-01-{hour:02}"
    return pq.read_table(folder).to_pylist()


def test_members_are_sought_for_as_long_as_a_reader_waits(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    """By the daemon up to the timeout of the process, by ``falcon run`` whatever is missing."""
    patient = ENTITIES.replace("strict_lineage: true", "timeout: days(30)")
    write_entities({"all.yaml": patient, "all.sql": "SELECT sum(n) AS total FROM clicks"})
    with open_at("2013-01-20T00:30Z") as installation:
        record(installation)
        land_hour(installation, 7)
        assert record(installation) == 1
        store = installation.entities
        sought = Coordinator(store, installation.settings, store.workloads).waited_for(installation.ledger, None)
        first, last = sought["primary", "clicks"]
        assert first <= at("07:00") and last >= parse_instant("2013-01-20T00:25Z")


def test_a_process_reads_a_rollup_as_any_feed(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    """Its rows are those of the members, late data runs it again, and what it reads is what it declares."""
    write_entities({"all.yaml": ENTITIES, "all.sql": "SELECT sum(n) AS total, count(*) AS rows FROM clicks"})
    with open_at("2013-01-01T03:30Z") as installation:
        found = run(installation)
        assert (found.succeeded, found.trouble, found.left_out) == (2, (), {})
        assert rows(installation, 0) == [{"total": 66, "rows": 24}]
        waits = json.loads(said("instance", "list", "summing", "--json"))["items"]
        assert [one["state"] for one in waits] == ["SUCCEEDED", "SUCCEEDED", "WAITING", "WAITING"]
        assert "clicks-hourly 2013-01-01T02:00Z" in waits[2]["reason"]["text"]
        land(installation, at("00:20"), 1000)
        run(installation)
        assert rows(installation, 0) == [{"total": 66 - 4 + 1000, "rows": 23}]
        replayed = replay_instance(installation, InstanceRequest(InstanceQuery("summing", start=at("00:00"))))
        assert (replayed.outcome, replayed.old) == ("reproduced", ())


REGIONS = {"apac": "Asia/Shanghai", "emea": "Asia/Karachi", "uk": "UTC", "us": "America/Los_Angeles"}
FIRST = {"apac": "2013-03-08T16:00Z", "emea": "2013-03-08T19:00Z", "uk": "2013-03-09T00:00Z", "us": "2013-03-09T08:00Z"}


def regions() -> str:
    """A day of the world of four regions, each on its own clock; it begins the day before clocks in the USA change."""
    feeds = "".join(
        f"""
---
kind: feed
name: sales-{name}
frequency: days(1)
timezone: {zone}
late_arrival: {{cut_off: days(9)}}
locations: {{data: "/sales-{name}/${{YEAR}}-${{MONTH}}-${{DAY}}"}}
clusters: [{{name: primary, validity: {{start: {FIRST[name]}, end: 2014-01-01T00:00Z}}}}]
"""
        for name, zone in REGIONS.items()
    )
    of = ", ".join(f"sales-{name}" for name in REGIONS)
    return f"""{ENTITIES.split("---", maxsplit=1)[0]}{feeds}
---
kind: feed
name: sales-world
frequency: days(1)
rollup: {{of: [{of}]}}
clusters: [{{name: primary, validity: {{start: 2013-03-09T00:00Z, end: 2014-01-01T00:00Z}}}}]
"""


def test_a_day_of_the_world_is_there_with_its_last_region(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    """Over a change of clocks, one region a day late, and one region filled again alone."""
    write_entities({"all.yaml": regions(), "all.sql": "SELECT 1"})

    def land_day(installation: Installation, region: str, day: int, number: int = 1) -> None:
        folder = installation.settings.home / f"data/sales-{region}/2013-03-{day:02}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [number]}), folder / "part.parquet")

    def world(installation: Installation, day: int) -> tuple[str, str]:
        found = listed(installation, "sales-world", parse_instant(f"2013-03-{day:02}T00:00Z"))
        return found.state.value, found.reason["text"] if found.reason else ""

    with open_at("2013-03-12T12:00Z") as installation:
        for day in (9, 10, 11):
            for region in REGIONS:
                if (region, day) != ("us", 10):
                    land_day(installation, region, day)
        assert record(installation) == 2
        assert (world(installation, 9)[0], world(installation, 11)[0]) == ("AVAILABLE", "AVAILABLE")
        assert world(installation, 10) == ("MISSING", "lacks 1 of its 4 members: sales-us 2013-03-10T08:00Z")
    with open_at("2013-03-13T12:00Z") as installation:
        land_day(installation, "us", 10)
        assert record(installation) == 1
        assert world(installation, 10)[0] == "AVAILABLE"
        land_day(installation, "uk", 11, 2)
        assert record(installation) == 1
        (last,) = materialized(installation, "sales-world")[:1]
        assert last.partition == "2013-03-11T00:00Z"
        before = versions(installation, "sales-world")
        installation.ledger.rebuild()
        assert (record(installation), versions(installation, "sales-world")) == (0, before)


def materialized(installation: Installation, feed: str) -> list[dg.AssetMaterialization]:
    """The newest first."""
    found = installation.ledger.instance.fetch_materializations(dg.AssetKey(["primary", feed]), 100)
    return [one.asset_materialization for one in found.records if one.asset_materialization]


def versions(installation: Installation, feed: str) -> dict[str, str | None]:
    found = list_instances(installation, InstanceQuery(feed, "feed")).items
    return {format_instant(one.instance): one.as_data()["feed"]["version"] for one in found}


def test_its_asset_depends_on_its_members(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    write_entities({"all.yaml": regions(), "all.sql": "SELECT 1"})
    with open_at("2013-03-13T12:00Z") as installation:
        repository = definitions_of(installation.entities, installation.settings).get_repository_def()
        graph = repository.asset_graph
        world, us = dg.AssetKey(["primary", "sales-world"]), dg.AssetKey(["primary", "sales-us"])
        assert len(graph.get(world).parent_keys) == 4
        mapping = graph.get_partition_mapping(world, us)
        above, below = graph.get(us).partitions_def, graph.get(world).partitions_def
        assert above is not None and below is not None
        keys = ["2013-03-10T00:00Z", "2013-03-11T00:00Z"]
        found = mapping.get_upstream_mapped_partitions_result_for_partitions(
            below.subset_with_partition_keys(keys), below, above, installation.settings.now()
        )
        assert [*found.partitions_subset.get_partition_keys()] == ["2013-03-10T00:00-0800", "2013-03-11T00:00-0700"]


def test_what_may_be_missing_is_not_waited_for(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    optional = regions().replace("rollup: {of", "rollup: {optional: [sales-us, sales-emea], of")
    write_entities({"all.yaml": optional.replace("sales-world", "sales-some"), "all.sql": "SELECT 1"})
    with open_at("2013-03-14T12:00Z") as installation:
        for region in ("apac", "uk"):
            folder = installation.settings.home / f"data/sales-{region}/2013-03-12"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"n": [1]}), folder / "part.parquet")
        record(installation)
        before = versions(installation, "sales-some")
        assert before["2013-03-12T00:00Z"]
        folder = installation.settings.home / "data/sales-us/2013-03-12"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), folder / "part.parquet")
        assert record(installation) == 1
        assert versions(installation, "sales-some")["2013-03-12T00:00Z"] != before["2013-03-12T00:00Z"]


def test_files_of_a_member_are_not_replaced_under_a_reader_of_the_rollup(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    compacted = ENTITIES.replace("availability_flag: _SUCCESS", "compact: {sort: [n]}\nschedule: true")
    write_entities({"all.yaml": compacted, "all.sql": "SELECT 1"})
    with open_at("2013-01-01T12:30Z") as installation:
        (compaction,) = installation.entities.compactions
        readers = InstanceReaders(compaction, installation.entities, installation.ledger)
        write(installation, process_row("summing", 11, "RUNNING", "primary", nominal=at("11:00")))
        assert [*readers.reading(at("11:35"))] == ["summing 2013-01-01T11:00Z"]
        assert [*readers.reading(at("12:00"))] == []


def test_a_member_stays_while_a_reader_of_the_rollup_needs_it(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    kept = ENTITIES.replace(
        'locations: {data: "/clicks/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}"}\nclusters: [{name: primary, ',
        'locations: {data: "/clicks/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}"}\n'
        "clusters: [{name: primary, retention: {limit: hours(6)}, ",
    )
    begins = "summing\nfrequency: hours(1)\nclusters: [{name: primary, validity: {start: 2013-01-01T"
    kept = kept.replace(f"{begins}00", f"{begins}01")
    write_entities({"all.yaml": kept, "all.sql": "SELECT 1"})
    with open_at("2013-01-01T12:30Z") as installation:
        land_hour(installation, 0)
        land_hour(installation, 2)
        record(installation)
        (plan,) = PlanRetention(feed="clicks").run(installation)
        actions = {one.instance.nominal: one.action for one in plan.verdicts}
        assert (actions[at("00:00")], actions[at("02:00")]) == ("delete", "keep")
        assert "summing" in str(dict(plan.kept)[at("02:00")])


def test_excluded_rollups_are_not_recorded(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    """What a code location leaves out, another one records."""
    write_entities({"all.yaml": ENTITIES.replace("clicks", "odd-clicks"), "all.sql": "SELECT 1"})
    with open_at("2013-01-01T01:30Z") as installation:
        for slot in range(12):
            folder = installation.settings.home / f"data/odd-clicks/2013-01-01-00-{5 * slot:02}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"n": [1]}), folder / "part.parquet")
            (folder / "_SUCCESS").touch()
        store, settings = installation.entities, installation.settings
        Collector(store, store.cluster("primary"), settings).collect(installation.ledger, 60)
        some = store.without(frozenset({("primary", "odd-clicks-hourly")}), {"primary"})
        assert RollupPass(some, "primary", settings).record(installation.ledger) == 0
        assert RollupPass(store, "primary", settings).record(installation.ledger) == 1


def test_what_many_instances_lack_is_asked_for_at_once(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many members they have, as many at once as memory allows."""
    write_entities({"all.yaml": ENTITIES.replace("clicks", "rare-clicks"), "all.sql": "SELECT 1"})
    with open_at("2013-01-01T23:30Z") as installation:
        store, asked = installation.entities, list[str]()
        hourly = store.feeds["rare-clicks-hourly"]
        keys = {(hourly.name, "primary", at(f"{hour:02}:00")): hourly for hour in range(24)}
        with installation.ledger.engine.connect() as connection:
            event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
            found = dict(missing_members(connection, keys))
            assert (len(found), len(asked)) == (24, 1)
            monkeypatch.setattr("falcon_assets.features.rollups.passes._PARTS_AT_ONCE", 100)
            assert dict(missing_members(connection, keys)) == found
            assert len(asked) == 1 + 3
        assert {str(one).partition(":")[0] for one in found.values()} == {"lacks 12 of its 12 members"}
