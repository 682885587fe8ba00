"""Processes that read a roll-up and tell its members apart: by a column, as inputs beside it, by paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.rollups.passes import RollupPass
from falcon_assets.operations.installation import Installation
from tests.catalog.definition_files import FILES, problems
from tests.features.landing.snapshot_tables import run
from tests.features.rollups.test_definitions import ROLLUP
from tests.operations.opening import OpenAt

_ON = "clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]"


def _feed(name: str, keys: str) -> str:
    return f"---\nkind: feed\nname: {name}\nfrequency: hours(1)\n{keys}\n{_ON}\n"


def _process(name: str, members: str, engine: str) -> str:
    return f"""---
kind: process
name: {name}
frequency: hours(1)
{_ON}
inputs: [{{name: sales, feed: sales-world, start: "now(0,0)", end: "now(0,0)", members: {members}}}]
outputs: [{{name: made, feed: {name}-made, instance: "now(0,0)"}}]
workflow: {engine}
schedule: true
""" + _feed(f"{name}-made", f'locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}')


_HOUR = "${YEAR}-${MONTH}-${DAY}/${HOUR}"
ENTITIES = (
    'kind: cluster\nname: primary\ninterfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}\n'
    + _feed("sales-us", f'locations: {{data: "/us/{_HOUR}"}}')
    + _feed("sales-ca", f'locations: {{data: "/north/deeper/{_HOUR}"}}')
    + _feed("sales-eu", f'locations: {{data: "/eu/{_HOUR}"}}')
    + _feed("sales-america", "rollup: {of: [sales-us, sales-ca]}")
    + _feed("sales-world", "rollup: {of: [sales-america, sales-eu], optional: [sales-eu]}")
    + _process("by-sql", "{column: region, views: true}", "{engine: spark-sql, path: by.sql}")
    + _process("by-python", "{views: true}", "{engine: pyspark, path: by.py}")
)
SQL = """
SELECT region, sum(n) AS n, max(extra) AS extra,
  (SELECT count(*) FROM sales__sales_us) AS us, (SELECT sum(n) FROM `sales__sales-ca`) AS ca,
  (SELECT count(*) FROM sales__sales_eu) AS eu
FROM sales GROUP BY region
"""
PYTHON = """
def run(spark, inputs, instance):
    names = [(name, frame.count(), len(instance.inputs[name])) for name, frame in sorted(inputs.items())]
    return spark.createDataFrame(names, "name string, rows bigint, folders bigint").coalesce(1)
"""


def _land(installation: Installation, place: str, columns: dict[str, list[int]]) -> None:
    folder = installation.settings.home / f"data/{place}/2013-01-01/00"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "part.parquet")


def _rows(installation: Installation, process: str) -> list[dict[str, object]]:
    return pq.read_table(installation.settings.home / f"data/{process}/2013-01-01/00").to_pylist()


def test_members_are_told_apart_at_any_depth(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    """The feeds that rows lie in, an optional one of which nothing has come, and columns that only one has."""
    write_entities({"all.yaml": ENTITIES, "by.sql": SQL, "by.py": PYTHON})
    with open_at("2013-01-01T00:30Z") as installation:
        _land(installation, "us", {"n": [1, 2]})
        _land(installation, "north/deeper", {"n": [10], "extra": [7]})
        store = installation.entities
        Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 60)
        RollupPass(store, "primary", installation.settings).record(installation.ledger)
        found = run(installation)
        assert (found.succeeded, found.trouble, found.left_out) == (2, (), {})
        same = {"us": 2, "ca": 10, "eu": 0}
        assert sorted(_rows(installation, "by-sql"), key=json.dumps) == [
            {"region": "sales-ca", "n": 10, "extra": 7, **same},
            {"region": "sales-us", "n": 3, "extra": None, **same},
        ]
        assert _rows(installation, "by-python") == [
            {"name": "sales", "rows": 3, "folders": 2},
            {"name": "sales__sales-ca", "rows": 1, "folders": 1},
            {"name": "sales__sales-eu", "rows": 0, "folders": 0},
            {"name": "sales__sales-us", "rows": 2, "folders": 1},
        ]


ASKS = """\
---
kind: process
name: telling
frequency: days(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
inputs:
  - name: read
    feed: daily
    start: "now(0,0)"
    end: "now(0,0)"
    members: {column: region, views: true}
workflow: {engine: spark-sql, path: hourly.sql}
"""
LINE = FILES["processes.yaml"].count("\n") + 11
"""Of the key ``members``."""
WRONG = {
    "no_rollup": ("daily\n", "delays\n", "feed 'delays' is no roll-up, so it has no members: remove it"),
    "taken": (
        "workflow",
        'outputs: [{name: read__delays, feed: raw-daily, instance: "now(0,0)"}]\nworkflow',
        ".views: the name 'read__delays' is taken by another input or output",
    ),
    "program": (
        "spark-sql",
        "spark-submit",
        ".column: spark-submit gets paths and no rows: ask for views, which are paths by member there",
    ),
    "nothing": ("{column: region, views: true}", "{views: false}", "needs column, or views: true"),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_told_apart_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    files = {**FILES, "feeds.yaml": FILES["feeds.yaml"] + ROLLUP}
    found = problems(tmp_path, {**files, "processes.yaml": FILES["processes.yaml"] + ASKS.replace(old, new)})
    where = f"processes.yaml:{LINE}: inputs[0].members"
    assert any(one.startswith(where) and one.endswith(said) for one in found), found
