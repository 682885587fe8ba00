"""One implementation, three ways in: command, Python API and job give the same result, audit and ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, Table, create_engine, select

from falcon_assets.cli.main import falcon
from falcon_assets.errors import FalconError
from falcon_assets.jobs.entity_operation import falcon_entity_operation
from falcon_assets.ledger.tables import AUDIT, DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.ledger.upgrade import upgrade
from falcon_assets.operations.entities.changing import delete, submit, submit_and_schedule, update
from falcon_assets.operations.entities.results import OperationResult, Request
from falcon_assets.operations.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.operations.entities.versions import restore_entity
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from tests.ledger.histories import empty
from tests.operations.trees import BACKUP, DELAYS, HOURLY, PRIMARY, RAW, content, written

OTHERS = "acl: {owner: nobody, permission: '0700'}\n"
SHORTER = RAW.replace("days(90)", "days(80)")


@dataclass(frozen=True)
class Case:
    """An operation on entities.

    Attributes:
        operation: Its name.
        given: What is named, or the names of files.
        result: What the audit says of it; None: it is not written down.
        says: What the refusal says; empty: it is done.
        options: What is asked for besides.
        files: What is in the files.
        before: What was done before.
    """

    operation: str
    given: tuple[str, ...]
    result: str | None = "done"
    says: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


NEW = {"new.yaml": RAW.replace("name: raw", "name: tides").replace("/raw/", "/tides/")}
CHANGED = {"raw.yaml": SHORTER}
WHY = {"reason": "it's\ntime"}
CASES = {
    "submit": Case("submit", ("new.yaml",), files=NEW, options=WHY),
    "submit again": Case("submit", ("new.yaml", "raw"), "unchanged", files=NEW, before=("submit", "new.yaml")),
    "submit, only said": Case("submit", ("new.yaml",), None, files=NEW, options={"dry_run": True}),
    "submit what is wrong": Case(
        "submit", ("new.yaml",), "failed", "frequency", files={"new.yaml": NEW["new.yaml"].replace("hours(1)", "now")}
    ),
    "submit what is there": Case("submit", ("raw.yaml",), "failed", "with another definition", files=CHANGED),
    "submit nothing": Case("submit", ("nothing",), "failed", "there is no file and no entity 'nothing'"),
    "update": Case("update", ("raw.yaml",), files=CHANGED, options=WHY),
    "update of others": Case(
        "update", ("delays.yaml",), "denied", "may not update feed 'delays'", files={"delays.yaml": DELAYS}
    ),
    "delete": Case("delete", ("hourly",), options={"kind": "process", **WHY}),
    "delete what is not there": Case("delete", ("nothing",), "unchanged"),
    "delete what is needed": Case("delete", ("raw",), "failed", "feed 'raw' is needed by process 'hourly'"),
    "delete of others": Case("delete", ("hourly", "delays"), "denied", "may not delete feed 'delays'"),
    "submit and schedule": Case("submit-and-schedule", ("new.yaml",), files=NEW),
    "submit and schedule of others": Case("submit-and-schedule", ("delays",), "denied", "may not submit-and-schedule"),
    "schedule": Case("schedule", ("raw", "hourly"), options=WHY),
    "schedule again": Case("schedule", ("raw",), "unchanged", before=("schedule", "raw")),
    "schedule of others": Case("schedule", ("raw", "delays"), "denied", "may not schedule feed 'delays'"),
    "schedule, only said": Case("schedule", ("raw",), None, options={"dry_run": True}),
    "suspend": Case("suspend", ("raw",), before=("schedule", "raw"), options={"kind": "feed"}),
    "suspend what does not run": Case("suspend", ("raw",), "failed", "what is SUBMITTED cannot be suspended"),
    "resume": Case("resume", ("raw",), "unchanged", before=("schedule", "raw")),
    "restore": Case("restore", ("raw",), files=CHANGED, before=("update", "raw.yaml"), options={"version": 1}),
    "restore what is not there": Case("restore", ("raw",), "failed", options={"version": 9}),
}


@dataclass(frozen=True)
class Outcome:
    """What an operation leaves behind."""

    said: Any
    audit: list[dict[str, Any]]
    ledger: list[list[dict[str, Any]]]
    tree: dict[str, bytes]


API: Mapping[str, Callable[[Installation, Request], OperationResult]] = {
    "submit": submit,
    "update": update,
    "delete": delete,
    "submit-and-schedule": submit_and_schedule,
    "schedule": schedule_entities,
    "suspend": suspend_entities,
    "resume": resume_entities,
}


def by_command(case: Case) -> Any:
    options = {name: value for name, value in case.options.items() if name not in ("version", "dry_run")}
    arguments = [*case.given, *([str(case.options["version"])] if "version" in case.options else [])]
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    flags += ["--dry-run"] if case.options.get("dry_run") else []
    result = CliRunner().invoke(falcon, ["entity", case.operation, *arguments, *flags, "--json"])
    if isinstance(result.exception, FalconError):
        return str(result.exception)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def by_api(case: Case) -> Any:
    options = dict(case.options)
    version = options.pop("version", None)
    request = Request(case.given, **options)
    with open_installation() as installation:
        try:
            if version is not None:
                return restore_entity(installation, version, request).as_data()
            return API[case.operation](installation, request).as_data()
        except FalconError as error:
            return str(error)


def by_job(case: Case, instance: dg.DagsterInstance) -> Any:
    return in_job(instance, operation=case.operation, names=list(case.given), **case.options)


def in_job(instance: dg.DagsterInstance, **config: Any) -> Any:
    """What comes of the job, or the sentence in which it is refused."""
    done = falcon_entity_operation.execute_in_process(
        {"ops": {"entity_operation": {"config": config}}}, instance=instance, raise_on_error=False
    )
    if not done.success:
        failure = next(one for one in done.all_events if one.is_step_failure).step_failure_data
        assert failure.user_failure_data is not None, failure.error
        return failure.user_failure_data.description
    (output,) = (one for one in done.all_events if one.event_type is dg.DagsterEventType.STEP_OUTPUT)
    return output.step_output_data.metadata["result"].value


def rows(engine: Engine, table: Table, *but: str) -> list[dict[str, Any]]:
    columns = [column for column in table.columns if column.name not in but]
    with engine.connect() as connection:
        found = [dict(row._mapping) for row in connection.execute(select(*columns))]
    return sorted(found, key=str)


def column(engine: Engine, table: Table, name: str) -> list[Any]:
    """In the order in which the rows were written."""
    with engine.connect() as connection:
        return list(connection.execute(select(table.c[name]).order_by(table.c.id)).scalars())


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    made = create_engine(settings.database_url or "")
    upgrade(made)
    yield made
    made.dispose()


@pytest.fixture
def outcome(
    settings: Settings, instance: dg.DagsterInstance, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Case, str], Outcome]:
    """Does a case one of the ways, in an installation in which nothing happened before."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-03T06:00Z")
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")

    def done(case: Case, way: str) -> Outcome:
        root = settings.entity_defs
        shutil.rmtree(root, ignore_errors=True)
        written(root, a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS + OTHERS, e=HOURLY)
        (root / "hourly.sql").write_text("SELECT 1")
        empty(engine)
        given = tmp_path / "given"
        given.mkdir(exist_ok=True)
        for name, text in case.files.items():
            (given / name).write_text(text)
        monkeypatch.chdir(given)
        if case.before:
            by_api(Case(case.before[0], case.before[1:]))
        said = {"cli": by_command, "api": by_api, "job": lambda one: by_job(one, instance)}[way](case)
        ways = column(engine, AUDIT, "way")
        assert ways[len(ways) - (case.result is not None) :] == [way] * (case.result is not None)
        audit = rows(engine, AUDIT, "id", "recorded", "way")
        ledger = [rows(engine, table) for table in (ENTITY_STATUS, DEFINITION_VERSIONS)]
        return Outcome(said, audit, ledger, content(root))

    return done


@pytest.mark.parametrize("name", CASES)
def test_all_three_ways_do_the_same(name: str, outcome: Callable[[Case, str], Outcome], settings: Settings) -> None:
    case = CASES[name]
    first, *others = (outcome(case, way) for way in ("cli", "api", "job"))
    for other in others:
        assert other == first
    assert isinstance(first.said, str) == (case.result in ("failed", "denied"))
    if case.says:
        assert case.says in first.said
    results = [one["result"] for one in first.audit]
    assert sorted(results) == sorted([*(["done"] if case.before else []), *([case.result] if case.result else [])])
    assert {one["principal"] for one in first.audit} <= {settings.user}


def test_a_job_takes_definitions_and_says_where_they_are_wrong(
    outcome: Callable[[Case, str], Outcome], instance: dg.DagsterInstance
) -> None:
    outcome(CASES["delete what is not there"], "api")
    text = NEW["new.yaml"]
    assert in_job(instance, operation="submit", definitions=text)["entities"][0]["action"] == "submitted"
    said = in_job(instance, operation="update", definitions=text.replace("hours(1)", "now"))
    assert said.startswith("definitions:3: frequency: 'now' is not ")
    assert in_job(instance, operation="delete", definitions=text)["entities"][0]["action"] == "deleted"


USAGE = {
    "update needs names or definitions": {"operation": "update"},
    "suspend needs names": {"operation": "suspend"},
    "resume takes names, no definitions": {"operation": "resume", "names": ["raw"], "definitions": RAW},
    "restore needs one name and a version: see falcon entity history": {"operation": "restore", "names": ["raw"]},
}


@pytest.mark.parametrize("says", USAGE)
def test_a_job_that_is_not_told_enough_fails_with_a_sentence(instance: dg.DagsterInstance, says: str) -> None:
    assert in_job(instance, **USAGE[says]) == says


def test_the_principal_of_a_job_is_believed_of_proxy_users(
    outcome: Callable[[Case, str], Outcome],
    instance: dg.DagsterInstance,
    engine: Engine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome(CASES["delete what is not there"], "api")
    asked = {"operation": "schedule", "names": ["delays"], "principal": "nobody"}
    assert in_job(instance, **asked).startswith(f"{settings.user} may not act for 'nobody'")
    monkeypatch.setenv("FALCON_PROXY_USERS", settings.user)
    assert in_job(instance, **asked)["actor"] == "nobody"
    assert in_job(instance, **asked | {"principal": "games"}).startswith("games may not schedule feed 'delays'")
    assert column(engine, AUDIT, "principal") == [settings.user, settings.user, "nobody", "games"]
    assert column(engine, AUDIT, "os_user") == [settings.user] * 4
