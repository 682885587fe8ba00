"""A process that runs once for each version of a table that is replaced in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings
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
locations: {data: /carriers}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
---
kind: process
name: count
frequency: hours(1)
timeout: days(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-02-01T00:00Z}}]
inputs: [{name: carriers, feed: carriers, start: "latest(0)", end: "latest(0)", newer_than: last_run}]
workflow: {engine: spark-sql, path: count.sql}
schedule: true
"""


@pytest.fixture(scope="module")
def home(settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]) -> Path:
    write_entities({"all.yaml": cluster_yaml() + ENTITIES, "count.sql": "SELECT count(*) FROM carriers"})
    return settings.home


def succeeded(installation: Installation) -> list[str]:
    """The hours that succeeded."""
    installation.ledger.catch_up()
    table = PROCESS_INSTANCES.c
    asked = select(table.nominal).where(table.state == "SUCCEEDED").order_by(table.nominal)
    with installation.ledger.engine.connect() as connection:
        return [format_instant(one)[11:13] for one in connection.execute(asked).scalars()]


def test_the_first_run_uses_what_is_there_and_the_others_wait_for_something_newer(home: Path, open_at: OpenAt) -> None:
    refresh(home, "UA,United\n", "2013-01-01T00:30Z")
    with open_at("2013-01-01T03:10Z") as installation:
        assert run(installation).succeeded == 1
        assert succeeded(installation) == ["00"]
        asked = ("count", "2013-01-01T01:00Z")
        why = "(used by 2013-01-01T00:00Z at 2013-01-01T03:10Z; still there, seen at 2013-01-01T03:10Z)"
        listed = said("instance", "list", "count", "--start", asked[1], "--json")
        assert "waits for carriers: carriers newer than version " in listed
        assert why in listed
        assert why in said("instance", "triage", *asked)
        assert why in said("explain", *asked)
        used = json.loads(said("explain", *asked, "--json"))["inputs"][0]["last_used"]
        assert used["version"] == used["present"]
        assert (used["instance"], used["at"]) == ("2013-01-01T00:00Z", "2013-01-01T03:10Z")


def test_a_version_that_comes_is_used_once(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-01T05:10Z") as installation:
        refresh(home, "DL,Delta\n", "2013-01-01T05:00Z")
        assert run(installation).succeeded == 1
        assert succeeded(installation) == ["00", "01"]


def test_what_was_touched_is_not_newer(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-01T06:10Z") as installation:
        refresh(home, "DL,Delta\n", "2013-01-01T06:00Z")
        assert run(installation).succeeded == 0


def test_what_people_run_uses_the_version_that_is_there(
    home: Path, open_at: OpenAt, instance: dg.DagsterInstance
) -> None:
    with open_at("2013-01-01T06:20Z") as installation:
        definitions = definitions_of(installation.entities, installation.settings)
        job, partition = definitions.resolve_job_def("primary__count_job"), "2013-01-01T06:00Z"
        done = job.execute_in_process(instance=instance, partition_key=partition, resources=definitions.resources)
        assert done.success
        assert succeeded(installation) == ["00", "01", "06"]
        said("instance", "rerun", "count", "--start", "2013-01-01T00:00Z", "--force")
        assert run(installation).succeeded == 1
        refresh(home, "B6,JetBlue\n", "2013-01-01T06:15Z")
        assert run(installation).succeeded == 1
        assert succeeded(installation) == ["00", "01", "02", "06"]


def test_who_waits_in_vain_says_what_was_used_last(home: Path, open_at: OpenAt) -> None:
    with open_at("2013-01-02T05:10Z") as installation:
        assert run(installation).succeeded == 0
        triage = said("instance", "triage", "count", "2013-01-01T03:00Z")
        assert "timed out (missing after days(1): carriers: carriers newer than version" in triage
        assert "it still lacks inputs" in triage
