from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine, delete, select, text

from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import ENTITY_STATUS
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.entity import entity
from tests.processes import FALCON
from tests.waiting import wait_until

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: raw
frequency: hours(1)
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: both
frequency: hours(1)
locations: {data: "/both/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: both
schedule: true
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: both, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
"""


@pytest.fixture(scope="module")
def ledger(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Engine]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    engine = create_engine(settings.database_url or "")
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def call(ledger: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Calls the command at six o'clock; nothing was commanded yet."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-03T06:00Z")
    with ledger.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
    return lambda *arguments: CliRunner().invoke(entity, arguments)


def listed(call: Callable[..., Result], *arguments: str) -> dict[str, Any]:
    result = call("list", "--json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_list_says_what_is_declared(call: Callable[..., Result]) -> None:
    page = listed(call)
    assert (page["total"], page["next"]) == (4, None)
    assert [(one["kind"], one["name"], one["status"]) for one in page["items"]] == [
        ("cluster", "primary", "SUBMITTED"),
        ("feed", "raw", "SUBMITTED"),
        ("feed", "both", "SUBMITTED"),
        ("process", "both", "RUNNING"),
    ]
    assert listed(call, "--kind", "process")["items"] == page["items"][3:]
    lines = [line.strip("│ ").split() for line in call("list").output.splitlines()]
    shown = ["process", "│", "both", "│", "RUNNING", "│", "2013-01-03T06:00:00Z", "│", "declared", "│", "primary"]
    assert [*shown, "│", "default"] in lines


def test_parts_of_the_list(call: Callable[..., Result]) -> None:
    first = listed(call, "--limit", "3", "--sort", "-name", "--filter", "name=both", "--filter", "name=raw")
    assert [one["name"] for one in first["items"]] == ["raw", "both", "both"]
    page = listed(call, "--offset", "1", "--limit", "1", "--filter", "kind=feed")
    assert ([one["name"] for one in page["items"]], page["total"], page["next"]) == (["both"], 2, None)
    shown = call("list", "--limit", "1").output
    assert shown.endswith("1 of 4 lines; the next ones: --offset 1\n")


USAGE = {
    "a field that is not there": (["--filter", "nam=x"], "there is no field 'nam' (did you mean 'name'?); there is: "),
    "no value": (["--filter", "name"], "'name': write field=value"),
    "sorted by nothing": (["--sort", "-x"], "there is no field 'x'"),
}


@pytest.mark.parametrize(("arguments", "said"), USAGE.values(), ids=USAGE)
def test_what_a_list_does_not_know_is_an_error_of_usage(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(entity, ["list", *arguments])
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_definition_is_shown_as_it_is_stored(call: Callable[..., Result]) -> None:
    assert call("show", "raw").output == ENTITIES.split("---\n")[1]
    assert json.loads(call("show", "both", "--kind", "process", "--json").output) == {
        "name": "both",
        "kind": "process",
        "status": "RUNNING",
        "clusters": ["primary"],
        "pipelines": ["default"],
        "tags": {},
        "owner": None,
        "definition": {
            "kind": "process",
            "name": "both",
            "schedule": True,
            "clusters": [
                {"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}},
            ],
            "frequency": "hours(1)",
            "inputs": [{"name": "rows", "feed": "raw", "start": "now(0,0)", "end": "now(0,0)"}],
            "outputs": [{"name": "out", "feed": "both", "instance": "now(0,0)"}],
            "workflow": {"engine": "spark-sql", "path": "a.sql"},
        },
    }


def test_status(call: Callable[..., Result]) -> None:
    assert call("status", "raw").output == "feed raw is SUBMITTED, since 2013-01-03T06:00:00Z, declared\n"
    assert call("status", "primary").output == "cluster primary is SUBMITTED\n"


def test_dependencies_are_trees(call: Callable[..., Result]) -> None:
    assert call("dependency", "raw").output.splitlines() == [
        "feed raw needs",
        "└── cluster primary (cluster)",
        "feed raw is needed by",
        "└── process both (input)",
    ]
    found = json.loads(call("dependency", "both", "--kind", "feed", "--json").output)
    assert [one["name"] for one in found["needs"]] == ["primary"]
    process = {"kind": "process", "name": "both", "roles": ["output"], "entities": []}
    assert found["needed_by"] == [process]


def test_lookup(call: Callable[..., Result]) -> None:
    assert call("lookup", "--path", "/raw/2013-01-02/03/part-0").output == (
        "raw on primary: data of 2013-01-02T03:00Z\n"
    )
    assert call("lookup", "--path", "/raw").output == "no instance of a feed has the path /raw\n"
    found = json.loads(call("lookup", "--path", "/both/2013-01-02/03", "--json").output)
    instance = {"feed": "both", "cluster": "primary", "location": "data", "instance": "2013-01-02T03:00Z"}
    assert found == {"items": [instance], "total": 1, "next": None}


def test_an_entity_is_scheduled_suspended_and_resumed(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = [
        ("schedule", "feed raw is RUNNING now, it was SUBMITTED\n"),
        ("suspend", "feed raw is SUSPENDED now, it was RUNNING\n"),
        ("suspend", "feed raw is SUSPENDED already (since 2013-01-03T08:00:00Z, commanded): nothing to do\n"),
        ("resume", "feed raw is RUNNING now, it was SUSPENDED\n"),
        ("schedule", "feed raw is RUNNING already (since 2013-01-03T10:00:00Z, commanded): nothing to do\n"),
    ]
    for hour, (command, said) in enumerate(story, 7):
        monkeypatch.setenv("FALCON_CLOCK", f"2013-01-03T{hour:02}:00Z")
        result = call(command, "raw")
        assert (result.exit_code, result.output) == (0, said)
    assert call("status", "raw").output == "feed raw is RUNNING, since 2013-01-03T10:00:00Z, commanded\n"


def test_a_command_applies_to_all_or_none(call: Callable[..., Result]) -> None:
    assert call("schedule", "raw", "--dry-run").output == "feed raw would be RUNNING, it is SUBMITTED\n"
    result = call("suspend", "raw", "both", "--kind", "feed")
    assert (result.exit_code, str(result.exception)) == (1, "feed 'both': what is SUBMITTED cannot be suspended")
    result = call("schedule", "both", "raw", "--kind", "feed", "--json", "--reason", "it is time")
    found = json.loads(result.output)
    assert (found["operation"], found["reason"], found["changed"]) == ("schedule", "it is time", True)
    assert found["statuses"] == [
        {"kind": "feed", "name": name, "before": "SUBMITTED", "status": "RUNNING"} for name in ("both", "raw")
    ]
    assert call("suspend", "raw", "nobody").exit_code == 1
    assert call("status", "raw").output.startswith("feed raw is RUNNING")


NEW = """# mine
kind: feed
name: new
frequency: hours(1)
locations: {data: "/new/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""


def test_an_entity_comes_is_scheduled_changes_and_goes(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    file = tmp_path / "new.yaml"
    file.write_text(NEW)
    asked = (
        "Dagster was not asked to reload the code location (FALCON_WEBSERVER_URL is empty); "
        "code servers of falcon serve do it by themselves\n"
    )

    def told(*arguments: str) -> str:
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        return re.sub(r"\(\S*entity_defs/", "(", result.output)

    submitted = f"feed new is submitted (feeds/new.yaml)\n{{}}{asked}"
    assert told("submit-and-schedule", str(file)) == submitted.format("feed new is RUNNING now, it was SUBMITTED\n")
    again = told("submit-and-schedule", str(file))
    assert again.startswith(
        "feed new is unchanged (feeds/new.yaml): nothing to do\nfeed new is RUNNING already (since "
    )
    file.write_text("".join(NEW.splitlines(keepends=True)[1:]).replace("hours(1)", "hours(2)"))
    shown = told("update", str(file), "--dry-run")
    assert "-frequency: hours(1)\n+frequency: hours(2)\n" in shown
    assert shown.endswith("feed new would be updated (feeds/new.yaml)\n")
    assert told("update", str(file)) == f"feed new is updated (feeds/new.yaml)\n{asked}"
    assert told("show", "new") == NEW.replace("hours(1)", "hours(2)")
    assert told("delete", "new") == f"feed new is deleted (feeds/new.yaml)\n{asked}"
    assert told("delete", "new") == "entity new is not there: nothing to do\n"
    # Its status has gone with it.
    assert told("submit", str(file)) == submitted.format("")
    assert told("status", "new") == "feed new is SUBMITTED, since 2013-01-03T06:00:00Z, declared\n"
    assert json.loads(told("delete", "new", "--json"))["entities"][0]["action"] == "deleted"


def test_versions_are_listed_compared_and_restored(call: Callable[..., Result], tmp_path: Path) -> None:
    def told(*arguments: str) -> str:
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        return result.output

    file = tmp_path / "new.yaml"
    file.write_text(NEW.replace("name: new", "name: versioned").replace("/new/", "/versioned/"))
    told("submit", str(file), "--reason", "[first] one")
    versions = json.loads(told("history", "versioned", "--json"))
    assert [(one["version"], one["operation"], one["reason"]) for one in versions["items"]] == [
        (1, "submit", "[first] one")
    ]
    assert (versions["total"], versions["next"], versions["recorded"]) == (1, None, True)
    assert told("diff", "versioned") == "feed versioned has the definition of version 1\n"
    told("delete", "versioned")
    shown = told("history", "versioned")
    assert "[first] one" in shown
    assert "deleted" in shown
    assert json.loads(told("diff", "versioned", "1", "--json"))["diff"].startswith("--- versioned version 1\n")
    assert "would be submitted" in told("restore", "versioned", "1", "--dry-run")
    restored = json.loads(told("restore", "versioned", "1", "--reason", "back", "--json"))
    assert (restored["operation"], restored["entities"][0]["action"]) == ("restore", "submitted")
    told("delete", "versioned")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("history", "none"), "no definition of an entity 'none' is recorded"),
        (("history", "\udcff"), "no definition of an entity '\\\\udcff' is recorded"),
        (("diff", "raw", "99"), "feed 'raw' has no version 99: there are 1 to 1"),
        (("restore", "raw", "99"), "feed 'raw' has no version 99: there are 1 to 1"),
        (("history", "both"), "there is a feed and a process 'both': say which one with --kind"),
    ],
    ids=["unknown", "no text", "no version", "nothing to restore", "ambiguous"],
)
def test_what_has_no_version_is_told_in_a_sentence(
    call: Callable[..., Result], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "raw.yaml"
    file.write_text(ENTITIES.split("---\n")[1])
    assert call("update", str(file)).exit_code == 0  # records what is there
    result = call(*arguments)
    assert (result.exit_code, message in str(result.exception)) == (1, True)


@pytest.mark.parametrize("command", ["delete", "submit-and-schedule"])
def test_without_the_database_nothing_is_half_done(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, command: str
) -> None:
    (tmp_path / "new.yaml").write_text(NEW)
    before = {file: file.read_bytes() for file in settings.entity_defs.rglob("*.yaml")}
    monkeypatch.setenv("FALCON_DATABASE_URL", "postgresql://user:secret@127.0.0.1:9/none")
    given = {"delete": ["both", "--kind", "process"], "submit-and-schedule": [str(tmp_path / "new.yaml")]}
    result = call(command, *given[command])
    assert result.exit_code == 1
    assert "cannot be reached" in str(result.exception)
    assert {file: file.read_bytes() for file in settings.entity_defs.rglob("*.yaml")} == before


def test_of_two_commands_at_once_one_finds_it_done_and_an_error_exits_with_1(
    call: Callable[..., Result], ledger: Engine, settings: Settings
) -> None:
    """Both processes have to wait for the row; then the second one sees what the first one did."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = (FALCON, "entity", "suspend", *arguments)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=settings.home)

    call("schedule", "raw")
    with ledger.begin() as holder:
        holder.execute(select(ENTITY_STATUS).where(ENTITY_STATUS.c.name == "raw").with_for_update())
        both = [start("raw") for _ in range(2)]
        wrong = start("both", "--kind", "feed")
        until_blocked(ledger, 2)
    said = sorted(one.communicate(timeout=60)[0] for one in both)
    assert said == [
        "feed raw is SUSPENDED already (since 2013-01-03T06:00:00Z, commanded): nothing to do\n",
        "feed raw is SUSPENDED now, it was RUNNING\n",
    ]
    assert [one.returncode for one in both] == [0, 0]
    out, err = wrong.communicate(timeout=60)
    message = "Error: feed 'both': what is SUBMITTED cannot be suspended\n"
    assert (wrong.returncode, out, err) == (1, "", message)


def until_blocked(engine: Engine, number: int) -> None:
    """Waits until that many connections of this database wait for a lock."""
    statement = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def blocked() -> bool:
        with engine.connect() as connection:
            return connection.execute(statement).scalar_one() == number

    wait_until(blocked, 60, f"{number} that wait")


def test_a_summary_has_the_latest_instances(call: Callable[..., Result]) -> None:
    found = json.loads(call("summary", "--kind", "process", "-n", "2", "--json").output)
    (both,) = found["items"]
    assert (both["name"], both["status"], found["total"], found["next"]) == ("both", "RUNNING", 1, None)
    assert [(one["instance"], one["state"]) for one in both["instances"]] == [
        ("2013-01-03T06:00Z", "WAITING"),
        ("2013-01-03T05:00Z", "WAITING"),
    ]
    shown = call("summary", "--type", "feed", "-n", "3", "--limit", "1").output
    assert "MISSING MISSING MISSING" in shown
    assert "1 of 2 lines; the next ones: --offset 1" in shown


def test_a_path_that_is_empty_is_misuse(call: Callable[..., Result]) -> None:
    result = call("lookup", "--path", " ")
    assert result.exit_code == 2
    assert "Invalid value for '--path': it is empty" in result.output
