"""Lineage in OpenLineage's events, from the rows of a ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.openlineage.operations import export_openlineage
from falcon_assets.history.database import upsert
from falcon_assets.history.folding.version_rows import Plans, plan_of, store_plans
from falcon_assets.history.tables import (
    CONSUMED,
    DATA_VERSIONS,
    DEFINITION_VERSIONS,
    FILE_CONTENTS,
    VERSION_EDGES,
    WORKFLOW_FILES,
)
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns
from tests.features.lineage.lineage_rows import PLAN, T, made_row, version_row, write_versions
from tests.features.openlineage.schemas import assert_valid
from tests.hours import HOUR
from tests.operations.rows import process_row, write

RUN, OLD, BROKEN, KILLED = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3, 4))
CLUSTERS = """
kind: cluster
name: primary
interfaces: {write: {endpoint: "s3://lake"}, execute: {endpoint: "local[1]"}}
"""
FEED = """---
kind: feed
name: {name}
description: what {name} is
tags: {{team: ü}}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}}}]
acl: {{owner: {owner}, permission: "{mode}"}}
"""
PROCESS = """---
kind: process
name: cleanse
pipelines: [nightly]
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
frequency: hours(1)
inputs: [{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: clean, feed: clean, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
"""
FEEDS = {"raw": "0755", "clean": "0755", "secret": "0700"}
SPARK = '{"pyspark": "4.3.0", "python": "3.11.9"}'


@pytest.fixture
def world(installed: Callable[[str], Installation]) -> Installation:
    feeds = "".join(FEED.format(name=name, owner="somebody", mode=mode) for name, mode in FEEDS.items())
    made = installed(CLUSTERS + feeds + PROCESS)
    later = version_row(2, "raw", "a2", bytes=4, records=None, path="s3://lake/raw/2013-01-01/01")
    rows = [
        version_row(1, "raw", "a1", bytes=9, records=3, files=1, path="s3://lake/raw/2013-01-01/00"),
        {**later, "instance": T + HOUR},
        # It was restored after that, and replaced again.
        made_row(
            3, "clean", "b1", "cleanse", "REPLACED", run_id=OLD, made_at=T.replace(minute=3), seen_at=T + 9 * HOUR
        ),
        made_row(
            *(4, "clean", "b2", "cleanse"),
            **{"run_id": RUN, "attempt": 2, "made_by": "me", "environment": SPARK, "plan": PLAN, "late": True},
            **{"bytes": 8, "records": 2, "files": 1, "path": "s3://lake/clean/2013-01-01/00"},
        ),
        made_row(5, "secret", "c1", "cleanse", run_id=RUN),
        version_row(6, "secret", "s1"),
        version_row(7, "raw", "a0", "EVICTED", ended_at=T + HOUR, ended_by=OLD, archived_to="s3://cold/raw/00"),
        version_row(8, "clean", "b0", "EVICTED", ended_at=T + 2 * HOUR, ended_by=OLD),
        version_row(9, "gone", "g1", restored_by="me", path="s3://lake/gone/00"),
    ]
    edges = {(4, 1): (RUN, True), (4, 2): (RUN, False), (4, 6): (RUN, True), (4, 7): (OLD, True), (3, 7): (OLD, True)}
    write_versions(made, rows, {})
    common = {"process": "cleanse", "definition": 1}
    with made.ledger.engine.begin() as connection:
        upsert(
            connection,
            VERSION_EDGES,
            [
                {"output": key[0], "input": key[1], "run_id": run, "declared": declared, **common}
                for key, (run, declared) in edges.items()
            ],
        )
    started = {"started": T.replace(minute=1), "ended": T.replace(minute=4), "run_id": RUN}
    broken = {"started": T + HOUR, "ended": T + 2 * HOUR, "run_id": BROKEN, "reason": "no space ü"}
    write(
        made,
        process_row("cleanse", 0, "SUCCEEDED", attempt=2, **started),
        process_row("cleanse", 1, "FAILED", **broken),
        process_row("cleanse", 2, "TIMED_OUT", started=T - HOUR, ended=T, run_id=OLD, attempt=2, reason="no raw"),
        process_row("cleanse", 3, "KILLED", started=T, ended=T + 3 * HOUR, run_id=KILLED, reason="killed by me"),
        process_row("cleanse", 4, "KILLED", ended=T + 4 * HOUR, run_id=OLD),
        process_row("cleanse", 5, "SKIPPED", ended=T),
    )
    return made


def exported(world: Installation, *names: str, **asked: Any) -> list[dict[str, Any]]:
    events = list(export_openlineage(world, names, **asked))
    for one in events:
        assert_valid(one)
    return events


def said(events: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["eventType"], one["job"]["name"], one["eventTime"][11:16]) for one in events]


def test_each_run_eviction_and_restore(world: Installation) -> None:
    assert said(exported(world)) == [
        ("START", "primary.cleanse", "00:00"),
        ("FAIL", "primary.cleanse", "00:00"),
        ("START", "primary.cleanse", "00:03"),
        ("COMPLETE", "primary.cleanse", "00:03"),
        ("START", "primary.cleanse", "00:01"),
        ("COMPLETE", "primary.cleanse", "00:04"),
        ("START", "primary.cleanse", "01:00"),
        ("FAIL", "primary.cleanse", "02:00"),
        ("START", "primary.cleanse", "00:00"),
        ("ABORT", "primary.cleanse", "03:00"),
        ("START", "primary.cleanse", "04:00"),
        ("ABORT", "primary.cleanse", "04:00"),
        ("START", "primary.raw.archival", "01:00"),
        ("COMPLETE", "primary.raw.archival", "01:00"),
        ("START", "primary.clean.eviction", "02:00"),
        ("COMPLETE", "primary.clean.eviction", "02:00"),
        ("START", "primary.gone.restore", "00:09"),
        ("COMPLETE", "primary.gone.restore", "00:09"),
    ]


def test_a_run(world: Installation) -> None:
    start, end = exported(world)[4:6]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert end["job"]["namespace"] == "falcon"
    facets = end["run"]["facets"]
    assert facets["nominalTime"]["nominalStartTime"] == "2013-01-01T00:00:00.000Z"
    assert facets["nominalTime"]["nominalEndTime"] == "2013-01-01T01:00:00.000Z"
    assert (facets["parent"]["run"]["runId"], facets["parent"]["job"]["name"]) == (RUN, "primary__cleanse_job")
    assert (facets["processing_engine"]["name"], facets["processing_engine"]["version"]) == ("spark", "4.3.0")
    tags = {one["key"]: one["value"] for one in facets["tags"]["tags"]}
    assert {"attempt": "2", "user": "me", "late": "true", "dagster_run": RUN}.items() <= tags.items()
    assert end["job"]["facets"]["jobType"]["jobType"] == "PROCESS"
    assert end["producer"].startswith("pkg:pypi/falcon-assets@")
    assert facets["tags"]["_producer"] == end["producer"]


def test_what_a_run_read_is_one_dataset_with_its_instances(world: Installation) -> None:
    (read,) = exported(world)[5]["inputs"]  # neither what another run read, nor what one may not read
    assert (read["namespace"], read["name"]) == ("s3://lake", "raw")
    assert read["inputFacets"]["subset"]["inputCondition"]["partitions"] == [
        {"dimensions": {"instance": "2013-01-01T00:00Z", "version": "a1"}, "identifier": "s3://lake/raw/2013-01-01/00"},
        {"dimensions": {"instance": "2013-01-01T01:00Z", "version": "a2"}, "identifier": "s3://lake/raw/2013-01-01/01"},
    ]
    assert read["inputFacets"]["inputStatistics"]["size"] == 13
    assert "rowCount" not in read["inputFacets"]["inputStatistics"]  # of one nobody knows
    assert "version" not in read["facets"]
    assert read["facets"]["ownership"]["owners"] == [{"name": "somebody"}]
    assert read["facets"]["documentation"]["description"] == "what raw is"


def test_what_a_run_made(world: Installation) -> None:
    (made,) = exported(world)[5]["outputs"]
    assert (made["namespace"], made["name"]) == ("s3://lake", "clean")
    assert made["facets"]["version"]["datasetVersion"] == "2013-01-01T00:00Z@b2"
    statistics = made["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (2, 8, 1)
    assert [(one["name"], one["type"]) for one in made["facets"]["schema"]["fields"]] == [
        *(("total", "bigint"), ("one", "int"), ("guess", "string"))
    ]
    lineage = made["facets"]["columnLineage"]["fields"]
    assert [(one["name"], one["field"]) for one in lineage["total"]["inputFields"]] == [("raw", "a"), ("raw", "b")]
    assert lineage["one"]["inputFields"] == []
    assert [(one["field"], one["transformations"]) for one in made["facets"]["columnLineage"]["dataset"]] == [
        ("day", [{"type": "INDIRECT"}])  # a filter
    ]
    assert "more may have gone in" in lineage["guess"]["inputFields"][0]["transformations"][0]["description"]


def test_how_columns_were_made(world: Installation) -> None:
    sure = OutputColumn("k", "int", (("raw", "a"), ("raw", "b")), how=(("AGGREGATION", "CONDITIONAL"), ("IDENTITY",)))
    guess = OutputColumn("guess", "int", (), is_opaque=True)
    plans: Plans = {}
    plan = plan_of(OutputColumns((sure, guess), (("raw", "day"),), True, (("FILTER", "SORT"),)), plans)
    with world.ledger.engine.begin() as connection:
        store_plans(connection, plans)
        connection.execute(update(DATA_VERSIONS).where(DATA_VERSIONS.c.id == 4).values(plan=plan))
    facet = exported(world)[5]["outputs"][0]["facets"]["columnLineage"]

    def ways(said: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
        return [[(way["type"], way["subtype"]) for way in one["transformations"]] for one in said]

    assert ways(facet["fields"]["k"]["inputFields"]) == [
        [("DIRECT", "AGGREGATION"), ("INDIRECT", "CONDITIONAL")],
        [("DIRECT", "IDENTITY")],
    ]
    assert ways(facet["dataset"]) == [[("INDIRECT", "FILTER"), ("INDIRECT", "SORT")]]
    assert "more may have gone in" in facet["fields"]["guess"]["transformationDescription"]
    assert "more may have gone in" in facet["dataset"][0]["transformations"][0]["description"]


def test_the_sql_that_ran(world: Installation) -> None:
    where = {"process": "cleanse", "version": 1}
    told = {"kind": "process", "name": "cleanse", "version": 1, "text_hash": "t", "workflow_hash": "w"}
    said = {"text": PROCESS[4:], "since": T, "operation": "load", "actor": "me", "reason": ""}
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(DEFINITION_VERSIONS))
        connection.execute(insert(DEFINITION_VERSIONS), {**told, **said})
        upsert(connection, WORKFLOW_FILES, [{**where, "path": "a.sql", "hash": "h", "problem": ""}])
        upsert(connection, FILE_CONTENTS, [{"hash": "h", "number": 0, "data": b"SELECT 'x'"}])
    facets = [one["job"]["facets"] for one in exported(world) if one["job"]["name"] == "primary.cleanse"]
    assert {"SELECT 'x'"} == {one["sql"]["query"] for one in facets if "sourceCode" in one}


def test_a_run_that_failed(world: Installation) -> None:
    start, end = exported(world)[6:8]
    assert end["run"]["facets"]["errorMessage"]["message"] == "no space ü"
    assert "errorMessage" not in start["run"]["facets"]
    assert (end["inputs"], end["outputs"]) == ([], [])


def test_what_timed_out_or_was_killed_before_it_started_is_a_run_of_no_other(world: Installation) -> None:
    """Of an instance that waits, the ledger knows the run that had it before."""
    events = exported(world)
    timed_out, killed, waiting = events[1], events[9], events[11]
    assert timed_out["run"]["facets"]["errorMessage"]["message"] == "no raw"
    assert killed["run"]["facets"]["errorMessage"]["message"] == "killed by me"
    assert killed["run"]["facets"]["parent"]["run"]["runId"] == KILLED
    assert waiting["run"]["facets"]["errorMessage"]["message"] == "it was killed"
    for one in (timed_out, waiting):
        assert "parent" not in one["run"]["facets"]
        assert not one["run"]["facets"]["tags"]["tags"]
    assert len({one["run"]["runId"] for one in (timed_out, killed, waiting, events[3])}) == 4


def test_each_run_has_one_start_and_one_end(world: Installation) -> None:
    """As the specification wants it, whatever is known of it."""
    runs: dict[str, list[str]] = {}
    for one in exported(world):
        runs.setdefault(one["run"]["runId"], []).append(one["eventType"])
    assert {kinds[0] for kinds in runs.values()} == {"START"}
    assert all(kinds[1:] in (["COMPLETE"], ["FAIL"], ["ABORT"]) for kinds in runs.values())


def test_what_retention_took_and_what_came_back(world: Installation) -> None:
    archived, evicted, restored = exported(world)[13::2]
    gone, copy = archived["outputs"]
    assert gone["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "ALTER"  # the feed is still there
    assert (copy["namespace"], copy["name"]) == ("s3://cold", "raw/00")
    assert [one["facets"]["version"]["datasetVersion"] for one in evicted["outputs"]] == ["2013-01-01T00:00Z@b0"]
    assert (restored["outputs"][0]["namespace"], restored["outputs"][0]["name"]) == ("s3://lake", "gone/00")


def test_ids_are_the_same_again_and_others_elsewhere(world: Installation) -> None:
    def ids(installation: Installation) -> list[str]:
        return [one["run"]["runId"] for one in exported(installation)]

    assert ids(world) == ids(world)
    settings = replace(world.settings, openlineage_namespace="elsewhere")
    with open_installation(settings, world.instance) as elsewhere:
        assert {one["job"]["namespace"] for one in exported(elsewhere)} == {"elsewhere"}
        assert not set(ids(world)) & set(ids(elsewhere))
    assert len(set(ids(world))) == 9


@pytest.mark.parametrize(
    ("names", "asked", "jobs"),
    [
        (("raw",), {}, ["primary.raw.archival"] * 2),
        (("clean",), {}, [*["primary.cleanse"] * 4, *["primary.clean.eviction"] * 2]),
        (("cleanse",), {}, ["primary.cleanse"] * 12),
        (("gone",), {}, ["primary.gone.restore"] * 2),
        (
            (),
            {"since": T + HOUR},
            [*["primary.cleanse"] * 6, *["primary.raw.archival"] * 2, *["primary.clean.eviction"] * 2],
        ),
        ((), {"since": T + 5 * HOUR}, []),
    ],
)
def test_what_is_asked_for(world: Installation, names: tuple[str, ...], asked: dict[str, Any], jobs: list[str]) -> None:
    assert [one["job"]["name"] for one in exported(world, *names, **asked)] == jobs


def test_what_is_not_there(world: Installation) -> None:
    with pytest.raises(UnknownEntityError, match="there is no feed or process 'rawr', and none is recorded"):
        exported(world, "rawr")
    with pytest.raises(UnknownEntityError, match="no cluster 'elsewhere'"):
        exported(world, cluster="elsewhere")
    assert exported(world, cluster="primary") == exported(world)


def test_a_run_without_outputs_and_its_inputs(world: Installation) -> None:
    read = {"process": "notify", "cluster": "primary", "nominal": T, "input": "raw", "feed": "raw", "instance": T}
    more = {"version": "a1", "read_event": 1, "too_late": None, "stale": False, "input_cluster": "primary"}
    with world.ledger.engine.begin() as connection:
        upsert(connection, CONSUMED, [{**read, **more}])
    write(world, process_row("notify", 0, "SUCCEEDED", started=T, ended=T.replace(minute=2), run_id=RUN))
    start, end = exported(world, "notify")
    assert [one["name"] for one in end["inputs"]] == ["raw"]
    assert end["inputs"][0]["facets"]["version"]["datasetVersion"] == "2013-01-01T00:00Z@a1"
    assert (start["eventType"], end["eventType"], end["outputs"]) == ("START", "COMPLETE", [])
