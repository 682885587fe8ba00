"""Keys that are dates and numbers: wherever a publisher is killed, PyIceberg reads the old rows or the new ones."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy
from pyiceberg.catalog import load_catalog
from sqlalchemy.engine import Engine

from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.table_store import TableStore
from tests.iceberg_rest import ENVIRON
from tests.processes import killed_before
from tests.registries import Tables, endpoint_of

pytestmark = pytest.mark.soak
STATEMENT = "sql.statement"
"""One of ours, before each statement and each commit of a catalog in a database: Python says nothing of them."""
STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "socket.connect", "open", STATEMENT}
AT_LEAST = 30
"""So many kills of each shape, so that there are 60 of both."""
Rows = list[tuple[str, int, int]]


@pytest.fixture
def statements_are_steps() -> Iterator[None]:
    def told(*_: object) -> None:
        sys.audit(STATEMENT)

    for event in ("before_cursor_execute", "commit"):
        sqlalchemy.event.listen(Engine, event, told)
    yield
    for event in ("before_cursor_execute", "commit"):
        sqlalchemy.event.remove(Engine, event, told)


def rows(endpoint: str, tables: Tables) -> Rows:
    """All of the table, by PyIceberg alone."""
    url, _, name = endpoint.removeprefix("iceberg+").partition("#")
    catalog = load_catalog(name, type="sql", uri=url.replace("postgresql://", "postgresql+psycopg2://"))
    found = catalog.load_table(("default", tables.name)).scan().to_arrow().to_pylist()
    return sorted((str(row["ds"]), row["hour"], row["flight"]) for row in found)


def hours_of(generation: int) -> list[int]:
    """Those of an instance that is several: one stays, one goes with the next generation, one comes with it."""
    return [5, 6 + generation % 2]


def publish(tables: Tables, keys: str, generation: int) -> None:
    target = OutputTarget(f"catalog:default:{tables.name}#{keys}", None, format="parquet")
    store = TableStore(tables.cluster, tables.home, ENVIRON)
    with TablePublication(store, f"generation {generation}", {"out": target}) as made:
        for folder in [f"hour={hour:02}" for hour in hours_of(generation)] if "*" in keys else [""]:
            place = Path(made.staging("out"), folder)
            place.mkdir(parents=True)
            part = pa.table({"carrier": ["UA"] * 2, "flight": [generation] * 2}, tables.COLUMNS)
            pq.write_table(part, place / "part-0.parquet")
        made.commit("out")


def whole(keys: str, generation: int) -> Rows:
    """All of the table."""
    hours = hours_of(generation) if "*" in keys else [5]
    own = [("2024-01-05", hour, generation) for hour in hours for _ in range(2)]
    return sorted([*neighbours(keys), *own])


def neighbours(keys: str) -> Rows:
    """Of another instance, and of other keys."""
    return [("2024-01-06", 5, -2), *([] if "*" in keys else [("2024-01-05", 50, -1)])]


@pytest.mark.usefixtures("statements_are_steps")
@pytest.mark.parametrize("keys", ["ds=20240105;hour=05", "ds=2024-01-05;hour=*"], ids=["one", "several"])
def test_killed_at_every_step(request: pytest.FixtureRequest, tmp_path: Path, keys: str) -> None:
    endpoint = endpoint_of(request, "iceberg")
    tables = Tables(endpoint, tmp_path, keys=("ds", "hour"))
    tables.make(pa.date32(), pa.int32())
    publish(tables, keys, 0)
    for day, hour, flight in neighbours(keys):
        tables.land((day, str(hour)), flight)
    outcomes: Counter[str] = Counter()
    generations = count(1)
    while outcomes.total() < AT_LEAST:
        for step in count(1):
            generation = next(generations)
            was_killed = killed_before(step, STEPS, partial(publish, tables, keys, generation))
            now = rows(endpoint, tables)
            assert now in (whole(keys, generation - 1), whole(keys, generation))
            if not was_killed:
                assert now == whole(keys, generation)
                break
            outcomes["new" if now == whole(keys, generation) else "old"] += 1
            publish(tables, keys, generation)  # it is tried again
            assert rows(endpoint, tables) == whole(keys, generation)
    print(f"{keys}: {outcomes.total()} kills, {dict(outcomes)}")  # noqa: T201 - said on failure
    assert outcomes.keys() == {"old", "new"}
