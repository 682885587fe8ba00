"""While others write a hundred transactions a second, fifty imports of changes lose no row, and double none."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest

from falcon_assets.model.instant import format_instant
from falcon_assets.settings import Settings
from tests.features.transfers.source import connected, run_sql
from tests.features.transfers.source_server import source_server
from tests.features.transfers.worlds import ImportWorld, import_world, imported
from tests.hours import hour

pytestmark = pytest.mark.soak
INCREMENTS, WRITERS, PER_SECOND = 50, 10, 130
MINUTES = {"frequency": "minutes(15)", "locations": {"data": "/NAME/${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}"}}
FIGURES = "SELECT count(*), sum(id), sum(v), sum(id * v) FROM orders"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with source_server(tmp_path_factory.mktemp("source")) as server:
        run_sql(server.url, "CREATE TABLE orders (id bigserial PRIMARY KEY, v bigint, at timestamptz DEFAULT now())")
        yield server.url


@pytest.fixture(scope="module")
def world(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    url: str,
    shop_password: None,
) -> ImportWorld:
    source = {"source": {"name": "shop", "table": "orders"}, "extract": {"incremental": {"column": "at"}}}

    def feed(name: str, **more: object) -> str:
        place = {"data": MINUTES["locations"]["data"].replace("NAME", name)}  # type: ignore[index]
        return imported(name, 24, {**MINUTES, "locations": place}, **source, **more)

    whole = feed("whole", merge={"upsert": {"key": ["id"]}})
    return import_world(settings, instance, write_entities, url, feed("added"), whole)


class Writers:
    """Threads that write in transactions of differing length, which end in another order than they begin."""

    def __init__(self, url: str) -> None:
        self.committed, self.errors = 0, list[Exception]()
        self._url, self._over, self._lock = url, threading.Event(), threading.Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._work, args=(random.Random(n), n)) for n in range(WRITERS)]
        for one in threads:
            one.start()
        try:
            yield
        finally:
            self._over.set()
            for one in threads:
                one.join()

    def _work(self, dice: random.Random, number: int) -> None:
        try:
            with connected(self._url) as connection, connection.cursor() as cursor:
                own, due = list[int](), time.monotonic()
                while not self._over.is_set():
                    due += WRITERS / PER_SECOND
                    self._over.wait(max(0.0, due - time.monotonic()))
                    written = self._write(cursor, dice, own)
                    self._over.wait(dice.choice([0, 0, 0, 0.01, 0.1, 0.5 if number == 0 else 0]))
                    if dice.random() < 0.1:
                        connection.rollback()
                    else:
                        connection.commit()
                        own += written
                        with self._lock:
                            self.committed += 1
                connection.commit()
        except Exception as error:
            self.errors.append(error)

    def _write(self, cursor: object, dice: random.Random, own: list[int]) -> list[int]:
        """Returns the ids of new rows; only who wrote a row changes it, so that nobody waits for another."""
        execute, fetch = cursor.execute, cursor.fetchone  # type: ignore[attr-defined]
        written = []
        for _ in range(dice.randint(1, 3)):
            if own and dice.random() < 0.5:
                execute("UPDATE orders SET v = v + 1, at = now() WHERE id = %s", [dice.choice(own)])
                continue
            execute("SAVEPOINT part")
            execute("INSERT INTO orders (v) VALUES (0) RETURNING id")
            written.append(fetch()[0])
            if dice.random() < 0.1:
                execute("ROLLBACK TO part")
                written.pop()
        return written


def test_no_row_is_lost_and_none_doubled(world: ImportWorld, url: str) -> None:
    """Increments follow each other in one run; the last one is imported when nobody writes any more."""
    writers, began = Writers(url), time.monotonic()
    keys = [format_instant(hour(0) + number * timedelta(minutes=15)) for number in range(INCREMENTS + 1)]
    with writers.at_work():
        for feed in ("added", "whole"):
            assert [one.success for _, one in world.play("12:30", world.store.imports_of(feed))] == [True]
        rate = writers.committed / (time.monotonic() - began)
    assert writers.errors == []
    for feed in ("added", "whole"):
        assert [one.success for _, one in world.play("12:45", world.store.imports_of(feed))] == [True]
    behind = sum(one["behind"] is not None for one in world.all_transfers("added import"))
    print(f"{writers.committed} transactions, {rate:.0f} a second; {behind} increments left something")  # noqa: T201
    assert behind > INCREMENTS / 2
    (figures,) = run_sql(url, FIGURES)
    table = dict(run_sql(url, "SELECT id, v FROM orders"))
    assert figures[0] == len(table) > INCREMENTS * 10
    whole = rows(world, "whole", keys[-1])
    assert (len(whole), sum(one for one, _ in whole), sum(v for _, v in whole)) == figures[:3]
    assert sum(one * v for one, v in whole) == figures[3] and dict(whole) == table
    added = [row for key in keys for row in rows(world, "added", key)]
    assert len(set(added)) == len(added), "a version of a row is in two instances"
    assert dict(added) == table, "the last version of each row is the last that was added"


def rows(world: ImportWorld, feed: str, key: str) -> list[tuple[int, int]]:
    """Ids and values, as plain pyarrow reads them."""
    folder = world.settings.home / f"data/primary/{feed}/{key[:16].replace('T', '-').replace(':', '-')}"
    table = pq.read_table(folder, columns=["id", "v"])
    return list(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
