"""A flow over two days, while an executor is killed in the middle of an import, and another takes over."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from os import killpg
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from falcon_assets.instances.store.executors import note_answer
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.executor_health import Answer, Load
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml
from tests.features.flows.shop_flow import DATABASES, can, flow_yaml, status_of
from tests.features.transfers.shop import Shop
from tests.features.transfers.test_http_imports import Service, service
from tests.spark_servers import connect_server_process
from tests.world import MakeWorld, World

__all__ = ["service"]
pytestmark = pytest.mark.soak
STEP = 4
HOURS = range(0, 48, STEP)
KILLED = 24
READS = (("http", "file"), ("file", "postgresql"))


@dataclass(frozen=True)
class Days(World):
    """A world whose times have a day in front: ``2T03:10``."""

    def at(self, time: str) -> Settings:
        day, _, clock = time.rpartition("T")
        return replace(self.settings, clock=Clock(origin=parse_instant(f"2013-01-{int(day):02}T{clock}Z")))

    def note(self, name: str, waiting: int) -> None:
        """How many applications wait for cores of an executor of ``one``."""
        with self.ledger.engine.begin() as connection:
            answer = Answer(load=Load(2, 2, waiting))
            note_answer(connection, self.store.cluster("one"), name, answer, datetime.now(UTC))


class Rows(list[dict[str, Any]]):
    """Rows of the service; something happens when they are asked for."""

    def __init__(self, rows: list[dict[str, Any]], happens: Callable[[], None] = lambda: None) -> None:
        super().__init__(rows)
        self.happens = happens

    def __getitem__(self, which: Any) -> Any:
        self.happens()
        return super().__getitem__(which)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Callable[[], None]]]:
    """The endpoint of an executor, and how it is killed with all that it has started."""
    with connect_server_process(tmp_path_factory.mktemp("far"), "far") as (cluster, process):
        endpoint = cluster.interfaces.execute.endpoint
        yield endpoint, lambda: killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def world(service: Service, make_world: MakeWorld, database: str, far: tuple[str, Callable[[], None]]) -> Days:
    executors = [can(*READS, name="far", endpoint=far[0]), can(*READS, name="near")]
    clusters = cluster_yaml("one", executors=executors) + cluster_yaml("two")
    flow = flow_yaml(service.url, database, schedule=f"0 */{STEP} * * *")
    found: Days = make_world({"all.yaml": clusters + flow}, Days)
    return found


def rows_at(number: int) -> list[dict[str, Any]]:
    """Orders of the service: more each time, and the first changes."""
    return [{"id": n, "name": f"Größe {n}", "price": (number if n == 0 else n) + 0.25} for n in range(number + 3)]


def published(folder: Path) -> list[dict[str, Any]]:
    return sorted(pq.read_table(folder).to_pylist(), key=lambda one: one["id"])


def exact(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "price": Decimal(str(one["price"]))} for one in rows]


def test_nothing_is_lost_or_doubled(
    service: Service, world: Days, database: str, far: tuple[str, Callable[[], None]]
) -> None:
    imports = []
    for number in HOURS:
        day, clock = number // 24 + 1, number % 24
        world.note("near", waiting=1 if number <= KILLED else 0)  # so the other one is chosen
        kill = far[1] if number == KILLED else (lambda: None)
        service.rows = Rows(rows_at(number), kill)
        world.step(f"{day}T{clock:02}:10")
        if number == KILLED:
            service.rows = Rows(rows_at(number))
            world.step(f"{day}T{clock:02}:25")  # retries begin after ten minutes
        status = status_of(world, f"{day}T{clock:02}:30")
        assert (status["instance"], status["state"]) == (f"2013-01-{day:02}T{clock:02}:00Z", "SUCCEEDED"), status
        imports += [(one["executor"], one["attempt"]) for one in status["jobs"] if one["kind"] == "import"]
        rows = exact(rows_at(number))
        for folder in ("one/flows/orders", "two/lake"):
            assert published(world.settings.home / f"data/{folder}/2013-01-{day:02}/{clock:02}") == rows
        for name in DATABASES:
            found = Shop(database, name).ask("SELECT id, name, price FROM orders ORDER BY id")
            assert found == [(one["id"], one["name"], one["price"]) for one in rows]
    before = KILLED // STEP
    assert imports == [("far", 1)] * before + [("near", 2)] + [("near", 1)] * (len(HOURS) - before - 1)
