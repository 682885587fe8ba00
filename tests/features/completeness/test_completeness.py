"""Instances are taken when enough of what was sent is there: reported, counted, or waited for long enough."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sqlalchemy import select

from falcon_assets.errors import FalconError, MissingInputsError
from falcon_assets.features.completeness.operations import ReportedShare, report_parts
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.features.trial.operations import TryInstance
from falcon_assets.history.tables import COMPLETENESS, REPORTED_PARTS
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.store.known_instances import recorded_on
from falcon_assets.instances.views.explain import explain
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.cli.main import falcon
from tests.operations.opening import OpenAt

WriteEntities = Callable[[dict[str, str]], Path]

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: FEED
frequency: hours(1)
availability_flag: _SUCCESS
completeness: {at_least: 99.5, expected: %s%s}
late_arrival: {cut_off: hours(6)}
locations: {data: "/FEED/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
schedule: true
"""
COUNTS = """
---
kind: feed
name: counts
frequency: days(1)
format: csv
locations: {data: "/counts/${YEAR}-${MONTH}-${DAY}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
schedule: true
"""
FEED = ""
HOUR = "2013-01-01T00:00Z"
_NUMBERS = count()


@pytest.fixture(autouse=True)
def clicks(monkeypatch: pytest.MonkeyPatch) -> str:
    """The feed of a test: of the others, the database still has what they recorded."""
    monkeypatch.setattr(f"{__name__}.FEED", f"clicks-{next(_NUMBERS)}")
    return FEED


def entities(expected: str, more: str = "", others: str = "") -> dict[str, str]:
    return {"all.yaml": (ENTITIES % (expected, more)).replace("FEED", FEED) + others}


def at(hour: int) -> datetime:
    return parse_instant(f"2013-01-01T{hour:02}:00Z")


def write(home: Path, hour: int, *rows: int, flag: bool = True) -> Path:
    """Files of so many rows each."""
    folder = home / f"data/{FEED}/2013-01-01-{hour:02}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, length in enumerate(rows):
        pq.write_table(pa.table({"n": range(length)}), folder / f"part-{number}.parquet")
    if flag:
        (folder / "_SUCCESS").touch()
    return folder


def collect(installation: Installation) -> Collection:
    store = installation.entities
    return Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 25)


def listed(installation: Installation, hour: int = 0) -> InstanceInfo:
    (found,) = list_instances(installation, InstanceQuery(FEED, "feed", start=at(hour))).items
    return found


def why(installation: Installation, hour: int = 0) -> str:
    reason = listed(installation, hour).reason
    return reason["text"] if reason else ""


def share(installation: Installation, hour: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = listed(installation, hour).as_data()["feed"]["completeness"]
    return found


def report(installation: Installation, *parts: ReportedPart, hour: int = 0) -> ReportedShare:
    return report_parts(installation, FEED, at(hour), parts)


def materializations(installation: Installation) -> Sequence[dg.AssetMaterialization]:
    found = installation.ledger.instance.fetch_materializations(dg.AssetKey(["primary", FEED]), 100)
    return [one.asset_materialization for one in found.records if one.asset_materialization]


def test_parts_that_are_reported_make_an_instance_available_when_they_are_enough(
    open_at: OpenAt, write_entities: WriteEntities
) -> None:
    write_entities(entities("reported"))
    with open_at("2013-01-01T00:30Z") as installation:
        write(installation.settings.home, 0, 3)
        assert collect(installation).recorded == 0  # nobody has reported anything
        assert "nobody has said how many records were sent" in why(installation)
        report(installation, *(ReportedPart("ingest-2", str(part), expected=100) for part in range(1, 11)))
        assert why(installation).startswith("has 0.3 % of 99.5 % since")
        came = [ReportedPart("ingest-2", str(part), 100) for part in range(1, 11) if part not in (7, 9)]
        assert report(installation, *came).percent == 80
        report(installation, *came)  # again: retries do not count twice
        assert share(installation)["percent"] == 80
        assert collect(installation).recorded == 0
        assert why(installation) == (
            "has 80 % of 99.5 %, parts 7 and 9 of ingest-2 are missing since 2013-01-01T00:30Z"
        )
        report(installation, ReportedPart("ingest-2", "7", 100), ReportedPart("ingest-2", "9", 94))
        assert collect(installation).recorded == 0
        assert "has 99.4 % of 99.5 %, part 9 of ingest-2 is missing" in why(installation)
        report(installation, ReportedPart("ingest-2", "9", 95))
        assert collect(installation).recorded == 1
        assert listed(installation).state.value == "AVAILABLE"
        assert share(installation) == {
            "text": "99.5 %", "percent": 99.5, "expected": 1000, "records": 995, "taken_incomplete": False
        }  # fmt: skip
        (event,) = materializations(installation)
        said = {key: value.value for key, value in event.metadata.items()}
        assert (said["completeness"], said["records_expected"], said["records"]) == (99.5, 1000, 995)
        assert collect(installation).recorded == 0


def test_anybody_reports_through_dagster(open_at: OpenAt, write_entities: WriteEntities) -> None:
    write_entities(entities("reported"))
    with open_at("2013-01-01T00:30Z") as installation:
        write(installation.settings.home, 0, 3)
        for metadata in (
            {"parts": [{"expected": 10}]},
            {"parts": [{"part": 7, "records": 4}, {"part": "8", "records": 6}]},
            {"parts": [{"part": 7, "records": 4}]},
            {"parts": "nonsense"},
            {"parts": [{"part": {"a": 1}, "records": 5}]},
            {"parts": [{"part": "9", "records": -5}]},
        ):
            for partition in (HOUR, "nonsense"):
                event = dg.AssetObservation(dg.AssetKey(["primary", FEED]), None, metadata, partition)
                installation.ledger.instance.report_runless_asset_event(event)
        assert collect(installation).recorded == 1
        assert share(installation)["text"] == "100 %"


def test_what_anybody_reports_stops_nothing(open_at: OpenAt, write_entities: WriteEntities) -> None:
    """Sums that no column holds, a push that reports its parts, and a damaged file beside whole ones."""
    write_entities(entities("reported"))
    with open_at("2013-01-01T02:30Z") as installation:
        home, key = installation.settings.home, dg.AssetKey(["primary", FEED])
        huge = {"parts": [{"part": str(part), "records": 2**63 - 1, "expected": 2**63 - 1} for part in range(3)]}
        installation.ledger.instance.report_runless_asset_event(dg.AssetObservation(key, None, huge, HOUR))
        for hour in range(3):
            report(installation, ReportedPart(part="1" if hour == 2 else "", expected=5), hour=hour)
            write(home, hour, 5)
        (home / f"data/{FEED}/2013-01-01-01/part-0.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
        pushed = {"parts": [{"part": "1", "records": 5}]}
        push = dg.AssetMaterialization(key, None, pushed, "2013-01-01T02:00Z")
        installation.ledger.instance.report_runless_asset_event(push)
        found = collect(installation)
        assert not found.problems
        assert "has none of the 5 records" in why(installation, 1)
        assert (listed(installation, 0).state.value, listed(installation, 2).state.value) == ("AVAILABLE", "AVAILABLE")
        last = next(one for one in materializations(installation) if "pushed" in one.metadata)
        assert last.partition == "2013-01-01T02:00Z"


def test_files_are_counted_where_nobody_reports(open_at: OpenAt, write_entities: WriteEntities) -> None:
    write_entities(entities("reported"))
    with open_at("2013-01-01T00:30Z") as installation:
        home = installation.settings.home
        report(installation, ReportedPart(expected=200))
        folder = write(home, 0, 100, 90)
        assert collect(installation).recorded == 0
        assert why(installation).startswith("has 95 % of 99.5 %")
        pq.write_table(pa.table({"n": range(10)}), folder / "part-2.parquet")
        (folder / "_SUCCESS").unlink()
        assert collect(installation).recorded == 0  # it is not there without its flag
        (folder / "_SUCCESS").touch()
        assert collect(installation).recorded == 1
        pq.write_table(pa.table({"n": range(2)}), folder / "part-3.parquet")
        assert collect(installation).recorded == 1  # what comes later is late data, and another version
        assert share(installation)["text"] == "101 %"
        versions = {event.tags["dagster/data_version"] for event in materializations(installation)}
        assert len(versions) == 2


def test_what_is_there_is_taken_when_it_was_waited_for_long_enough(
    open_at: OpenAt, write_entities: WriteEntities
) -> None:
    write_entities(entities("reported", ", at_most_wait: hours(2)"))
    with open_at("2013-01-01T01:59Z") as installation:
        write(installation.settings.home, 0, 5)
        report(installation, ReportedPart(expected=10))
        assert collect(installation).recorded == 0
    with open_at("2013-01-01T02:00Z") as installation:
        assert collect(installation).recorded == 1
        assert share(installation)["taken_incomplete"] is True
        (event,) = materializations(installation)
        assert event.metadata["taken_incomplete"].value is True
        write(installation.settings.home, 0, 5, 5)
        assert collect(installation).recorded == 1
        assert share(installation) == {
            "text": "100 %", "percent": 100.0, "expected": 10, "records": 10, "taken_incomplete": False
        }  # fmt: skip


def test_a_rebuilt_ledger_knows_the_same(open_at: OpenAt, write_entities: WriteEntities) -> None:
    write_entities(entities("reported", ", at_most_wait: hours(2)"))
    with open_at("2013-01-01T04:30Z") as installation:
        home = installation.settings.home
        for hour, rows in enumerate((5, 10, 7, 7)):
            write(home, hour, rows)
            report(installation, ReportedPart(expected=10), hour=hour)
        report(installation, ReportedPart(part="1", records=9, minimum="0", offsets="0..9"), hour=3)
        collect(installation)
        report(installation, ReportedPart(part="2", records=1, maximum="10"), hour=3)
        before = _rows(installation)
        installation.ledger.rebuild()
        assert _rows(installation) == before
        assert len(before) == 4 + 6


def _rows(installation: Installation) -> list[str]:
    with installation.ledger.engine.connect() as connection:
        return sorted(
            str(tuple(row))
            for table in (COMPLETENESS, REPORTED_PARTS)
            for row in connection.execute(select(table).where(table.c.feed == FEED))
        )


def test_counts_are_in_a_feed(open_at: OpenAt, write_entities: WriteEntities) -> None:
    write_entities(entities("{feed: counts}", others=COUNTS))
    with open_at("2013-01-01T05:30Z") as installation:
        home = installation.settings.home
        write(home, 4, 10)
        write(home, 5, 10)  # its hour is not over
        assert collect(installation).recorded == 0
        (home / "data/counts/2013-01-01").mkdir(parents=True)
        rows = ("slot,count", "2013-01-01T04:00:00Z,4", "2013-01-01T04:30:00Z,6", "2013-01-01T05:00:00Z,1")
        (home / "data/counts/2013-01-01/part.csv").write_text("\n".join(rows))
        collect(installation)  # the counts
        collect(installation)
        assert (listed(installation, 4).state.value, share(installation, 4)["text"]) == ("AVAILABLE", "100 %")
        assert "nobody has said" in why(installation, 5)
        (home / "data/counts/2013-01-01/part.csv").write_text("slot,number\n1,2")
        write(home, 3, 1)
        assert "has no counts, columns slot and count" in collect(installation).problems[FEED]


def test_counts_are_in_a_database(
    open_at: OpenAt, write_entities: WriteEntities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT source, part, n FROM sent WHERE slot >= :start AND slot < :end"
    write_entities(entities(json.dumps({"sql": {"url": {"env": "COUNTS"}, "query": query}})))
    with open_at("2013-01-01T01:30Z") as installation:
        write(installation.settings.home, 0, 10)
        assert "COUNTS" in collect(installation).problems[FEED]
    with sqlite3.connect(tmp_path / "sent.db") as database:
        database.execute("CREATE TABLE sent (slot TEXT, source TEXT, part TEXT, n INT)")
        for time, part, number in (("00:15", "1", 8), ("00:45", "2", 4), ("01:00", "1", 1000)):
            values = (f"2013-01-01 {time}:00.000000", "a", part, number)
            database.execute("INSERT INTO sent VALUES (?, ?, ?, ?)", values)
    monkeypatch.setenv("COUNTS", f"sqlite:///{tmp_path}/sent.db")
    with open_at("2013-01-01T01:31Z") as installation:
        found = collect(installation)
        assert not found.problems
        assert why(installation).startswith("has 83.333 % of 99.5 % since")
    monkeypatch.setenv("COUNTS", f"sqlite:///{tmp_path}/secret-password/none.db")
    with open_at("2013-01-01T01:32Z") as installation:
        problem = collect(installation).problems[FEED]
        assert "the query of counts (the database in COUNTS) failed" in problem
        assert "secret" not in problem


def test_a_dead_source_of_counts_is_asked_once_in_a_pass(
    open_at: OpenAt, write_entities: WriteEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for each instance, nor for each feed that has it: all would wait as long."""
    asked = list[object]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            with suppress(OSError):
                while True:
                    connection, peer = server.accept()
                    asked.append(peer)
                    connection.close()

        Thread(target=refuse, daemon=True).start()
        monkeypatch.setenv("DEAD_COUNTS", f"postgresql://nobody@127.0.0.1:{server.getsockname()[1]}/none")
        source = json.dumps({"sql": {"url": {"env": "DEAD_COUNTS"}, "query": "SELECT 1"}})
        other = ENTITIES.partition("---")[2] % (source, "")
        others = "---" + other.replace("FEED", f"other-{FEED}")
        write_entities(entities(source, others=others))
        with open_at("2013-01-01T05:30Z") as installation:
            for hour in range(4):
                write(installation.settings.home, hour, 10)
                folder = installation.settings.home / f"data/other-{FEED}/2013-01-01-{hour:02}"
                folder.mkdir(parents=True)
                (folder / "_SUCCESS").touch()
            found = collect(installation)
        assert "the query of counts (the database in DEAD_COUNTS) failed" in next(iter(found.problems.values()))
        assert (found.recorded, len(asked)) == (0, 1)


def test_a_database_of_counts_that_does_not_answer_is_given_up(
    open_at: OpenAt, write_entities: WriteEntities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver has no limit: somebody has locked the file."""
    monkeypatch.setenv("COUNTS", f"sqlite:///{tmp_path}/locked.db?timeout=60")
    monkeypatch.setattr("falcon_assets.features.completeness.expected._PATIENCE", 0.3)
    write_entities(entities(json.dumps({"sql": {"url": {"env": "COUNTS"}, "query": "SELECT n FROM sent"}})))
    with closing(sqlite3.connect(tmp_path / "locked.db")) as database, open_at("2013-01-01T01:30Z") as installation:
        database.execute("CREATE TABLE sent (n INT)")
        database.commit()
        database.execute("BEGIN EXCLUSIVE")
        write(installation.settings.home, 0, 10)
        said = "the query of counts (the database in COUNTS) did not answer within 10 seconds"
        assert collect(installation).problems == {FEED: said}


def test_commands_say_how_complete_a_feed_is(
    open_at: OpenAt, write_entities: WriteEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entities(entities("reported"))
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T02:30Z")

    def said(*command: str, code: int = 0) -> str:
        found = CliRunner().invoke(falcon, command)
        assert found.exit_code == code, found.output
        return " ".join(found.output.split())

    unfit = ("feed", "report", FEED, HOUR, "--records", "1", "--part", "\udcff")
    wrong = (
        (unfit, 1, "is no text that PostgreSQL can store"),
        (("feed", "report", FEED, HOUR), 2, "say how many records came (--records), or were sent (--expected)"),
        (("feed", "report", FEED, HOUR, "--records", "-1"), 2, "'--records'"),
        (("feed", "report", "nothing", HOUR, "--records", "1"), 1, "nothing"),
        (("feed", "report", FEED, "2013-01-01T00:30Z", "--records", "1"), 1, "has no instance 2013-01-01T00:30Z"),
        (("feed", "report", FEED, HOUR, "--records", "1", "--cluster", "other"), 1, "other"),
        (("feed", "watermark", "nothing"), 1, "nothing"),
    )
    for command, _, part in wrong:
        found = CliRunner().invoke(falcon, command)
        output = str(found.exception) if isinstance(found.exception, FalconError) else found.output
        assert part in output, output
    assert said("feed", "report", FEED, HOUR, "--records", "7", "--part", "1") == (
        f"{FEED} 2013-01-01T00:00Z on primary: 7 records came; the number sent is not reported"
    )
    assert said("feed", "report", FEED, HOUR, "--expected", "8") == (
        f"{FEED} 2013-01-01T00:00Z on primary: 87.5 % of 99.5 % (7 records of 8)"
    )
    assert "2013-01-01T00:00Z │ has 87.5 % of 99.5 % since 2013-01-01T02:30Z" in said("feed", "watermark", FEED)
    (mark,) = json.loads(said("feed", "watermark", FEED, "--json"))["items"]
    assert (mark["watermark"], mark["share"]) == ("2013-01-01T00:00Z", 0.875)
    metrics = said("metrics")
    assert f'falcon_feed_completeness_ratio{{cluster="primary",feed="{FEED}"}} 0.875' in metrics
    said("feed", "report", FEED, HOUR, "--records", "1", "--part", "2", "--min", "5", "--offsets", "0..1")
    with open_at("2013-01-01T02:30Z") as installation:
        write(installation.settings.home, 0, 1)
        assert collect(installation).recorded == 1
    assert json.loads(said("feed", "watermark", FEED, "--json"))["items"][0]["watermark"] == "2013-01-01T01:00Z"
    assert "100 %" in said("instance", "list", FEED, "--type", "feed")


def test_a_run_takes_only_what_is_recorded(
    open_at: OpenAt, write_entities: WriteEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was asked for by hand, and the newest instance of ``latest``."""
    process = """
---
kind: process
name: NAME
frequency: hours(1)
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
inputs: [{name: rows, feed: FEED, start: "WINDOW", end: "WINDOW"}]
outputs: [{name: out, feed: FEED-NAME, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
---
kind: feed
name: FEED-NAME
frequency: hours(1)
locations: {data: "/FEED-NAME/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
"""
    at_time, newest = process.replace("WINDOW", "now(0,0)"), process.replace("WINDOW", "latest(0)")
    both = (at_time.replace("NAME", "at-time") + newest.replace("NAME", "newest")).replace("FEED", FEED)
    write_entities({**entities("reported", others=both), "all.sql": "SELECT count(*) AS n FROM rows"})
    with open_at("2013-01-01T02:30Z") as installation:
        for hour in range(3):
            write(installation.settings.home, hour, 10)
            report(installation, ReportedPart(expected=10 if hour == 0 else 20), hour=hour)
        assert collect(installation).recorded == 1
        store = installation.entities
        cluster, process_of = store.cluster("primary"), store.process
        recorded = recorded_on(installation.tables_caught_up(), "primary")

        def runner(name: str) -> InstanceRunner:
            return replace(
                InstanceRunner.of(process_of(name), cluster, store, installation.settings), recorded=recorded
            )

        with pytest.raises(MissingInputsError, match=f"rows: {FEED} 2013-01-01T02:00Z"):
            runner("at-time").prepare(at(2))
        ready = runner("newest").prepare(at(2))
        assert [instance for instance, _ in ready.available["rows"]] == [at(0)]
        said = explain(installation, "at-time", at(2)).inputs[0].instances[0]
        assert (said.available, said.why) == (False, "it is not recorded as complete")
        with pytest.raises(MissingInputsError), TryInstance(process="at-time", instance=at(2)).trial(installation):
            pass
