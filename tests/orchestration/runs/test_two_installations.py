"""Two colos, each an installation with a database and a home of its own: one copies what the other gets and makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy import select

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.landing.circuit_breakers import Breakers
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.landing.old_instances import OldInstances
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.features.triage.operations import triage
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.history.tables import FEED_INSTANCES, SERVED
from falcon_assets.instances.store.foreign_sources import copied_to
from falcon_assets.instances.views.explained_feed_workloads import explain_replication
from falcon_assets.instances.views.listing import all_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import SPARK, cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.processes import free_port
from tests.s3_server import ENVIRON, lake
from tests.servers import instance_of, new_database, settings_of, url_of

SUM = """---
kind: process
name: sum
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: made, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum.sql}
late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows}]}
schedule: true
"""
EVICTED = ", retention: {limit: hours(6)}"


@dataclass(frozen=True)
class Colo(ReplicationWorld):
    """An installation of a colo."""

    def tree(self, cluster: str) -> dict[str, tuple[int, int]]:
        """All files of a cluster that is on this installation's disks."""
        root = self.settings.home / "data" / cluster
        files = (one for one in root.rglob("*") if one.is_file())
        return {str(one.relative_to(root)): (one.stat().st_mtime_ns, one.stat().st_size) for one in files}

    def made(self, cluster: str, number: int, feed: str = "made") -> list[int]:
        files = sorted(self.folder(cluster, feed, number).glob("part-*.json"))
        return [json.loads(line)["n"] for one in files for line in one.read_text().splitlines()]

    def recorded(self, cluster: str, feed: str) -> dict[int, str]:
        """The states of the instances that its ledger has, by their hour."""
        self.ledger.catch_up()
        table = FEED_INSTANCES.c
        own = select(table.instance, table.state).where(table.cluster == cluster, table.feed == feed)
        with self.ledger.engine.connect() as connection:
            return {row.instance.hour: row.state for row in connection.execute(own)}

    def collect(self, time: str) -> None:
        """Where something answers."""
        for name in {*self.store.clusters, *self.store.foreign_sources} - {"away"}:
            assert self.source(name, time).collect(self.ledger, 60).problems == {}

    def source(self, cluster: str, time: str, breakers: Breakers | None = None) -> Collector:
        return Collector(self.store, self.store.everywhere[cluster], self.at(time), breakers or Breakers())

    def evict(self, feed: str, time: str) -> None:
        def record(events: Any) -> None:
            for event in events:
                self.instance.report_runless_asset_event(event)

        east = self.store.cluster("east")
        RetentionPass(self.store, east, [self.store.feed(feed)], self.at(time), 0).run(self.ledger, "run", record)
        self.ledger.catch_up()

    @contextmanager
    def opened(self, time: str) -> Iterator[Installation]:
        with open_installation(self.at(time), self.instance) as found:
            yield found

    def reasons(self, time: str, workload: str) -> dict[int, dict[str, Any]]:
        """Why its instances are not done, as lists have it."""
        with self.opened(time) as installation:
            found = all_instances(installation, InstanceQuery(workload, start=hour(0), end=hour(7), limit=100))
        return {one.instance.hour: one.reason for one in found if one.reason}


@dataclass(frozen=True)
class Colos:
    us: Colo
    eu: Colo
    port: int
    """Where the cluster ``away`` should answer."""


def entities(home: Path, s3: str, port: int) -> dict[str, str]:
    """The definitions that both installations have; only by its readonly interface is ``east`` seen from elsewhere."""
    seen = {"readonly": {"endpoint": f"file://{home}/data/east"}, "write": {"endpoint": "data/east"}}
    clusters = [
        cluster_yaml("east", colo="us", interfaces={**seen, "execute": {"endpoint": "local[2]"}}),
        cluster_yaml(**lake(s3), colo="us", properties=SPARK),
        cluster_yaml("away", colo="us").replace("data/away", f"webhdfs://127.0.0.1:{port}/data"),
        cluster_yaml("west", colo="eu"),
    ]
    feeds = [
        feed("raw", on("east", "source"), on("west", "target")),
        feed("made", on("east", "source"), on("west", "target", "01")),
        feed("kept", on("east", "source", more=EVICTED), on("west", "target")),
        feed("objects", on("lake", "source"), on("west", "target")),
        feed("far", on("away", "source"), on("west", "target")),
        feed("farther", on("away", "source"), on("west", "target")),
        feed("own", on("west", "source")),
    ]
    return {"all.yaml": "".join([*clusters, *feeds, SUM]), "sum.sql": "SELECT CAST(sum(n) AS INT) AS n FROM rows"}


@pytest.fixture(scope="module")
def colos(
    settings: Settings,
    instance: dg.DagsterInstance,
    postgres: str,
    template: str,
    lake_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Colos]:
    port, home = free_port(), tmp_path_factory.mktemp("eu")
    files = entities(settings.home, lake_url, port)
    us = replace(settings, colo="us")
    with new_database(postgres, template) as name, settings_of(url_of(postgres, name), home) as other:
        eu = replace(other, colo="eu")
        with instance_of(other) as second:
            found = []
            for one, dagster in ((us, instance), (eu, second)):
                one.entity_defs.mkdir(parents=True, exist_ok=True)
                for path, text in files.items():
                    (one.entity_defs / path).write_text(text)
                store = load_entities(one.entity_defs).in_colo(one.colo)
                found.append(Colo(store, one, dagster, open_ledger(one, dagster)))
            yield Colos(*found, port)


def test_what_is_there_is_read_from_outside_only(colos: Colos) -> None:
    assert colos.eu.settings.database_url != colos.us.settings.database_url
    assert colos.us.store.foreign_sources == {}
    sources = colos.eu.store.foreign_sources
    assert {name: sorted(feeds) for name, feeds in sources.items()} == {
        "east": ["kept", "made", "raw"],
        "lake": ["objects"],
        "away": ["far", "farther"],
    }
    on_east = sources["east"]["made"].on("east")
    assert on_east and on_east.validity.start == hour(1), "no more instances than are copied"
    names = {one.name for one in definitions_of(colos.eu.store, colos.eu.settings).sensors or ()}
    assert {"west__collector", "east__source_collector", "lake__source_collector"} <= names
    assert not {"east__collector", "east__sla", "east__retention_at_once"} & names


def test_from_landing_there_to_the_copy_here(colos: Colos) -> None:
    us, eu = colos.us, colos.eu
    text = eu.reasons("01:30", "made from east")[1]["text"]
    assert text == "waits for source: made 2013-01-01T01:00Z (on east of colo us: not looked at yet)"
    us.land("east", "raw", 1, a=1, b=2)
    assert eu.step("01:30", "made") == []
    reason = eu.reasons("01:40", "made from east")[1]
    assert reason["text"] == (
        "waits for source: made 2013-01-01T01:00Z (on east of colo us: not there at 2013-01-01T01:30Z)"
    )
    assert (reason["kind"], reason["source"]["colo"], reason["source"]["problem"]) == ("source_missing", "us", "")
    us.step("01:40", "raw", "east")
    assert us.made("east", 1) == [3]
    before = us.tree("east")
    assert eu.step("01:50", "made") == ["made from east on west, 2013-01-01T01:00Z, attempt 1"]
    assert eu.step("01:50", "raw") == ["raw from east on west, 2013-01-01T01:00Z, attempt 1"]
    assert eu.made("west", 1) == [3]
    assert eu.files("west", "raw", 1) == {"a.json": 1, "b.json": 2}
    assert us.tree("east") == before, "nothing is written there"
    assert eu.recorded("east", "made") == {1: "AVAILABLE"}
    assert us.recorded("west", "made") == {}
    (there,), (seen,) = us.published("east", "made", 1), eu.published("east", "made", 1)
    assert (there.version, there.process, seen.version, seen.process) == (seen.version, "sum", there.version, None)


def test_what_is_explained_and_listed_is_of_here(colos: Colos) -> None:
    with colos.eu.opened("01:55") as installation:
        found = explain_replication(installation, "made from east", hour(1))
        listed = all_instances(installation, InstanceQuery("made", "feed", start=hour(1), end=hour(1)))
    read = found.inputs[0].instances[0]
    assert (read.path, read.available) == (str(colos.us.folder("east", "made", 1)), True)
    assert [(one.cluster, one.state.value) for one in listed] == [("west", "AVAILABLE")]


def test_late_changes_there_are_copied_again(colos: Colos) -> None:
    us, eu = colos.us, colos.eu
    us.land("east", "raw", 1, b=20)
    assert us.step("02:40", "raw", "east") == ["sum on east, 2013-01-01T01:00Z, attempt 2"]
    assert us.made("east", 1) == [21]
    for one in ("raw", "made"):
        eu.step("04:30", one)
    assert eu.made("west", 1) == [21]
    assert eu.files("west", "raw", 1) == {"a.json": 1, "b.json": 20}
    assert len(eu.published("west", "made", 1)[-1].late) == 1


def test_retention_there_takes_nothing_here(colos: Colos) -> None:
    us, eu = colos.us, colos.eu
    for number in (1, 2):
        us.land("east", "kept", number, a=number)
    us.collect("02:00")
    eu.step("01:59", "kept")
    us.land("east", "kept", 3, a=3)
    us.collect("03:00")
    eu.collect("03:00")
    us.evict("kept", "10:30")
    assert us.recorded("east", "kept") == {1: "EVICTED", 2: "EVICTED", 3: "EVICTED"}
    assert eu.files("west", "kept", 1) == {"a.json": 1}
    played = [run.run_key for run, _ in eu.play("10:30", eu.chosen("kept"))]
    assert played == ["kept from east on west, 2013-01-01T02:00Z to 2013-01-01T03:00Z, attempt 1"], (
        "it found it gone, and waits again"
    )
    assert eu.recorded("east", "kept")[1] == "AVAILABLE", "nothing is evicted by somebody else"
    assert eu.files("west", "kept", 1) == {"a.json": 1}
    why = eu.reasons("10:35", "kept from east")[3]["text"]
    assert "kept 2013-01-01T03:00Z (on east of colo us: not there at 2013-01-01T10:30Z)" in why


def test_objects_of_another_colo_are_copied(colos: Colos) -> None:
    lake_there = ClusterStore(colos.us.store.cluster("lake"), colos.us.settings.home, ENVIRON)
    folder = lake_there.path("/objects/2013-01-01-02")
    lake_there.fs.pipe({f"{folder}/a.json": b'{"n": 7}\n'})
    assert colos.eu.step("02:30", "objects") == []
    said = colos.eu.reasons("02:31", "objects from lake")[2]["text"]
    assert "(on lake of colo us: not complete at 2013-01-01T02:30Z)" in said
    lake_there.fs.pipe({f"{folder}/_SUCCESS": b""})
    assert colos.eu.step("02:40", "objects") == ["objects from lake on west, 2013-01-01T02:00Z, attempt 1"]
    assert colos.eu.files("west", "objects", 2) == {"a.json": 7}


def test_a_source_that_cannot_be_reached_is_a_reason(colos: Colos) -> None:
    eu, breakers = colos.eu, Breakers()
    collector = eu.source("away", "02:00", breakers)
    for _ in range(2):
        found = collector.collect(eu.ledger, 60)
    assert found.recorded == 0
    assert found.left_out, "it is left alone for a while"
    assert OldInstances(collector).collect(eu.ledger).recorded == 0
    reason = eu.reasons("02:01", "far from away")[1]
    assert "(on away of colo us: not looked at yet; could not be looked at on 2013-01-01T02:00Z: " in reason["text"]
    assert str(colos.port) in reason["text"]
    later = eu.outlook("07:59", eu.chosen("far"))
    (decision,) = later.decisions.values()
    assert (later.runs, decision.timed_out) == ((), ()), "nobody could see whether it is there"


def test_causes_end_at_the_other_installation(colos: Colos) -> None:
    with colos.eu.opened("06:30") as installation:
        found = triage(installation, "made from east", hour(6), "west").as_data()
    (cause,) = found["causes"]
    assert (cause["entity"], cause["cluster"], cause["causes"]) == ("made", "east", [])
    assert cause["reason"]["kind"] == "of_another_colo"
    assert "its own installation knows more" in cause["reason"]["text"]
    assert cause["fix"] is None


@contextmanager
def closed_database(server: str, name: str) -> Iterator[None]:
    """Nobody gets into a database, and who was in it is out."""
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        connection.execute(sqlalchemy.text(ended))
        try:
            yield
        finally:
            connection.execute(sqlalchemy.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))


def test_the_other_database_may_be_down(colos: Colos, postgres: str) -> None:
    us, eu = colos.us, colos.eu
    name = sqlalchemy.make_url(us.settings.database_url or "").database
    with closed_database(postgres, str(name)):
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(url_of(postgres, str(name)).replace("postgresql+psycopg2", "postgresql"))
        us.land("east", "raw", 4, a=4)
        assert eu.step("04:30", "raw") == ["raw from east on west, 2013-01-01T04:00Z, attempt 1"]
    assert eu.files("west", "raw", 4) == {"a.json": 4}


def test_colos_on_one_database_record_once(colos: Colos) -> None:
    us = colos.us
    both = load_entities(us.settings.entity_defs)
    here = Colo(both.in_colo("eu"), replace(us.settings, colo="eu"), us.instance, us.ledger)
    us.land("east", "raw", 5, a=5)
    collector = here.source("east", "05:10")
    assert collector.collect(here.ledger, 60).recorded == 0, "its own collector is at work with this database"
    assert OldInstances(collector).collect(here.ledger).recorded == 0
    us.collect("05:10")
    assert collector.collect(here.ledger, 60).recorded == 0
    assert len(us.published("east", "raw", 5)) == 1
    found = here.reasons("06:30", "raw from east")
    assert found[6]["kind"] == "inputs_missing"
    assert found[6]["text"] == "waits for source: raw 2013-01-01T06:00Z"
    with us.ledger.engine.connect() as connection:
        assert copied_to(connection, {"west"}, hour(6)) == set(), "retention does not wait for another database"
    assert len(here.outlook("06:30", here.chosen("raw")).runs) == 1
    with us.ledger.engine.connect() as connection:
        assert copied_to(connection, {"west"}, hour(6)) == {"west"}, "it waits for what is copied with its own"
    with us.ledger.engine.begin() as connection:
        connection.execute(SERVED.update().values(at=SERVED.c.at - sqlalchemy.text("interval '2 hours'")))
    us.land("east", "raw", 6, a=6)
    assert collector.collect(here.ledger, 60).problems == {}
    assert set(here.recorded("east", "raw")) >= {5}, "the other colo has moved out"
