"""What the doctor says of facts; no machine is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from falcon_assets.doctor.automation import judge_daemons, judge_sensors
from falcon_assets.doctor.dagster_facts import DagsterFacts, RunFacts, SensorFacts
from falcon_assets.doctor.database import connection_fix, judge_apart, judge_database, judge_setting
from falcon_assets.doctor.database_facts import DatabaseFacts
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, Severity, lasting, ok, problem, shown
from falcon_assets.doctor.environment import check_secrets, check_variables, judge_secrets, judge_variables
from falcon_assets.doctor.machine import judge_encoding, judge_files, judge_spark_home
from falcon_assets.doctor.runs import judge_queue, judge_run
from falcon_assets.doctor.space import judge_openness, judge_space, judge_usage
from falcon_assets.doctor.webserver import judge_jobs
from falcon_assets.history.dagster_internals.daemon import DaemonHealth
from falcon_assets.history.platform.active_daemon import Daemon
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.eviction import Space
from falcon_assets.settings import load_settings

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
SOUND = DatabaseFacts("", 150004, False, False, False, "", "1", "1", True, (), (), timedelta(), None, "", None)
ALIVE = DaemonHealth("SENSOR", NOW)
RUN = RunFacts("ab", "job", "STARTED", NOW - timedelta(hours=9), NOW - timedelta(hours=2))
FACTS = DagsterFacts([DaemonHealth("QUEUED_RUN_COORDINATOR", NOW)], [], 0, None, 0, 2, [])


@pytest.mark.parametrize(
    ("diagnosis", "status", "text"),
    [
        (judge_space(["a"], 500 << 20, None), "problem", "the disk of a has 500 MiB free, 512 MiB are needed"),
        (judge_space(["a", "b"], 0, None), "problem", "the disk of a, b has 0 MiB free, 512 MiB are needed"),
        (judge_space(["a"], 1 << 30, 5), "warning", "the disk of a has 1024 MiB free only"),
        (judge_space(["a"], 1 << 40, 0), "problem", "the disk of a has room for no more files"),
        (judge_space(["a"], 1 << 40, 1), "ok", "the disk of a has 1024 GiB free"),
        (judge_usage("a", Space(85, 15), 85), "ok", "the disk of cluster 'a' is 85% full, 85% are allowed (max_usage)"),
        (judge_usage("a", Space(851, 149), 85), "warning",
         "the disk of cluster 'a' is 86% full, more than 85% (max_usage)"),
        (judge_usage("a", Space(9, 1), 85, " at /mnt/two"), "warning",
         "the disk of cluster 'a' at /mnt/two is 90% full, more than 85% (max_usage)"),
        (judge_openness(Path("/h"), 0o40770, runs_as_other=False), "ok", "nobody but its owner and group can enter /h"),
        (judge_openness(Path("/h"), 0o40755, runs_as_other=True), "warning",
         "every user of this machine can enter /h, where data of clusters may lie"),
        (judge_openness(Path("/h"), 0o41777, runs_as_other=False), "problem",
         "every user of this machine can write into /h, and replace what runs execute"),
        (judge_jobs(None, []), "ok", "what jobs of the webserver may change: entities, instances"),
        (judge_jobs([], ["ann"]), "ok", "what jobs of the webserver may change: nothing"),
        (judge_jobs(None, ["ann"]), "warning",
         "'ann' can log in here and reach Dagster's webserver, which does not authenticate its users: its jobs may "
         "change nothing, but whoever reaches it can launch runs"),
        (judge_jobs(["instances"], ["ann", "bob"]), "warning",
         "'ann' and 1 more can log in here and reach Dagster's webserver, and its jobs may change: instances"),
        (judge_files(256, 4096), "warning", "a process may open 256 files only: Spark and sensors run out of them"),
        (judge_files(-1, -1), "ok", "a process may open any number of files"),
        (judge_encoding("utf-8", jvm=True), "ok", "names of files are UTF-8"),
        (judge_encoding("ascii", jvm=True), "problem",
            "Python decodes file names as ascii: names with other characters cannot be used"),
        (judge_encoding("utf-8", jvm=False), "warning",
            "this machine has no UTF-8 locale: Spark does not find files such as ü.json"),
        (judge_apart(timedelta(seconds=-3)), "ok", "this machine and the database agree on the time"),
        (judge_apart(timedelta(seconds=90)), "warning", "the clock of this machine is 1 minute behind the database's"),
        (judge_apart(timedelta(hours=-2)), "problem", "the clock of this machine is 2 hours ahead of the database's"),
        (judge_setting(Clock(NOW, NOW, 60)), "ok",
            "the falcon clock shows 2026-01-02T03:04Z@60x since 2026-01-02T03:04:00Z"),
        (judge_database(replace(SOUND, is_pooled=True), embedded=False), "ok",
            "PostgreSQL 15 answers, through a pooler that keeps sessions"),
        (judge_database(replace(SOUND, version=130001), embedded=False), "problem", "PostgreSQL 13 is too old"),
        (judge_database(replace(SOUND, is_read_only=True), embedded=True), "problem",
            "embedded PostgreSQL 15 is read-only, as a standby is"),
        (judge_database(replace(SOUND, refuses_options="no options"), embedded=False), "problem",
            "PostgreSQL 15 is behind a pooler that refuses connections of the ledger: no options"),
        (judge_daemons([ALIVE], NOW, [Daemon("a", 7, NOW, True), Daemon("b", 8, NOW, False)]), "ok",
         "alive: SENSOR; process 7 on a has been the active one since 2026-01-02T03:04:00Z; "
         "process 8 on b has waited since 2026-01-02T03:04:00Z"),
        (judge_daemons([ALIVE, DaemonHealth("ASSET", NOW, "oh")], NOW), "warning",
            "Dagster's daemon is alive, but ASSET had an error: oh"),
        (judge_queue(FACTS, NOW), "ok", "0 runs are queued, 0 of 2 runs are at work"),
        (judge_queue(replace(FACTS, queued=3, oldest_queued=RUN, places=None), NOW), "warning",
            "3 runs are queued, the first for 9 hours, though only 0 of any number runs are at work"),
        (judge_queue(replace(FACTS, queued=3, oldest_queued=RUN, places=0), NOW), "warning",
            "3 runs are queued, the first for 9 hours, because 0 of 0 runs are at work"),
        (*judge_run(RUN, NOW), "warning", "the run ab of job is at work, but nothing has happened to it for 2 hours"),
        (*judge_run(replace(RUN, status="CANCELING"), NOW), "problem", "the run ab of job is CANCELING since 2 hours"),
        (judge_spark_home(None, Path("a")), "ok", None),
    ],
)  # fmt: skip
def test_a_verdict(diagnosis: Diagnosis, status: str, text: str | None) -> None:
    assert (diagnosis.status.value, diagnosis.text) == (status, text or diagnosis.text)
    assert bool(diagnosis.fix) is (diagnosis.status is not Severity.OK)


def test_a_run_that_goes_on_is_not_told() -> None:
    assert list(judge_run(replace(RUN, last_event=NOW), NOW)) == []
    assert list(judge_run(replace(RUN, last_event=NOW, is_lost=True), NOW)) == []


def test_a_worker_that_stands_still_is_named() -> None:
    (said,) = judge_run(replace(RUN, last_event=NOW, stands_still=timedelta(minutes=3)), NOW)
    assert said.status is Severity.PROBLEM
    assert (
        said.text
        == f"the worker of the run {RUN.run_id} of {RUN.job} has stood still for 3 minutes, and keeps its instances"
    )


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"FALCON_HOME": "a", "HOME": "b", "FALCON": "c"}, []),
        ({"MY_KEY": "a"}, []),
        ({"FALCON_KEY": "a"}, []),
        ({"FLACON_HOME": "a"}, ["FLACON_HOME"]),
        ({"falcon_home": "a"}, ["falcon_home"]),
        ({"FALCON_ENTITY_DEF": "a", "FALCON_ENTITY_DEFS": "b"}, ["FALCON_ENTITY_DEF"]),
        ({"FALCON_OTHER": "a"}, ["FALCON_OTHER"]),
    ],
)
def test_variables(environ: dict[str, str], said: list[str]) -> None:
    found = [one for one in judge_variables(environ, {"FALCON_KEY": []}) if one.status is not Severity.OK]
    assert [one.text for one in found] == [f"the environment variable {name} is not read" for name in said]


def test_an_empty_secret_is_told_with_one_of_its_places() -> None:
    (found,) = judge_secrets(
        {"KEY": ["cluster 'a': x", "feed 'b': y"], "SET": ["feed 'b': y"]}, {"KEY": "", "SET": "1"}
    )
    assert found.text == "the environment variable KEY is empty, and cluster 'a': x and 1 more place needs it"


def test_the_receivers_of_the_location_have_to_be_set(tmp_path: Path) -> None:
    folders = {"FALCON_HOME": str(tmp_path), "FALCON_ENTITY_DEFS": str(tmp_path / "none")}
    environ = {**folders, "FALCON_NOTIFICATION_TO": "HOOK"}
    (found,) = check_secrets(CheckContext(load_settings(environ), NOW))
    assert found.text == "the environment variable HOOK is not set, and FALCON_NOTIFICATION_TO needs it"
    assert [one.status for one in check_variables(CheckContext(load_settings(environ), NOW))] == [Severity.OK]


def test_sensors_of_a_dead_daemon_are_not_late() -> None:
    late = SensorFacts("a__collector", False, None)
    (diagnosis,) = judge_sensors([late], {"a__collector": True, "b__collector": True}, NOW, ticking=False)
    assert diagnosis == ok("1 sensor ticks without errors, as long as the daemon lived")


@pytest.mark.parametrize(
    ("reason", "embedded", "fix"),
    [
        ('FATAL:  role "a" does not exist', False, "create that user, or fix FALCON_DATABASE_URL"),
        ("could not translate host name", False, "fix the host in FALCON_DATABASE_URL, or the name service .*"),
        ("FATAL: sorry, too many clients already", False, "close other connections, or raise max_connections .*"),
        ("timeout expired", False, "start PostgreSQL there, or fix host and port in FALCON_DATABASE_URL"),
        ("anything", True, "read its log in FALCON_HOME/postgres/log, or name another server .*"),
    ],
)
def test_what_to_do_about_a_database(reason: str, embedded: bool, fix: str) -> None:
    import re

    assert re.fullmatch(fix, connection_fix(f"the database x cannot be reached: {reason}", embedded=embedded))


def test_no_password_is_told() -> None:
    told = "postgresql://a:p@ss@h/d?password=secret&x=1 and sc://h/;token=abc and a\nline"
    assert shown(told) == "postgresql://a:***@h/d?password=***&x=1 and sc://h/;token=*** and a line"
    assert problem("ftp://u:pw@h", "ftp://u:pw@h") == Diagnosis(Severity.PROBLEM, "ftp://u:***@h", "ftp://u:***@h")


@pytest.mark.parametrize(("seconds", "said"), [(1, "1 second"), (3599, "59 minutes"), (86400 * 3, "3 days")])
def test_how_long(seconds: int, said: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == said
