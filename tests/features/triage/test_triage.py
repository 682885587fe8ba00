"""Why instances are not there: over a real ledger, and files that are there or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster import DagsterInstance
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import SerializableErrorInfo
from sqlalchemy import event, insert

from falcon_assets.features.entities.results import Request
from falcon_assets.features.entities.status import suspend_entities
from falcon_assets.features.triage.operations import triage
from falcon_assets.history.dagster_internals.daemon import RUNS, SENSORS
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.instances.store.reruns import request
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import RerunRequest
from falcon_assets.settings import load_settings
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.opening import OpenAt
from tests.operations.rows import feed_row, process_row, write

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
HERE = f"{{name: primary, {SPAN}}}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
schedule: true
availability_flag: _SUCCESS
sla: {{low: hours(1), high: hours(2)}}
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{clusters}]
"""
PROCESS = """---
kind: process
name: {name}
schedule: true
parallel: 1
frequency: hours(1)
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
inputs: [{inputs}]
outputs: [{{name: out, feed: {writes}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
retry: {{policy: periodic, delay: minutes(10), attempts: 1}}
"""


def reads(feed: str, start: str = "now(0,0)", end: str = "now(0,0)") -> str:
    return f'{{name: in-{feed}, feed: {feed}, start: "{start}", end: "{end}"}}'


ENTITIES = (
    """
kind: cluster
name: primary
interfaces:
  write: {endpoint: data/primary}
  execute: {endpoint: "local[1]"}
  registry: {endpoint: "thrift://localhost:1"}
---
kind: cluster
name: backup
interfaces: {write: {endpoint: data/backup}, execute: {endpoint: "local[1]"}}
"""
    + FEED.format(
        name="raw", clusters=f"{{name: primary, type: source, {SPAN}}}, {{name: backup, type: target, {SPAN}}}"
    )
    + "".join(FEED.format(name=name, clusters=HERE) for name in ("clean", "total", "state", "other"))
    + FEED.format(name="listed", clusters=HERE)
    .replace(
        'locations: {data: "/listed/${YEAR}-${MONTH}-${DAY}/${HOUR}"}',
        'table: {uri: "catalog:db:listed#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}',
    )
    .replace("availability_flag: _SUCCESS\n", "")
    + PROCESS.format(name="cleanse", inputs=reads("raw"), writes="clean")
    + PROCESS.format(name="sum-up", inputs=reads("clean", "now(-23,0)"), writes="total")
    + PROCESS.format(
        name="carry-on", inputs=f"{reads('clean')}, {reads('state', 'now(-1,0)', 'now(-1,0)')}", writes="state"
    )
)
COPY = "raw from primary"


@dg.job
def does_nothing() -> None:
    pass


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-02T00:30Z") as opened:
        empty(opened.ledger.engine)
        opened.ledger.instance.wipe_daemon_heartbeats()
        yield opened


COLLECT = "falcon instance collect raw --start 2013-01-01T{}:00Z --end 2013-01-01T{}:00Z --cluster primary"
RERUN = "falcon instance rerun {} --start 2013-01-01T{}:00Z --cluster primary"


@pytest.fixture
def daemon(installation: Installation) -> DagsterInstance:
    """Dagster's instance, whose daemon has just given a sign of life."""
    instance = installation.ledger.instance
    for part in (SENSORS, RUNS):
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), part, "one", []))
    return instance


def asked(installation: Installation, name: str, number: int, **more: Any) -> dict[str, Any]:
    return triage(installation, name, hour(number), **more).as_data()


def told(data: dict[str, Any]) -> Any:
    """Name, time, state, kind of the reason and fix, and the same of each cause."""
    kind = data["reason"]["kind"] if data["reason"] else None
    at = data["instance"] and data["instance"][8:13]
    return (data["entity"], at, data["state"], kind, data["fix"], [told(one) for one in data["causes"]])


def test_it_goes_back_to_what_failed_and_to_what_did_not_land(
    installation: Installation, daemon: DagsterInstance
) -> None:
    failed = {"failures": 2, "attempt": 2, "reason": "\nno such column\nat line 3", "ended": hour(6), "run_id": "a"}
    failed["definition"] = 7
    there = [feed_row("clean", number) for number in range(21) if number not in (5, 6, 9)]
    write(installation, *there, *(process_row("cleanse", number, "FAILED", **failed) for number in (5, 6)))
    found = asked(installation, "sum-up", 20)
    landing = ("raw", "01T09", "MISSING", "not_arrived", COLLECT.format("09", "09"), [])
    rerun = "falcon instance rerun cleanse --start 2013-01-01T05:00Z --end 2013-01-01T06:00Z --status FAILED"
    assert told(found) == (
        *("sum-up", "01T20", "WAITING", "inputs_missing", None),
        [
            (
                *("clean", "01T05", "MISSING", "made_by", None),
                [("cleanse", "01T05", "FAILED", "failed", f"{rerun} --cluster primary", [])],
            ),
            (
                *("clean", "01T09", "MISSING", "made_by", None),
                [("cleanse", "01T09", "WAITING", "inputs_missing", None, [landing])],
            ),
        ],
    )
    rerun += " --cluster primary"
    assert found["by_reason"] == [
        {"reason": "failed", "count": 2, "entities": ["cleanse"], "fixes": [rerun]},
        {"reason": "not_arrived", "count": 1, "entities": ["raw"], "fixes": [COLLECT.format("09", "09")]},
    ]
    cause = found["causes"][0]["causes"][0]
    assert cause["reason"] == {
        "kind": "failed",
        "text": "failed after 2 attempts: no such column",
        "error": "no such column",
        "attempts": 2,
    }
    assert cause["definition"] == 7
    assert (cause["equal"], cause["attempt"], cause["run"]) == ({"count": 2, "last": "2013-01-01T06:00Z"}, 2, "a")
    path = installation.settings.home / "data/primary/raw/2013-01-01/09"
    assert found["causes"][1]["causes"][0]["causes"][0]["reason"] == {
        "kind": "not_arrived",
        "text": f"has not come to {path}: 13 h 30 min late by its SLA (high: hours(2))",
        "path": str(path),
        "late": 13 * 3600 + 1800,
        "by": "its SLA (high: hours(2))",
        "problem": "",
    }


def test_what_landed_is_told_apart(installation: Installation) -> None:
    folder = installation.settings.home / "data/primary/raw/2013-01-01"
    for number in ("01", "02"):
        (folder / number).mkdir(parents=True, exist_ok=True)
    (folder / "02" / "_SUCCESS").touch()
    found = asked(installation, "raw", 1, cluster="primary")
    assert (told(found)[3], told(found)[4]) == ("incomplete", COLLECT.format("01", "01"))
    assert found["reason"]["text"].startswith("has come, and is not complete: there is no _SUCCESS in ")
    found = asked(installation, "raw", 2, cluster="primary")
    daemon = ("dagster-daemon", None, "STOPPED", "daemon_silent", "dagster-daemon run", [])
    assert told(found)[3:] == ("not_recorded", COLLECT.format("02", "02"), [daemon])
    write(installation, feed_row("raw", 3, state="EVICTED", evicted_at=hour(20)))
    assert told(asked(installation, "raw", 3, cluster="primary"))[2:4] == ("EVICTED", "data_evicted")
    assert told(asked(installation, "raw", 30, cluster="primary"))[3] == "time_pending"
    found = told(asked(installation, "listed", 3))[3:]
    assert found == ("not_arrived", None, [daemon]), "no registry answers: to collect would fix nothing"


def test_what_is_there_says_so(installation: Installation) -> None:
    write(installation, feed_row("clean", 1), process_row("cleanse", 1, "SUCCEEDED"))
    assert told(asked(installation, "clean", 1)) == ("clean", "01T01", "AVAILABLE", None, None, [])
    assert told(asked(installation, "cleanse", 1)) == ("cleanse", "01T01", "SUCCEEDED", None, None, [])


def test_a_copy_lacks_what_its_source_lacks(installation: Installation, daemon: DagsterInstance) -> None:
    landing = ("raw", "01T04", "MISSING", "not_arrived", COLLECT.format("04", "04"), [])
    copy = (COPY, "01T04", "WAITING", "inputs_missing", None, [landing])
    assert told(asked(installation, "raw", 4, cluster="backup")) == ("raw", "01T04", "MISSING", "made_by", None, [copy])
    assert asked(installation, "raw", 4, cluster="backup")["causes"][0]["kind"] == "replication"
    write(installation, process_row(COPY, 4, "KILLED", "backup"))
    fix = "falcon instance rerun 'raw from primary' --start 2013-01-01T04:00Z --cluster backup"
    assert told(asked(installation, COPY, 4)) == (COPY, "01T04", "KILLED", "stopped", fix, [])


ROWS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "suspended": (
        {"state": "SUSPENDED"},
        ("instance_suspended", RERUN.format("cleanse", "01").replace("rerun", "resume")),
    ),
    "tried again": (
        {"state": "FAILED", "failures": 1, "reason": "oh", "ended": hour(24) + timedelta(minutes=25)},
        ("tried_again", RERUN.format("cleanse", "01")),
    ),
    "timed out": ({"state": "TIMED_OUT", "failures": 2}, ("timed_out", RERUN.format("cleanse", "01"))),
    "skipped": ({"state": "SKIPPED"}, ("stopped", RERUN.format("cleanse", "01"))),
    "run is gone": ({"state": "RUNNING", "run_id": "gone"}, ("run_under_way", None)),
}


@pytest.mark.parametrize(("row", "wanted"), ROWS.values(), ids=ROWS)
def test_states(
    installation: Installation, daemon: DagsterInstance, row: dict[str, Any], wanted: tuple[Any, ...]
) -> None:
    write(installation, feed_row("raw", 1), process_row("cleanse", 1, **row))
    assert told(asked(installation, "cleanse", 1))[3:] == (*wanted, [])


def test_a_rerun_that_is_asked_for_is_no_failure(installation: Installation, daemon: DagsterInstance) -> None:
    write(installation, feed_row("raw", 1), process_row("cleanse", 1, "FAILED", failures=2, ended=hour(3)))
    with installation.ledger.engine.begin() as connection:
        request(connection, {("cleanse", "primary", hour(1)): RerunRequest("rerun", 1, 2, hour(5))})
    assert told(asked(installation, "cleanse", 1))[2:] == ("WAITING", "launch_pending", None, [])


def test_what_is_not_run_by_itself(installation: Installation, daemon: DagsterInstance) -> None:
    write(installation, feed_row("raw", 1))
    suspend_entities(installation, Request(("cleanse",), "process", None, "", dry_run=False))
    fix = "falcon entity resume cleanse --kind process"
    assert told(asked(installation, "cleanse", 1))[3:] == ("process_suspended", fix, [])


def test_slots_and_who_has_them(installation: Installation, daemon: DagsterInstance) -> None:
    run = daemon.create_run_for_job(does_nothing, status=dg.DagsterRunStatus.NOT_STARTED)
    write(
        installation,
        *(feed_row("raw", number) for number in (1, 2)),
        process_row("cleanse", 2, "WAITING", queued_run=run.run_id),
    )
    found = asked(installation, "cleanse", 1)
    assert found["reason"]["text"] == "waits for a free slot (parallel: 1), which cleanse 2013-01-01T02:00Z have"
    assert asked(installation, "cleanse", 2)["reason"]["text"] == f"is in run {run.run_id}, which is NOT_STARTED"
    daemon.add_daemon_heartbeat(DaemonHeartbeat(time.time() - 3600, RUNS, "one", []))
    (silent,) = asked(installation, "cleanse", 2)["causes"]
    assert (silent["kind"], silent["reason"]["text"], silent["fix"]) == (
        *("daemon", "has logged nothing for 1 h", "dagster-daemon run"),
    )


def test_a_sensor_that_is_stopped_or_fails(installation: Installation, daemon: DagsterInstance) -> None:
    write(installation, feed_row("raw", 1))
    assert told(asked(installation, "cleanse", 1))[3:] == ("launch_pending", None, [])
    name = "default__coordinator"
    origin = RemoteInstigatorOrigin(
        RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__"), name
    )
    kind, ids = InstigatorType.SENSOR, (origin.get_id(), origin.get_selector().get_id())
    daemon.add_instigator_state(InstigatorState(origin, kind, InstigatorStatus.RUNNING, SensorInstigatorData()))
    error = SerializableErrorInfo("dagster.Failure: the definitions have problems:\na.yaml:3: no", [], None)
    daemon.create_tick(
        TickData(ids[0], name, kind, TickStatus.FAILURE, time.time(), [], error=error, selector_id=ids[1])
    )
    (failed,) = asked(installation, "cleanse", 1)["causes"]
    assert (failed["entity"], failed["state"], failed["fix"]) == (name, "FAILED", "falcon validate")
    said = "failed at its last tick: dagster.Failure: the definitions have problems: a.yaml:3: no"
    assert failed["reason"]["text"] == said
    daemon.update_instigator_state(InstigatorState(origin, kind, InstigatorStatus.STOPPED, SensorInstigatorData()))
    (stopped,) = asked(installation, "cleanse", 1)["causes"]
    assert told(stopped) == (name, None, "STOPPED", "sensor_stopped", f"dagster sensor start {name}", [])
    daemon.delete_instigator_state(*ids)


def test_a_long_chain_is_told_by_where_it_begins(installation: Installation, daemon: DagsterInstance) -> None:
    """With few questions, however long it is."""
    failed = process_row("carry-on", 100, "FAILED", failures=2, attempt=2, reason="oh", ended=hour(101))
    with installation.ledger.engine.begin() as connection:
        connection.execute(insert(FEED_INSTANCES), [feed_row("state", number) for number in range(100)])
        connection.execute(insert(FEED_INSTANCES), [feed_row("clean", number) for number in range(8000)])
    write(installation, failed)
    asked_for = []
    event.listen(installation.ledger.engine, "before_cursor_execute", lambda *told: asked_for.append(told[2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", "2013-12-31T00:00Z")
        found = asked(Installation(load_settings(), installation._opened), "carry-on", 7900)
    (begin,) = found["causes"]
    fix = "falcon instance rerun carry-on --start 2013-01-05T04:00Z --cluster primary"
    assert told(begin) == ("carry-on", "05T04", "FAILED", "failed", fix, [])
    assert found["between"] == 7799
    assert len(asked_for) < 60
