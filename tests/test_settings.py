"""Settings that cannot be: refused in a sentence that holds no secret."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from falcon_assets.errors import SettingsError
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import load_settings
from tests.processes import environ_with, falcon_here


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\udcffb"], ids=["line break", "escape", "no UTF-8"])
def test_a_home_that_cannot_be_written_down_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"^FALCON_HOME '.*' has characters that cannot be printed: choose another"):
        load_settings({"FALCON_HOME": name})


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hush@h:54x32/d", "postgresql://u:hush@hush@h/d"],
    ids=["port", "at"],
)
def test_a_malformed_database_url_is_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^FALCON_DATABASE_URL is not a URL: postgresql://user:\*{5}@") as error:
        database_url(load_settings({"FALCON_DATABASE_URL": url}))
    assert "hush" not in str(error.value)


def test_options_that_the_driver_does_not_know_are_an_error_without_a_traceback(tmp_path: Path) -> None:
    url = "postgresql://u:hush@127.0.0.1:1/d?color=red"
    environ = environ_with(FALCON_HOME=str(tmp_path), FALCON_DATABASE_URL=url, FALCON_ENTITY_DEFS="entity_defs")
    said = falcon_here(environ, "ledger", "status")
    assert said.returncode == 1
    assert said.stderr == (
        "Error: the database postgresql+psycopg2://u:*****@127.0.0.1:1/d?color=red cannot be reached: "
        'invalid dsn: invalid connection option "color"\n'
    )


@pytest.mark.parametrize("environ", [{}, {"USER": "ann", "LOGNAME": "ann"}], ids=["as in cron", "any name"])
def test_who_acts_is_the_user_of_the_system(environ: dict[str, str]) -> None:
    assert load_settings(environ).user == pwd.getpwuid(os.getuid()).pw_name


def test_a_user_without_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert load_settings({"USER": "ann"}).user == "unknown"


def test_who_is_told_where_an_entity_does_not_say_it(tmp_path: Path) -> None:
    def told(**environ: str) -> tuple[list[str], list[str]] | None:
        found = load_settings({"FALCON_HOME": str(tmp_path), **environ}).notification
        return found and ([one.value for one in found.on], [one.url.env for one in found.to])

    assert told() is None
    assert told(FALCON_NOTIFICATION_ON="SLA") is None
    usual = ["FAILED", "TIMED_OUT", "SLA", "EXECUTOR_OFFLINE", "EXECUTOR_ONLINE"]
    assert told(FALCON_NOTIFICATION_TO="A, B") == (usual, ["A", "B"])
    assert told(FALCON_NOTIFICATION_TO="A", FALCON_NOTIFICATION_ON="SLA,LATE") == (["SLA", "LATE"], ["A"])
    with pytest.raises(SettingsError, match="FALCON_NOTIFICATION_ON: there is no event 'sla'; there is: FAILED, TIMED"):
        told(FALCON_NOTIFICATION_TO="A", FALCON_NOTIFICATION_ON="sla")
    with pytest.raises(SettingsError, match="FALCON_NOTIFICATION_TO: name environment variables") as caught:
        told(FALCON_NOTIFICATION_TO="slack://hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("", None),
        ("http://marquez:5000/", "http://marquez:5000"),
        ("https://host/below/api/v1/lineage", "https://host/below"),
    ],
)
def test_who_is_sent_lineage(tmp_path: Path, url: str, read: str | None) -> None:
    assert load_settings({"FALCON_HOME": str(tmp_path), "FALCON_OPENLINEAGE_URL": url}).openlineage_url == read


@pytest.mark.parametrize(
    "url", ["marquez:5000", "http://", "http://me:hush@host", "http://h?key=hush", "http://h:hush"]
)
def test_a_malformed_address_of_lineage_is_not_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match="FALCON_OPENLINEAGE_URL must be an http URL without credentials") as error:
        load_settings({"FALCON_HOME": str(tmp_path), "FALCON_OPENLINEAGE_URL": url})
    assert "hush" not in str(error.value)


def test_what_jobs_may_do(tmp_path: Path) -> None:
    def told(text: str) -> frozenset[str] | None:
        return load_settings({"FALCON_HOME": str(tmp_path), "FALCON_JOBS": text}).jobs

    assert told("") is None
    assert told("nothing") == frozenset()
    assert told("entities, principals") == {"entities", "principals"}
    with pytest.raises(
        SettingsError, match=r"^FALCON_JOBS: 'all' is none of entities, instances, principals; or write nothing$"
    ):
        told("entities,all")


QUEUE_FILES = {
    "not there": (None, "{path} cannot be read: No such file or directory"),
    "no yaml": ("etl: {jobs: 1\n", "{path}:2 is not YAML"),
    "a list": ("[1]\n", "{path}: it: Input should be a valid dictionary"),
    "a word": ("etl: {jobs: many}\n", "{path}: etl.jobs: Input should be a valid integer"),
    "none": ("etl: {jobs: 0}\n", "{path}: etl.jobs: Input should be greater than or equal to 1"),
    "misspelt": ("etl: {job: 1}\n", "{path}: etl.job: Extra inputs are not permitted"),
}


@pytest.mark.parametrize(("text", "said"), QUEUE_FILES.values(), ids=list(QUEUE_FILES))
def test_wrong_queues_are_told(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "queues.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError) as error:
        load_settings({"FALCON_QUEUES": str(path)})
    assert str(error.value) == f"FALCON_QUEUES: {said.format(path=path)}"


def test_queues_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text("etl: {jobs: 10, cores: 8, priority: 5, users: [ann]}\nopen: {}\n")
    found = load_settings({"FALCON_QUEUES": str(path)}).queues
    assert found["etl"].model_dump() == {"jobs": 10, "cores": 8, "priority": 5, "users": ("ann",)}
    assert found["open"].jobs is None
    assert load_settings({}).queues == {}
