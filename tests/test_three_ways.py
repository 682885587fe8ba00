"""One implementation, three ways in: command, Python API and job give the same result, audit and ledger."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import Engine, create_engine

from falcon_assets.features.versions.operations import find_feed_instance
from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import (
    AUDIT,
    DEFINITION_VERSIONS,
    ENTITY_STATUS,
    FEED_INSTANCES,
    KEPT_VERSIONS,
    PROCESS_INSTANCES,
    RERUNS,
)
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations import job_powers
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.storage.files.checksum import checksum_of
from falcon_assets.storage.instances.data_version import version_of
from falcon_assets.storage.output_target import output_target
from tests.features.entities.trees import BACKUP, DELAYS, HOURLY, PRIMARY, RAW, content, written
from tests.ledger.histories import empty
from tests.operations.rows import process_row, write
from tests.three_ways import Case, Outcome, by_api, by_command, by_job, column, in_job, rows

OTHERS = "acl: {owner: nobody, permission: '0700'}\n"
PRIVATE = HOURLY.replace("name: hourly", "name: private").partition("outputs:")[0] + (
    "workflow: {engine: spark-sql, path: hourly.sql}\n" + OTHERS
)
SHORTER = RAW.replace("days(90)", "days(80)")


KEPT = """kind: feed
name: kept
frequency: hours(1)
versions: {keep: 1}
locations: {data: "/kept/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""
FIRST, SECOND = (
    version_of([(b"part-0", len(text), bytes.fromhex(checksum_of(text)))]).version for text in (b"one", b"second")
)
"""The versions of its first instance; that which replaced the other one is there."""
NEW = {"new.yaml": RAW.replace("name: raw", "name: tides").replace("/raw/", "/tides/")}
CHANGED = {"raw.yaml": SHORTER}
WHY = {"reason": "it's\ntime"}
DAY, LATER = "2013-01-01T00:00Z", "2013-01-01T07:00Z"
STATES = ("FAILED", "SUCCEEDED", "TIMED_OUT", "RUNNING", "SUSPENDED", "KILLED", "WAITING")
"""Of the first hours of the day; the hour after them has no row yet."""
CASES = {
    "submit": Case("submit", ("new.yaml",), files=NEW, options=WHY),
    "submit again": Case("submit", ("new.yaml", "raw"), "unchanged", files=NEW, before=("submit", "new.yaml")),
    "submit, only said": Case("submit", ("new.yaml",), None, files=NEW, options={"dry_run": True}),
    "submit what is wrong": Case(
        "submit",
        ("definitions",),
        "failed",
        "frequency",
        files={"definitions": NEW["new.yaml"].replace("hours(1)", "now")},
    ),
    "submit what is there": Case("submit", ("raw.yaml",), "failed", "with another definition", files=CHANGED),
    "submit nothing": Case("submit", ("nothing",), "failed", "there is no file and no entity 'nothing'"),
    "update": Case("update", ("raw.yaml",), files=CHANGED, options=WHY),
    "update of others": Case(
        "update", ("delays.yaml",), "denied", "may not update feed 'delays'", files={"delays.yaml": DELAYS}
    ),
    "apply what is new": Case("apply", ("new.yaml",), files=NEW, options=WHY),
    "apply what is there": Case("apply", ("raw.yaml",), files=CHANGED),
    "apply again": Case("apply", ("raw.yaml",), "unchanged", files=CHANGED, before=("apply", "raw.yaml")),
    "apply of others": Case(
        "apply", ("delays.yaml",), "denied", "may not apply feed 'delays'", files={"delays.yaml": DELAYS}
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
    "touch": Case("touch", ("raw", "hourly"), options=WHY),
    "touch, only said": Case("touch", ("raw",), None, options={"dry_run": True}),
    "touch what is not there": Case("touch", ("nothing",), "failed", "there is no entity 'nothing'"),
    "touch of others": Case("touch", ("delays",), "denied", "may not touch feed 'delays'"),
    "restore": Case("restore", ("raw",), files=CHANGED, before=("update", "raw.yaml"), options={"version": 1}),
    "restore what is not there": Case("restore", ("raw",), "failed", options={"version": 9}),
    "rerun": Case("rerun", ("hourly",), options={"start": "2013-01-01T00:00Z", **WHY}, noun="instance"),
    "rerun what succeeded": Case(
        "rerun", ("hourly",), "unchanged", options={"start": "2013-01-01T01:00Z"}, noun="instance"
    ),
    "rerun by force": Case(
        "rerun", ("hourly",), options={"start": "2013-01-01T01:00Z", "force": True, "use_latest": True}, noun="instance"
    ),
    "rerun with what reads it": Case(
        "rerun",
        ("hourly",),
        options={"start": "2013-01-01T01:00Z", "force": True, "downstream": True},
        noun="instance",
    ),
    "rerun many": Case(
        "rerun", ("hourly",), options={"status": ["TIMED_OUT", "KILLED"], "late": True}, noun="instance"
    ),
    "rerun what failed": Case(
        "rerun", ("hourly",), options={"start": DAY, "end": LATER, "from_failed": True}, noun="instance"
    ),
    "rerun, only said": Case(
        "rerun", ("hourly",), None, options={"start": DAY, "end": LATER, "dry_run": True}, noun="instance"
    ),
    "rerun what there is not": Case(
        "rerun", ("hourly",), "failed", "has no instance", {"start": "2013-01-01T00:30Z"}, noun="instance"
    ),
    "rerun for others": Case(
        "rerun", ("private",), "denied", "may not rerun instances of process 'private'", {"start": DAY}, noun="instance"
    ),
    "kill": Case("kill", ("hourly",), options={"start": DAY, "end": LATER, **WHY}, noun="instance"),
    "kill what is over": Case("kill", ("hourly",), "unchanged", options={"start": DAY}, noun="instance"),
    "kill for others": Case("kill", ("private",), "denied", "may not kill", {"start": DAY}, noun="instance"),
    "suspend instances": Case("suspend", ("hourly",), options={"start": DAY, "end": LATER, **WHY}, noun="instance"),
    "resume instances": Case("resume", ("hourly",), options={"status": ["SUSPENDED"]}, noun="instance"),
    "resume, only said": Case(
        "resume", ("hourly",), None, options={"status": ["SUSPENDED"], "dry_run": True}, noun="instance"
    ),
    "restore an instance": Case("restore", ("kept",), options={"start": DAY, "version": FIRST, **WHY}, noun="instance"),
    "restore what is there": Case(
        "restore", ("kept",), "done", options={"start": DAY, "version": SECOND}, noun="instance"
    ),
    "restore an instance, only said": Case(
        "restore", ("kept",), None, options={"start": DAY, "version": FIRST, "dry_run": True}, noun="instance"
    ),
    "restore what is not kept": Case(
        "restore", ("kept",), "failed", "there is no version", {"start": LATER, "version": FIRST}, noun="instance"
    ),
    "restore of a feed that keeps none": Case(
        "restore", ("raw",), "failed", "on several clusters", {"start": DAY, "version": FIRST}, noun="instance"
    ),
    "restore for others": Case(
        "restore", ("delays",), "denied", "may not restore", {"start": DAY, "version": FIRST}, noun="instance"
    ),
}
INSTANCES = [
    *(process_row("hourly", number, state, failures=9) for number, state in enumerate(STATES)),
    process_row("private", 0, "FAILED", failures=9),
]


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
    monkeypatch.setenv("FALCON_JOBS", "entities,instances")

    def done(case: Case, way: str) -> Outcome:
        root = settings.entity_defs
        shutil.rmtree(root, ignore_errors=True)
        written(root, a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS + OTHERS, e=HOURLY, f=PRIVATE, g=KEPT)
        (root / "hourly.sql").write_text("SELECT 1")
        instance.wipe()
        empty(engine)
        shutil.rmtree(settings.home / "data", ignore_errors=True)
        with open_installation() as installation:
            write(installation, *INSTANCES)
            kept = find_feed_instance(installation.entities, settings, "kept", parse_instant(DAY), None)
            for text in (b"one", b"second"):
                target = output_target(kept.feed, kept.instance, kept.path)
                with kept.storage.publish("test", {"out": target}) as publication:
                    Path(publication.staging("out")).mkdir(parents=True)
                    Path(publication.staging("out"), "part-0").write_bytes(text)
                    publication.commit("out")
        given = tmp_path / "given"
        given.mkdir(exist_ok=True)
        for name, text in case.files.items():
            (given / name).write_text(text)
        monkeypatch.chdir(given)
        if case.before:
            by_api(Case(case.before[0], case.before[1:]))
        said: Any = {"cli": by_command, "api": by_api, "job": lambda one: by_job(one, instance)}[way](case)
        ways = column(engine, AUDIT, "way")
        assert ways[len(ways) - (case.result is not None) :] == [way] * (case.result is not None)
        audit = rows(engine, AUDIT, "id", "recorded", "way")
        ledger = [rows(engine, table) for table in (ENTITY_STATUS, DEFINITION_VERSIONS, RERUNS)]
        ledger.append(rows(engine, PROCESS_INSTANCES, "event_id"))
        ledger += [rows(engine, FEED_INSTANCES, "event_id", "version_event"), rows(engine, KEPT_VERSIONS)]
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


USAGE: dict[str, dict[str, Any]] = {
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
    monkeypatch.setenv("FALCON_PROXY_USERS", settings.user)
    assert in_job(instance, **asked) == (
        "a job may not act for 'nobody': leave the principal out, or add principals to FALCON_JOBS where only a front "
        "end that knows its users reaches Dagster's webserver"
    )
    monkeypatch.delenv("FALCON_PROXY_USERS")
    monkeypatch.setenv("FALCON_JOBS", "entities,principals")
    assert in_job(instance, **asked).startswith(f"{settings.user} may not act for 'nobody'")
    monkeypatch.setenv("FALCON_PROXY_USERS", settings.user)
    assert in_job(instance, **asked)["actor"] == "nobody"
    assert in_job(instance, **asked | {"principal": "games"}).startswith("games may not schedule feed 'delays'")
    assert column(engine, AUDIT, "principal") == [settings.user] * 3 + ["nobody", "games"]
    assert column(engine, AUDIT, "os_user") == [settings.user] * 5


@pytest.mark.parametrize("operation", ["submit", "update", "apply", "delete", "submit-and-schedule"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_job_reads_no_file(
    outcome: Callable[[Case, str], Outcome], instance: dg.DagsterInstance, tmp_path: Path, operation: str, dry_run: bool
) -> None:
    """Whoever reaches the webserver would be shown a line of any file that the daemon may read."""
    outcome(CASES["delete what is not there"], "api")
    secret = tmp_path / "secret.yaml"
    secret.write_text("hush: hunter2\n")
    for name in (str(secret), "../secret.yaml", str(tmp_path), "/etc/shadow"):
        assert in_job(instance, operation=operation, names=[name], dry_run=dry_run) == (
            f"{name!r} is not the name of an entity: files are not read here, give what is in them as definitions"
        )


@pytest.mark.parametrize("noun", ["entity", "instance"])
def test_what_jobs_may_not_do_is_denied_and_audited(
    outcome: Callable[[Case, str], Outcome],
    instance: dg.DagsterInstance,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    noun: str,
) -> None:
    outcome(CASES["delete what is not there"], "api")
    entity = {"operation": "touch", "names": ["raw"]}
    asked = entity if noun == "entity" else {"operation": "suspend", "name": "hourly", "start": "2013-01-01T00:00Z"}
    about, other = ("entities", "instances") if noun == "entity" else ("instances", "entities")
    monkeypatch.setenv("FALCON_JOBS", other)
    assert in_job(instance, noun, **asked) == (
        f"FALCON_JOBS does not let jobs change {about}: use the falcon command, or add {about} to it"
    )
    monkeypatch.delenv("FALCON_JOBS")
    monkeypatch.setattr(job_powers, "other_users", lambda: ["ann"])
    assert in_job(instance, noun, **asked) == (
        f"jobs may not change {about} here: 'ann' and whoever else can log in on this machine reaches Dagster's "
        "webserver, which does not authenticate its users; use the falcon command, or set FALCON_JOBS="
        f"{about} where the webserver lets in only those who may"
    )
    monkeypatch.setattr(job_powers, "other_users", list)
    assert not isinstance(in_job(instance, noun, **asked), str)
    assert column(engine, AUDIT, "result")[1:3] == ["denied", "denied"]
