"""Dagster's own commands in a folder with ``dagster.yaml`` and entity definitions, and no wrapper around them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.history.mapping.partitions import instant_of_key
from falcon_assets.settings import Settings
from tests.processes import BIN, CHECKOUT, free_port, listens
from tests.waiting import wait_until

MODULE = ("-m", "falcon_assets.definitions")
ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: raw
frequency: hours(1)
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
schema: "n int"
format: json
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: daily
timezone: America/New_York
frequency: days(1)
locations: {data: "/daily/${YEAR}-${MONTH}-${DAY}"}
clusters: [{name: primary, validity: {start: 2013-01-01T05:00Z, end: 2014-01-01T05:00Z}}]
---
kind: feed
name: five
frequency: hours(5)
locations: {data: "/five/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: new-york
timezone: America/New_York
clusters: [{name: primary, validity: {start: 2013-01-01T05:00Z, end: 2014-01-01T05:00Z}}]
frequency: days(1)
inputs: [{name: rows, feed: raw, start: "today(0,0)", end: "today(23,0)"}]
outputs: [{name: count, feed: daily, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: count.sql}
---
kind: process
name: fives
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(5)
inputs: [{name: rows, feed: raw, start: "now(-4,0)", end: "now(0,0)", optional: true}]
outputs: [{name: count, feed: five, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: count.sql}
"""
BROKEN = "kind: feed\nname: broken\nfrequency: hours(0)\n"
BACKFILL = """
mutation {{
  launchPartitionBackfill(
    backfillParams: {{assetSelection: [{{path: ["primary", "{feed}"]}}], partitionNames: {keys}}}
  ) {{
    __typename ... on PythonError {{ message }}
  }}
}}
"""


@pytest.fixture(scope="module")
def project(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(CHECKOUT / name, folder)
    (folder / "entity_defs").mkdir()
    (folder / "entity_defs" / "all.yaml").write_text(ENTITIES)
    (folder / "entity_defs" / "count.sql").write_text("SELECT count(*) AS n FROM rows")
    (folder / ".env").write_text(f"DAGSTER_HOME={folder}\n")
    return folder


def run(project: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    program = [str(BIN / command[0]), *command[1:]]
    env = environment(**environ)
    return subprocess.run(program, check=False, cwd=project, env=env, capture_output=True, text=True, timeout=180)


def environment(**given: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DAGSTER_")}
    return {**kept, "FALCON_ENTITY_DEFS": "entity_defs", **given}


@pytest.fixture(scope="module")
def webserver() -> str:
    """Where the webserver is."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def graphql(project: Path, webserver: str) -> Iterator[Callable[[str], Any]]:
    """Asks the webserver."""
    port = int(webserver.rpartition(":")[2])
    command = [str(BIN / "dagster-webserver"), "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
    with (project / "webserver.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=project, env=environment(), stdout=log, stderr=log)

    def ask(query: str) -> Any:
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{webserver}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)["data"]

    def there() -> bool:
        assert server.poll() is None, (project / "webserver.log").read_text()
        return listens(port)

    try:
        wait_until(there, 120, (project / "webserver.log").read_text)
        yield ask
    finally:
        server.terminate()
        server.wait(60)


def test_definitions_validate(project: Path) -> None:
    result = run(project, "dagster", "definitions", "validate")
    assert result.returncode == 0, result.stderr
    assert "All code locations passed validation." in result.stdout


def test_definitions_validate_says_what_falcon_validate_says(project: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    ours = run(project, "falcon", "validate", str(tmp_path))
    theirs = run(project, "dagster", "definitions", "validate", FALCON_ENTITY_DEFS=str(tmp_path))
    assert ours.returncode == theirs.returncode == 1
    lines = [line for line in ours.stdout.splitlines() if "broken.yaml:" in line]
    assert [line.partition("broken.yaml:")[2] for line in lines] == [
        "1: clusters: required key is missing",
        "3: frequency: 'hours(0)' is not a frequency: write minutes(n), hours(n), days(n) or months(n) with a "
        "whole n > 0",
    ]
    for line in lines:
        assert line in theirs.stdout


def test_asset_materialize(project: Path, settings: Settings, instance: dg.DagsterInstance) -> None:
    hour = settings.home / "data/primary/raw/2013-01-01/05"
    hour.mkdir(parents=True)
    (hour / "rows.json").write_text('{"n": 1}\n{"n": 2}\n')
    select = ("--select", 'key:"primary/five"', "--partition", "2013-01-01T05:00Z")
    result = run(project, "dagster", "asset", "materialize", *MODULE, *select)
    assert result.returncode == 0, result.stderr[-3000:]
    assert list(instance.get_materialized_partitions(dg.AssetKey(["primary", "five"]))) == ["2013-01-01T05:00Z"]


def test_asset_materialize_without_inputs_says_what_is_missing(project: Path, settings: Settings) -> None:
    select = ("--select", 'key:"primary/daily"', "--partition", "2013-03-10T00:00-0500")
    result = run(project, "dagster", "asset", "materialize", *MODULE, *select)
    assert result.returncode == 1
    # The day on which the clocks go forward has 23 hours.
    assert "new-york on primary at 2013-03-10T05:00Z waits for 23 input instance(s):" in result.stderr
    assert f"rows: raw 2013-03-11T03:00Z at {settings.home}/data/primary/raw/2013-03-11/03" in result.stderr
    assert "SparkContext" not in result.stderr


@pytest.mark.soak
def test_job_backfill_queues_one_run_per_partition(project: Path, instance: dg.DagsterInstance) -> None:
    keys = "2013-01-01T10:00Z,2013-01-01T15:00Z"
    result = run(project, "dagster", "job", "backfill", "-j", "primary__fives_job", "--partitions", keys, "--noprompt")
    assert result.returncode == 0, result.stderr
    runs = instance.get_runs(dg.RunsFilter(job_name="primary__fives_job"))
    assert sorted(run.tags["dagster/partition"] for run in runs) == keys.split(",")
    assert {run.status for run in runs} == {dg.DagsterRunStatus.QUEUED}


@pytest.mark.parametrize(
    ("feed", "keys"),
    [
        ("daily", ["2013-05-05T00:00-0400", "2013-05-06T00:00-0400"]),
        ("five", ["2013-01-01T05:00Z", "2013-01-01T10:00Z"]),
    ],
    ids=["across time zones", "dynamic partitions"],
)
def test_a_backfill_over_our_own_mapping_is_accepted_by_the_webserver(
    graphql: Callable[[str], Any], feed: str, keys: list[str]
) -> None:
    assert all(map(instant_of_key, keys))
    answer = graphql(BACKFILL.format(feed=feed, keys=json.dumps(keys)))
    assert answer == {"launchPartitionBackfill": {"__typename": "LaunchBackfillSuccess"}}


def test_the_webserver_shows_the_window(graphql: Callable[[str], Any]) -> None:
    answer = graphql("{ assetNodes { assetKey { path } dependencies { partitionMapping { description } } } }")
    shown = {
        node["assetKey"]["path"][1]: [edge["partitionMapping"]["description"] for edge in node["dependencies"]]
        for node in answer["assetNodes"]
    }
    assert shown == {
        "raw": [],
        "daily": ["Feed instances from today(0,0) to today(23,0)."],
        "five": ["Feed instances from now(-4,0) to now(0,0)."],
    }


@pytest.mark.usefixtures("graphql")
def test_status_knows_the_code_location_and_misses_the_daemon(project: Path, webserver: str) -> None:
    result = run(project, "falcon", "admin", "status", "--json", FALCON_WEBSERVER_URL=webserver)
    found = {one["check"]: (one["status"], one["text"]) for one in json.loads(result.stdout)["checks"]}
    assert found["webserver"] == ("ok", f"{webserver} serves the code location falcon")
    assert (result.returncode, found["daemon"][0]) == (1, "warning")


def test_what_is_submitted_is_there_without_a_restart(
    project: Path, graphql: Callable[[str], Any], webserver: str, tmp_path: Path
) -> None:
    def assets() -> set[str]:
        return {node["assetKey"]["path"][-1] for node in graphql("{ assetNodes { assetKey { path } } }")["assetNodes"]}

    def falcon(*arguments: str) -> str:
        result = run(project, "falcon", "entity", *arguments, FALCON_WEBSERVER_URL=webserver)
        assert result.returncode == 0, result.stderr
        return result.stdout

    before = assets()
    feed = next(part for part in ENTITIES.split("---\n") if "name: raw\n" in part)
    (tmp_path / "new.yaml").write_text(feed.replace("name: raw\n", "name: brand-new\n").replace("/raw/", "/new/"))
    try:
        said = falcon("submit", str(tmp_path / "new.yaml"))
        assert said.endswith("Dagster has reloaded the code location falcon\n")
        assert assets() == before | {"brand-new"}
    finally:
        falcon("delete", "brand-new")
    assert assets() == before
