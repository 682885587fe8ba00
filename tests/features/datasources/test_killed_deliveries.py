"""Whatever is killed at whatever step of a delivery, its target has each row once: its own driver is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.datasources.deliveries import as_in_workers, opened, request
from tests.features.datasources.one_delivery import BATCH, BATCHES, PARTS, STEPS, Delivery, batches
from tests.features.transfers.source import run_sql
from tests.features.transfers.source_server import source_server
from tests.mariadb_server import MariaDb
from tests.waiting import wait_until

__all__ = ["as_in_workers"]
pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("as_in_workers")]
COLUMNS = [("id", "bigint"), ("name", "string")]


@dataclass(frozen=True)
class Place:
    """A database that can be killed.

    Attributes:
        ask: Its own driver.
        restart: Kills it, and starts it again; None: there is no server.
    """

    access: Access
    ask: Callable[[str], list[tuple[Any, ...]]]
    restart: Callable[[], None] | None

    @property
    def rows(self) -> int:
        """Of an instance."""
        return BATCH * BATCHES * (1 if self.access.type == "sqlite" else PARTS)

    def require_once(self, *hours: int) -> None:
        """All rows of these hours are there, each once, and nothing else; each has one delivery."""
        found = self.ask("SELECT count(*), count(DISTINCT id), min(id), max(id), min(name) FROM orders")
        first = [hour * 100_000 for hour in hours]
        count = self.rows * len(hours)
        names = [f"order {one + number}" for one in first for number in range(self.rows)]
        assert found == [(count, count, first[0], first[-1] + self.rows - 1, min(names))]
        assert self.ask("SELECT count(*), count(DISTINCT execution) FROM falcon_deliveries") == [(len(hours),) * 2]


@pytest.fixture
def postgresql(tmp_path: Path) -> Iterator[Place]:
    with source_server(tmp_path) as server:
        run_sql(server.url, "CREATE TABLE orders (id bigint, name text, hour timestamptz)")

        def restart() -> None:
            server.kill()
            server.control("start")

        endpoint = f"postgresql://127.0.0.1:{server.port}/postgres"
        access = Access("shop", "postgresql", endpoint, DatasourceThrottle(), "postgres")
        yield Place(access, lambda statement: run_sql(server.url, statement), restart)


@pytest.fixture
def maria(tmp_path: Path) -> Iterator[Place]:
    # Otherwise what was committed in the last second would be in its memory only.
    server = MariaDb(tmp_path, options=("--innodb-flush-log-at-trx-commit=2",))
    server.start()
    with server.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")

    def ask(statement: str) -> list[tuple[Any, ...]]:
        with server.cursor("shop") as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def restart() -> None:
        server.kill()
        server.start()

    ask("CREATE TABLE orders (id bigint, name varchar(100), hour datetime)")
    try:
        yield Place(
            Access("shop", "mysql", f"mysql://127.0.0.1:{server.port}/shop", DatasourceThrottle(), "root"), ask, restart
        )
    finally:
        server.kill()


@pytest.fixture
def sqlite(tmp_path: Path) -> Place:
    def ask(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
            return connection.execute(statement).fetchall()

    ask("CREATE TABLE orders (id INTEGER, name TEXT, hour TEXT)")
    return Place(Access("shop", "sqlite", "sqlite:shop.db", DatasourceThrottle(), home=tmp_path), ask, None)


@pytest.fixture(params=["postgresql", "maria", "sqlite"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def asked(hour: int) -> WriteRequest:
    return request(COLUMNS, hour, partition="hour")


def delivered(place: Place, hour: int) -> None:
    """All of a delivery, by a driver that lives."""
    assert Delivery(place.access, asked(hour), hour * 100_000).start().go_on() == ""


def test_the_driver_is_killed_at_each_step(place: Place) -> None:
    delivered(place, 0)
    for hour, step in enumerate(STEPS, 1):
        Delivery(place.access, asked(hour), hour * 100_000).start(step).kill()
        count = place.ask(f"SELECT count(*) FROM orders WHERE id >= {hour * 100_000}")
        assert count == [(place.rows if step == "committed" else 0,)]
        delivered(place, hour)
        place.require_once(*range(hour + 1))


def test_a_worker_is_killed_while_it_loads(place: Place) -> None:
    with opened(place.access, asked(0)) as writing:
        Delivery(place.access, asked(0), 0, writing.part).start("loading").kill()
        parts = 1 if place.access.type == "sqlite" else PARTS
        loaded = [LoadedPart(number, 1, writing.part.load(number, 1, batches(0, number))) for number in range(parts)]
        assert writing.commit(loaded, lambda: None) == place.rows
    place.require_once(0)


@pytest.mark.parametrize("place", ["postgresql", "maria"], indirect=True)
def test_the_database_is_killed_at_each_step(place: Place) -> None:
    assert place.restart is not None
    delivered(place, 0)
    for hour, step in enumerate(STEPS, 1):
        running = Delivery(place.access, asked(hour), hour * 100_000).start(step)
        place.restart()
        said = running.go_on()
        assert said == "" if step == "committed" else said.startswith("datasource 'shop': "), said
        delivered(place, hour)
        place.require_once(*range(hour + 1))


def test_what_dead_deliveries_left_is_gone_after_the_next_one(place: Place) -> None:
    Delivery(place.access, asked(0), 0).start("loading").kill()
    Delivery(place.access, asked(0), 0).start("loaded").kill()

    def left() -> list[str]:
        if place.access.type == "sqlite":
            return [one.name for one in place.access.home.glob("*falcon_staging*")]
        schema = "'shop'" if place.access.type == "mysql" else "'public'"
        asked_for = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}"
        return [name for (name,) in place.ask(asked_for) if name.startswith("falcon_staging")]

    assert left()
    delivered(place, 0)
    hour = iter(range(1, 100))

    def gone() -> bool:  # the server may notice a little later that a session is dead
        delivered(place, next(hour))
        return left() == []

    wait_until(gone, 60, what="staging is dropped")


def test_errors_of_a_dead_server_are_sentences(maria: Place) -> None:
    with opened(maria.access, asked(0)) as writing:
        part = LoadedPart(0, 0, writing.part.load(0, 0, batches(0, 0)))
        assert maria.restart is not None
        maria.restart()
        with pytest.raises(DatasourceError, match=r"^datasource 'shop': "):
            writing.commit([part], lambda: None)
    assert maria.ask("SELECT count(*) FROM orders") == [(0,)]
