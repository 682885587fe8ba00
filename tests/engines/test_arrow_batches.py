"""Functions of Arrow tables that tasks of Spark call for many instances: against one alone, and plain Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark import cloudpickle

from falcon_assets.compute.engines.computing import together_arrow  # noqa: F401 - which says what travels
from falcon_assets.compute.engines.computing.arrow_groups import calling
from falcon_assets.compute.engines.computing.python import load_function
from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.engines.computing.together import Example
from falcon_assets.errors import WorkflowError
from falcon_assets.planning.data_usage import normal_place
from tests.spark.sandbox import Sandbox

pytestmark = pytest.mark.soak
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
HOURS, EMPTY = 4, 2
ROWS = "k string, n int, at timestamp, price decimal(10,2), day date, tags array<string>, of struct<a: int, b: string>"
KINDS = f"{ROWS}, hour timestamp, names int, least string"
CODE = """
import datetime as dt
import pyarrow as pa

def run(inputs, instance):
    rows, names = inputs["rows"], inputs["names"]
    assert instance.process and instance.nominal_time.tzinfo is dt.timezone.utc
    few = rows.filter(pa.compute.greater_equal(rows["n"], int(instance.properties["least"])))
    count = len(few)
    more = few.append_column("hour", pa.array([instance.nominal_time] * count, pa.timestamp("us", "UTC")))
    more = more.append_column("names", pa.array([len(names)] * count, pa.int64()))
    return more.append_column("LEAST", pa.array([instance.properties["least"]] * count, pa.string()))
"""


def row_of(number: int) -> dict[str, Any]:
    return {
        "k": "ab"[number % 2],
        "n": number,
        "at": f"2013-07-0{number % 9 + 1} 12:00:00.000123",
        "price": number / 4,
        "day": f"2013-02-0{number % 9 + 1}",
        "tags": [None, "é"][: number % 3],
        "of": {"a": number, "b": None} if number % 4 else None,
    }


def value_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """As a reader of Parquet finds it."""
    at = datetime.fromisoformat(row["at"]).replace(tzinfo=UTC)
    price = Decimal(str(row["price"])).quantize(Decimal("0.01"))
    return row["k"], row["n"], at, price, date.fromisoformat(row["day"]), row["tags"], row["of"]


def land(sandbox: Sandbox) -> list[list[dict[str, Any]]]:
    hours = [
        [row_of(hour * 10 + one) for one in range(0 if hour in (EMPTY, EMPTY + 1) else hour + 3)]
        for hour in range(HOURS + 1)
    ]
    for hour, rows in enumerate(hours):
        sandbox.file(f"rows/{hour}/a.json", "\n".join(map(json.dumps, rows)))
        sandbox.file(f"names/{hour}/a.json", "\n".join('{"name": "x"}' for _ in range(hour)))
    return hours


def tasks_of(sandbox: Sandbox, code: str, folder: str, schema: str = KINDS, **output: Any) -> list[WorkflowTask]:
    """Each reads two hours of rows, so that windows overlap, and one of names."""
    sandbox.file("w.py", code)
    workflow = sandbox.workflow(engine="pyspark", path="w.py", batch="arrow")
    made = sandbox.output("made", schema=schema, **output)
    return [
        sandbox.task(
            workflow,
            nominal=FIRST + timedelta(hours=hour),
            inputs=(
                sandbox.counted("rows", f"rows/{hour}", f"rows/{hour + 1}", schema=ROWS),
                sandbox.counted("names", f"names/{hour}", schema="name string"),
            ),
            outputs=(replace(made, url=f"{sandbox.folder.as_uri()}/out/{folder}/{hour}"),),
            properties={"least": str(hour)},
        )
        for hour in range(HOURS)
    ]


def said(row: dict[str, Any]) -> str:
    """Spark's old timestamps have no zone in Arrow."""
    times = {name: f"{value:%F %T.%f}" for name, value in row.items() if isinstance(value, datetime)}
    return repr({**row, **times})


def read(task: WorkflowTask) -> tuple[Counter[str], set[str]]:
    """The rows, with what folders say, and the schemas of the files."""
    files = sorted(Path(normal_place(task.outputs[0].url)).rglob("*.parquet"))
    of = Counter[str]()
    for file in files:
        folders = dict(step.split("=") for step in file.parts if "=" in step)
        of += Counter(said({**row, **folders}) for row in pq.ParquetFile(file).read().to_pylist())
    return of, {str(pq.read_schema(file)) for file in files}


@pytest.mark.parametrize("partitions", [[], ["k"]])
def test_many_are_computed_as_each_alone(sandbox: Sandbox, partitions: list[str]) -> None:
    hours = land(sandbox)
    alone, together = (tasks_of(sandbox, CODE, way, partitions=partitions) for way in ("alone", "together"))
    results = [run_workflow(task) for task in alone]
    example = Example.of(alone[0], results[0])
    assert all(map(example.is_like, together))
    found = together[0].workflow.compute_together(together, example)
    names = [name.split()[0] for name in ("k", "n", "at", "price", "day", "tags", "of")]
    for hour, (one, before, other, now) in enumerate(zip(alone, results, together, found, strict=True)):
        expected = Counter[str]()
        for row in (*hours[hour], *hours[hour + 1]):
            if row["n"] >= hour:
                values = dict(zip(names, value_of(row), strict=True))
                values |= {"hour": one.nominal, "names": hour, "least": str(hour)}
                k = {"k": values.pop("k")} if partitions else {}
                expected[said({**values, **k})] += 1
        assert [read(one)[0], read(other)[0]] == [expected] * 2
        assert now.records == before.records == {"made": expected.total()}
        assert read(one)[1] == read(other)[1] != set()
        reads = [{tuple(map(normal_place, each.roots)) for each in of.reads} for of in (before.captured, now.captured)]
        assert reads[0] == reads[1]
    assert not read(together[EMPTY])[0]


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("None", "run() returned nothing: return a table"),
        ("[1]", "run() returned a value of type list: return a table"),
        ("inputs['rows'].select(['k'])", "the columns are not those of the feed: n is missing"),
        ("inputs['rows'].select(['k', 'n', 'day'])", "the columns are not those of the feed: day is not declared"),
        (
            "pa.table({'k': ['a'], 'n': [2**40]})",
            "column 'n' is int64 and does not fit into int32: Integer value 1099511627776 not in range",
        ),
        ("1 // 0", "ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_what_it_returns_has_to_fit(sandbox: Sandbox, returned: str, why: str) -> None:
    land(sandbox)
    code = "import pyarrow as pa\n\ndef run(inputs, instance):\n    return {}\n"
    good = "inputs['rows'].select(['k', 'n']).to_pandas()"
    tasks = tasks_of(sandbox, code.format(good), "good", "k string, n int")
    example = Example.of(tasks[0], run_workflow(tasks[0]))
    bad = tasks_of(sandbox, code.format(returned), "bad", "k string, n int")
    with pytest.raises(WorkflowError) as alone:
        run_workflow(bad[0])
    with pytest.raises(Exception) as together:
        bad[0].workflow.compute_together(bad, example)
    assert why in str(alone.value)
    assert why in str(together.value)
    assert not (sandbox.folder / "out/bad/1").exists()


EXECUTOR = """
import pickle, sys
import pyarrow as pa
sys.modules["falcon_assets"] = None  # as on an executor that has none
call = pickle.load(open(sys.argv[1], "rb"))
rows = pa.array([{"n": 1}, {"n": 2}, None], pa.struct([("n", pa.int32())]))
numbers = pa.array([0, 0, -1], pa.int32())
table = pa.table({"falcon_instance": numbers, "falcon_input": numbers, "falcon_rows_0": rows})
print(call((pa.scalar(0),), table).to_pylist())
"""


def test_the_function_travels_without_this_package(sandbox: Sandbox) -> None:
    land(sandbox)
    code = (
        "def run(inputs, instance):\n    return inputs['rows'].append_column('T', [[f'{instance.nominal_time}'] * 2])\n"
    )
    (task, *_) = tasks_of(sandbox, code, "travels")
    function, _ = load_function(task, "w.py", None, "inputs, instance")
    schema = pa.schema([("n", pa.int32()), ("t", pa.string())])
    file = sandbox.folder / "call.pickle"
    file.write_bytes(cloudpickle.dumps(calling(function, [task.instance], ["rows"], schema, "w.py: run()")))
    done = subprocess.run([sys.executable, "-c", EXECUTOR, file], capture_output=True, text=True, check=False)
    time = "2013-01-01 00:00:00+00:00"
    expected = [{"falcon_instance": 0, "n": n, "t": time} for n in (1, 2)]
    assert done.stdout.strip() == str(expected), done.stderr
