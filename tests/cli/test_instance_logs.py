"""``falcon instance logs``: real runs of programs and of Spark, and what is left of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.history.dagster_internals.runs import end_as_failed
from falcon_assets.history.mapping import run_tags
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.instance import instance as group
from tests.listener import share_listener
from tests.processes import FALCON, environ_with

VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
ENTITIES = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[2]"}}}}
storage_options: {{auto_mkdir: true}}
properties: {{db.password: hunter2, spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}}
---
kind: process
name: program
clusters: [{{name: primary, validity: {VALIDITY}}}]
frequency: hours(1)
workflow: {{engine: spark-submit, path: program.py, args: ["${{nominalTime}}"]}}
retry: {{policy: final}}
schedule: true
---
kind: process
name: stack
clusters: [{{name: primary, validity: {VALIDITY}}}]
frequency: hours(1)
workflow: {{engine: pyspark, path: stack.py}}
retry: {{policy: final}}
schedule: true
"""
PROGRAM = """
import sys
for line in range(1000):
    print(f"{sys.argv[1]} line {line} by hunter2")
print("\\033[31mred\\033[0m and \\033]0;title\\a")
sys.exit(3 if "T01" in sys.argv[1] else 0)
"""
STACK = """
def run(spark, inputs, instance):
    print(f"computing {instance.nominal_time:%H} with hunter2")
    spark.sql("SELECT raise_error('of ' || 'Spark')").collect()
"""


@pytest.fixture(scope="module")
def environ(database: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Three instances of each process have run."""
    home = tmp_path_factory.mktemp("home")
    share_listener(home)
    root = home / "entities"
    root.mkdir()
    for name, text in {"all.yaml": ENTITIES, "program.py": PROGRAM, "stack.py": STACK}.items():
        (root / name).write_text(text)
    environ = environ_with(
        FALCON_HOME=str(home),
        FALCON_ENTITY_DEFS=str(root),
        FALCON_DATABASE_URL=database,
        FALCON_CLOCK="2013-01-01T02:30Z",
    )
    done = subprocess.run([FALCON, "run"], env=environ, cwd=home, capture_output=True, text=True, check=False)
    assert "2 instances succeeded, 4 did not" in done.stdout, done.stdout + done.stderr
    return environ


@pytest.fixture
def call(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in ("FALCON_HOME", "FALCON_ENTITY_DEFS", "FALCON_DATABASE_URL", "FALCON_CLOCK"):
        monkeypatch.setenv(name, environ[name])
    monkeypatch.chdir(environ["FALCON_HOME"])
    return lambda *arguments: CliRunner().invoke(group, ["logs", *arguments])


def as_json(call: Callable[..., Result], *arguments: str) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_what_a_program_wrote_and_why_it_failed(call: Callable[..., Result]) -> None:
    head, reason, *lines = call("program", "2013-01-01T01:00Z").output.splitlines()
    assert head == "program on primary, 2013-01-01T01:00Z: FAILED"
    assert "program.py: spark-submit ended with exit code 3; its log is " in reason
    said = [line for line in lines if line.startswith("2013-01-01T01:00Z line ")]
    assert (said[0], said[-1], len(said)) == (
        "2013-01-01T01:00Z line 901 by *****",
        "2013-01-01T01:00Z line 999 by *****",
        99,
    )
    assert "red and \\x1b]0;title\\x07" in lines
    sections = [line.split(":")[0] for line in lines if line.startswith("==")]
    assert sections[:2] == ["== events", "== spark-submit"]
    assert "== stderr, shared by the instances of the run" in sections
    run, ended = [line for line in lines if "2013-01-01T00:00Z" in line or "2013-01-01T02:00Z" in line]
    assert run.endswith(", FAILURE, with 3 instances: 2013-01-01T00:00Z to 2013-01-01T02:00Z")
    assert ended.endswith(" run LOG: program on primary 2013-01-01T00:00Z to 2013-01-01T02:00Z (2) succeeded")


def test_events_say_what_is_of_the_run(call: Callable[..., Result]) -> None:
    found = as_json(call, "program", "2013-01-01T01:00Z")
    own = [one["text"] for one in found["events"] if not one["shared"]]
    assert own[0] == "program 2013-01-01T01:00Z: RUNNING"
    assert all("2013-01-01T01:00Z" in text for text in own)
    types = [one["type"] for one in found["events"] if one["shared"]]
    assert (types[0], types[-2:]) == ("PIPELINE_START", ["STEP_FAILURE", "PIPELINE_FAILURE"])
    failure = next(one["text"] for one in found["events"] if one["type"] == "STEP_FAILURE")
    assert "1 of 3 instance(s) of program failed:\n2013-01-01T01:00Z: " in failure
    log_of = found["log_of"]
    assert {**log_of, "run": ""} == {
        "run": "",
        "attempt": 1,
        "status": "FAILURE",
        "instances": 3,
        "first": "2013-01-01T00:00Z",
        "last": "2013-01-01T02:00Z",
    }
    assert found["runs"] == [log_of]
    assert found["logs"][0]["source"] == "spark-submit"
    assert [one["shared"] for one in found["logs"]] == [False, True, True]


def test_of_one_that_succeeded_beside_it(call: Callable[..., Result]) -> None:
    found = as_json(call, "program", "2013-01-01T02:00Z", "--all")
    assert found["state"] == "SUCCEEDED"
    failure = next(one["text"] for one in found["events"] if one["type"] == "STEP_FAILURE")
    assert failure.endswith("1 of 3 instance(s) of program failed:")
    written = [one["text"] for one in found["lines"] if one["source"] == "spark-submit"]
    own = [f"2013-01-01T02:00Z line {line} by *****" for line in range(1000)]
    assert [line for line in written if " line " in line] == own


def test_what_spark_said_is_in_it(call: Callable[..., Result]) -> None:
    said = call("stack", "2013-01-01T02:00Z").output
    assert "[USER_RAISED_EXCEPTION] of Spark" in said
    assert "computing 02 with *****" in said
    assert "        at org.apache.spark." in said
    assert "hunter2" not in said


def test_no_run_was_given_it(call: Callable[..., Result]) -> None:
    assert call("program", "2013-01-01T05:00Z").output.splitlines() == [
        "program on primary, 2013-01-01T05:00Z: WAITING",
        "    is due at 2013-01-01T05:00Z",
        "no run was given it",
        "",
        "== events",
        "(nothing)",
    ]


MISTAKES: dict[str, tuple[list[str], type[Exception], str]] = {
    "attempt": (
        ["program", "2013-01-01T01:00Z", "--attempt", "2"],
        UnknownInstanceError,
        "no run is known for attempt 2 of program 2013-01-01T01:00Z; known attempts: 1",
    ),
    "instance": (
        ["program", "2013-01-01T01:30Z"],
        UnknownInstanceError,
        "program has no instance 2013-01-01T01:30Z",
    ),
    "name": (
        ["programm", "2013-01-01T01:00Z"],
        UnknownEntityError,
        "there is no process or feed 'programm' (did you mean 'program'?)",
    ),
}


@pytest.mark.parametrize(("arguments", "error", "text"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(call: Callable[..., Result], arguments: list[str], error: type[Exception], text: str) -> None:
    result = call(*arguments)
    assert (type(result.exception), str(result.exception)) == (error, text)


def test_the_reader_goes_away(environ: dict[str, str]) -> None:
    command = f"{FALCON} instance logs program 2013-01-01T01:00Z --all | head -1"
    cwd = environ["FALCON_HOME"]
    done = subprocess.run(command, shell=True, env=environ, cwd=cwd, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("program on primary, 2013-01-01T01:00Z: ")
    assert done.stderr == ""


def test_a_run_that_was_deleted(call: Callable[..., Result]) -> None:
    before = as_json(call, "program", "2013-01-01T00:00Z")
    with open_installation() as installation:
        record = installation.instance.get_run_by_id(before["run"])
        assert record is not None
        installation.instance.delete_run(before["run"])
        try:
            found = as_json(call, "program", "2013-01-01T00:00Z")
            said = call("program", "2013-01-01T00:00Z").output
        finally:
            installation.instance.add_run(record)
    assert f"attempt 1: run {before['run']} was deleted in Dagster, and with it what it said" in said
    assert (found["log_of"]["status"], found["events"]) == (None, [])
    assert [one["source"] for one in found["logs"]] == ["spark-submit"]
    assert Path(found["logs"][0]["place"]).is_file()


def test_of_each_attempt(call: Callable[..., Result]) -> None:
    """A second run ends before it computes anything."""
    at = "2013-01-01T01:00Z"
    tags = {run_tags.PROCESS: "program", run_tags.CLUSTER: "primary"}
    tags |= {run_tags.NOMINAL_TIMES: at, run_tags.ATTEMPTS: "2"}
    first = as_json(call, "program", at)["run"]
    with open_installation() as installation:
        second = installation.instance.add_run(dg.DagsterRun(job_name="primary__program_job", tags=tags))
        end_as_failed(installation.instance, second, "no machine had room")
    latest = as_json(call, "program", at)
    assert ([one["run"] for one in latest["runs"]], latest["log_of"]["attempt"]) == ([first, second.run_id], 2)
    assert [(one["type"], one["text"]) for one in latest["events"]] == [("PIPELINE_FAILURE", "no machine had room")]
    assert latest["logs"] == []
    earlier = call("program", at, "--attempt", "1").output
    assert f"attempt 1: run {first}, FAILURE" in earlier
    assert f"other attempts: 2 (run {second.run_id})" in earlier
    assert f"{at} line 999" in earlier
