"""Whatever is killed at whatever step of a delivery, its target has each row once: its own driver is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.datasources.deliveries import as_in_workers, opened, request
from tests.features.datasources.one_delivery import BATCH, BATCHES, PARTS, STEPS, Delivery, batches

__all__ = ["as_in_workers"]
pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("as_in_workers")]
COLUMNS = [("id", "bigint"), ("name", "string")]


@dataclass(frozen=True)
class Place:
    """A database; ``ask`` is its own driver."""

    access: Access
    ask: Callable[[str], list[tuple[Any, ...]]]

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
def place(tmp_path: Path) -> Place:
    def ask(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
            return connection.execute(statement).fetchall()

    ask("CREATE TABLE orders (id INTEGER, name TEXT, hour TEXT)")
    return Place(Access("shop", "sqlite", "sqlite:shop.db", DatasourceThrottle(), home=tmp_path), ask)


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
