"""The engine ``python``: what its function is given, what it may return, what is written, and what is said."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from falcon_assets.base.cancellation import Cancellation, CancelledError, cancellable
from falcon_assets.compute.arrow.columns import with_instants
from falcon_assets.compute.arrow.text_files import TEXTUAL
from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowResult
from falcon_assets.compute.executor import InProcessExecutor
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.captured import DataRead
from tests.spark.sandbox import Sandbox, cluster_on
from tests.waiting import wait_until

SCHEMA = (
    "id bigint, price decimal(10,2), at timestamp, wall timestamp_ntz, day date, name string, good boolean, x double"
)
AT = datetime(2013, 1, 1, 5, 0, 0, 123456)
ROWS = [
    {
        "id": 1,
        "price": Decimal("12.30"),
        "at": AT.replace(tzinfo=UTC),
        "wall": AT,
        "day": date(2013, 1, 1),
        "name": 'a "b", c\\d\tü',
        "good": True,
        "x": 1.5,
    },
    dict.fromkeys(["id", "price", "at", "wall", "day", "name", "good", "x"]),
    {
        "id": 3,
        "price": Decimal("-0.01"),
        "at": AT.replace(tzinfo=UTC),
        "wall": AT,
        "day": date(1999, 12, 31),
        "name": "",
        "good": False,
        "x": -1e20,
    },
]
OPTIONS: dict[str, dict[str, str]] = {"csv": {"header": "true"}, "json": {}, "parquet": {}, "orc": {}}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path, cluster_on("spark://nobody.invalid:7077"))


def run(sandbox: Sandbox, text: str, **task: Any) -> WorkflowResult:
    sandbox.file("w.py", text)
    workflow = sandbox.workflow(engine="python", path="w.py")
    return run_workflow(sandbox.task(workflow, **{"executor": InProcessExecutor(sandbox.cluster), **task}))


def refusal(sandbox: Sandbox, text: str, **task: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        run(sandbox, text, **task)
    return str(caught.value).replace(f"{sandbox.folder}/", "")


def written(sandbox: Sandbox, name: str = "delays") -> list[dict[str, Any]]:
    return pq.read_table(sandbox.folder / "out" / name, partitioning=None).to_pylist()


GIVEN = "def run(inputs, instance):\n    return inputs['raw']"


@pytest.mark.parametrize("target", OPTIONS)
@pytest.mark.parametrize("source", OPTIONS)
def test_rows_go_from_each_format_to_each(sandbox: Sandbox, source: str, target: str) -> None:
    from_, to = {"format": source, "options": OPTIONS[source]}, {"format": target, "options": OPTIONS[target]}
    made = sandbox.output("in", **from_, schema=SCHEMA)
    rows = f"import pyarrow as pa\nimport datetime\nfrom decimal import Decimal\nROWS = {ROWS!r}\n"
    run(sandbox, f"{rows}def run(inputs, instance):\n    return pa.Table.from_pylist(ROWS)", outputs=(made,))
    raw = sandbox.input("raw", "out/in", **from_, schema=SCHEMA)
    result = run(sandbox, GIVEN, inputs=(raw,), outputs=(sandbox.output("delays", **to, schema=SCHEMA),))
    assert result.records == {"delays": 3}
    again = sandbox.input("raw", "out/delays", **to, schema=SCHEMA)
    run(sandbox, GIVEN, inputs=(again,), outputs=(sandbox.output("told", schema=SCHEMA),))
    assert written(sandbox, "told") == ROWS


def test_the_instance_has_folders_of_this_machine(sandbox: Sandbox) -> None:
    sandbox.file("in/a.xml", "<a/>")
    text = """
import pathlib
def run(inputs, instance):
    assert sorted(inputs) == ["raw"] and instance.process == "hourly" and instance.nominal_time.hour == 5
    assert instance.properties == {"threshold": "15"}
    [folder] = instance.inputs["raw"]
    assert pathlib.Path(folder, "a.xml").read_text() == "<a/>"
    import pyarrow as pa, pyarrow.parquet as pq
    pq.write_table(pa.table({"a": [1, 2]}), instance.outputs["delays"] + "/mine.parquet")
"""
    raw = sandbox.input("raw", "in", format="xml")
    result = run(sandbox, text, inputs=(raw,), properties={"threshold": "15"})
    assert result.records == {"delays": 2}
    assert written(sandbox) == [{"a": 1}, {"a": 2}]
    assert result.captured.reads == (DataRead(raw.urls, raw.urls, True),)
    assert [one.path for one in result.captured.writes] == [sandbox.output("delays").url]


def test_what_is_not_asked_for_is_not_read(sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", "no json")
    result = run(
        sandbox,
        "import pyarrow as pa\ndef run(inputs, instance):\n    return pa.table({'a': [1]})",
        inputs=(sandbox.input("raw", "in", format="json"),),
    )
    assert (result.captured.reads, result.captured.problem) == ((), "")
    [write] = result.captured.writes
    assert [(one.name, one.type, one.is_opaque) for one in write.each] == [("a", "bigint", True)]


RETURNED = {
    "table": "pa.table({'a': [1, 2]})",
    "batch": "pa.record_batch({'a': [1, 2]})",
    "reader": "pa.table({'a': [1, 2]}).to_reader()",
    "dataset": "ds.dataset(pa.table({'a': [1, 2]}))",
    "scanner": "ds.dataset(pa.table({'a': [0, 1, 2]})).scanner(filter=ds.field('a') > 0)",
    "pandas": "pd.DataFrame({'a': [1, 2]}, index=[7, 8])",
    "dict": "{'delays': pa.table({'a': [1, 2]})}",
}


@pytest.mark.parametrize("returned", RETURNED.values(), ids=RETURNED)
def test_what_may_be_returned(sandbox: Sandbox, returned: str) -> None:
    imports = "import pandas as pd\nimport pyarrow as pa\nimport pyarrow.dataset as ds\n"
    assert run(sandbox, f"{imports}def run(inputs, instance):\n    return {returned}").records == {"delays": 2}
    assert written(sandbox) == [{"a": 1}, {"a": 2}]


def test_several_outputs_and_one_that_it_writes_itself(sandbox: Sandbox) -> None:
    text = """
import pandas as pd
def run(inputs, instance):
    open(instance.outputs["b-c"] + "/x.csv", "w").write("1,x\\n2,y\\n")
    return {"a": pd.DataFrame({"x": [1]})}
"""
    outputs = (sandbox.output("a"), sandbox.output("b-c", format="csv"))
    assert run(sandbox, text, outputs=outputs).records == {"a": 1, "b-c": 2}


def test_batches_are_written_as_they_come(sandbox: Sandbox) -> None:
    text = """
import pyarrow as pa
def batches():
    for number in range(5):
        yield pa.record_batch({"a": [number]})
def run(inputs, instance):
    return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
"""
    assert run(sandbox, text).records == {"delays": 5}
    failing = text.replace("yield pa.record_batch", "number == 3 and nope\n        yield pa.record_batch")
    assert refusal(sandbox, failing, outputs=(sandbox.output("b"),)) == (
        "NameError: name 'nope' is not defined (w.py:5)"
    )


def test_no_rows_are_an_empty_file_with_columns(sandbox: Sandbox) -> None:
    nothing = "import pyarrow as pa\ndef run(inputs, instance):\n    return pa.table({'a': pa.array([], pa.int32())})"
    assert run(sandbox, nothing).records == {"delays": 0}
    assert pq.read_table(sandbox.folder / "out/delays").schema == pa.schema([("a", pa.int32())])
    assert run(sandbox, nothing, outputs=(sandbox.output("o", format="orc"),)).records == {"o": 0}
    assert orc.read_table(sandbox.folder / "out/o/part-00000.orc").schema.names == ["a"]


def test_an_optional_input_without_instances(sandbox: Sandbox) -> None:
    raw = sandbox.input("raw", schema="a int, b decimal(3,1)", partitions=["country"])
    assert run(sandbox, GIVEN, inputs=(raw,)).records == {"delays": 0}
    found = pq.read_table(sandbox.folder / "out/delays", partitioning=None)
    assert found.schema == pa.schema([("a", pa.int32()), ("b", pa.decimal128(3, 1)), ("country", pa.string())])
    assert refusal(sandbox, GIVEN, inputs=(sandbox.input("raw"),)) == (
        "input 'raw' (feed 'raw-feed'): no instance is available, and without a declared schema an empty input has no "
        "columns: declare `schema:` in the feed"
    )


def test_partitions_and_other_folders_are_columns(sandbox: Sandbox) -> None:
    sandbox.file("in/05/US/a.json", '{"delay":1}')
    sandbox.file("in/05/country=D%45/a.json", '{"delay":2}')
    sandbox.file("in/05/DONE", "not data")
    sandbox.file("in/05/_hidden/a.json", '{"delay":3}')
    feed = {"format": "json", "partitions": ["country"], "availability_flag": "DONE"}
    run(sandbox, GIVEN, inputs=(sandbox.input("raw", "in/05", **feed),))
    assert written(sandbox) == [{"delay": 1, "country": "US"}, {"delay": 2, "country": "DE"}]
    only = sandbox.input("raw", "in/05", partition="U*", **feed)
    run(sandbox, GIVEN, inputs=(only,), outputs=(sandbox.output("us"),))
    assert written(sandbox, "us") == [{"delay": 1, "country": "US"}]
    made = sandbox.output("made", partitions=["day", "good"])
    text = """
import pyarrow as pa
from datetime import date
def run(inputs, instance):
    return pa.table({"day": ["a b", None, "", "x/y"], "n": [1, 2, 3, 4], "good": [True, True, True, False]})
"""
    assert run(sandbox, text, outputs=(made,)).records == {"made": 4}
    folders = {
        str(one.parent.relative_to(sandbox.folder / "out/made"))
        for one in Path(sandbox.folder, "out/made").rglob("*.parquet")
    }
    none = "__HIVE_DEFAULT_PARTITION__"
    assert folders == {"day=a b/good=true", f"day={none}/good=true", "day=x%2Fy/good=false"}
    raw = sandbox.input("raw", "out/made", format="parquet", schema="n bigint, day string, good boolean")
    run(sandbox, GIVEN, inputs=(raw,), outputs=(sandbox.output("again"),))
    assert sorted(written(sandbox, "again"), key=lambda one: one["n"]) == [
        {"n": 1, "day": "a b", "good": True},
        {"n": 2, "day": None, "good": True},
        {"n": 3, "day": None, "good": True},
        {"n": 4, "day": "x/y", "good": False},
    ]


def test_columns_of_all_files_are_there(sandbox: Sandbox) -> None:
    for name, table in {
        "a": {"x": pa.array([1], pa.int32())},
        "b": {"y": ["b"], "x": pa.array([2], pa.int64())},
    }.items():
        Path(sandbox.folder, "in").mkdir(exist_ok=True)
        pq.write_table(pa.table(table), sandbox.folder / f"in/{name}.parquet")
    run(sandbox, GIVEN, inputs=(sandbox.input("raw", "in", format="parquet"),))
    assert written(sandbox) == [{"x": 1, "y": None}, {"x": 2, "y": "b"}]


def test_the_zone_of_the_machine_changes_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    time.tzset()
    try:
        sandbox.file(
            "in/a.csv", "t,w\n2013-01-01 05:00:00,2013-01-01\n2013-01-01T05:00:00+02:00,2013-01-01 05:00:00.5\n"
        )
        raw = sandbox.input(
            "raw", "in", format="csv", options={"header": "true"}, schema="t timestamp, w timestamp_ntz"
        )
        text = """
import datetime
def run(inputs, instance):
    assert datetime.datetime.now().hour == datetime.datetime.now(datetime.timezone.utc).hour
    return inputs["raw"].to_table().to_pandas()
"""
        run(sandbox, text, inputs=(raw,))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert written(sandbox) == [
        {"t": datetime(2013, 1, 1, 5, tzinfo=UTC), "w": datetime(2013, 1, 1)},
        {"t": datetime(2013, 1, 1, 3, tzinfo=UTC), "w": datetime(2013, 1, 1, 5, 0, 0, 500000)},
    ]


def test_a_dataset_reads_what_was_counted_only(sandbox: Sandbox) -> None:
    Path(sandbox.folder, "in").mkdir()
    pq.write_table(pa.table({"a": [1]}), sandbox.folder / "in/a.parquet")
    raw = sandbox.counted("raw", "in", format="parquet")
    pq.write_table(pa.table({"a": [2]}), sandbox.folder / "in/b.parquet")
    run(sandbox, GIVEN, inputs=(raw,))
    assert written(sandbox) == [{"a": 1}]


def test_packed_texts(sandbox: Sandbox) -> None:
    options = {"compression": "gzip", "sep": ";", "nullValue": "NA", "header": "true"}
    feed = {"format": "csv", "options": options, "schema": "a int, b string"}
    text = (
        "import pandas as pd\ndef run(inputs, instance):\n    return pd.DataFrame({'a': [1, None], 'b': ['x', None]})"
    )
    run(sandbox, text, outputs=(sandbox.output("told", **feed),))
    file = sandbox.folder / "out/told/part-00000.csv.gz"
    assert gzip.decompress(file.read_bytes()) == b'a;b\n1;"x"\nNA;NA\n'
    run(sandbox, GIVEN, inputs=(sandbox.input("raw", "out/told", **feed),))
    assert written(sandbox) == [{"a": 1, "b": "x"}, {"a": None, "b": None}]


def test_json_lines_can_be_read_by_everybody(sandbox: Sandbox) -> None:
    text = """
import pyarrow as pa
def run(inputs, instance):
    text, binary = ["\\x01\\n\\u2028ü", None], [b"\\x00", None]
    return pa.table({"a": text, "b": [{"x": [1, None]}, None], "c": [float("nan"), 2.5], "d": binary})
"""
    run(sandbox, text, outputs=(sandbox.output("told", format="json"),))
    lines = (sandbox.folder / "out/told/part-00000.json").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines if line] == [
        {"a": "\x01\n\u2028ü", "b": {"x": [1, None]}, "c": "NaN", "d": "AA=="},
        {"c": 2.5},
    ]


RUN = "import pyarrow as pa\ndef run(inputs, instance):\n    "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x = 1", "w.py: there is no function run(inputs, instance) in it", id="no-function"),
        pytest.param(f"{RUN}x = 1\n    return x / 0", "w.py:4: ZeroDivisionError: division by zero", id="exception"),
        pytest.param(f"{RUN}exit(3)", "w.py:3: SystemExit: 3", id="exit"),
        pytest.param(f"{RUN}return inputs['rwa']", "w.py:3: KeyError: 'rwa'", id="key"),
        pytest.param(
            f"{RUN}pass",
            "output 'delays' (feed 'delays-feed'): it was neither returned nor written to out/delays",
            id="no",
        ),
        pytest.param(
            f"{RUN}return [1]",
            "w.py: run() returned a value of type list: return a table, or a dict of tables with delays",
            id="list",
        ),
        pytest.param(
            f"{RUN}return {{'other': 1}}",
            "w.py: run() returned a dict that does not fit: other is not an output; the outputs are delays",
            id="dict",
        ),
        pytest.param(
            f"{RUN}return pa.table({{'a': [None]}})",
            "output 'delays' (feed 'delays-feed'): column 'a' has no type, as all its values are null: declare "
            "`schema:` in the feed",
            id="null",
        ),
    ],
)
def test_malformed_workflows(sandbox: Sandbox, text: str, message: str) -> None:
    assert refusal(sandbox, text) == message


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        pytest.param(
            "{'a': [1.5]}",
            "column 'a' is double and does not fit into int32: Float value 1.500000 was truncated converting to int32",
            id="lossy",
        ),
        pytest.param(
            "{'b': [1]}", "the columns are not those of the feed: a is missing; b is not declared", id="names"
        ),
        pytest.param(
            "{'a': ['x']}",
            "column 'a' is string and does not fit into int32: Failed to parse string: 'x' as a scalar of type int32",
            id="text",
        ),
    ],
)
def test_an_output_that_is_not_as_declared(sandbox: Sandbox, returned: str, said: str) -> None:
    out = sandbox.output("delays", schema="a int")
    assert (
        refusal(sandbox, f"{RUN}return pa.table({returned})", outputs=(out,))
        == f"output 'delays' (feed 'delays-feed'): {said}"
    )


@pytest.mark.parametrize(
    ("content", "feed", "said"),
    [
        pytest.param(
            '{"a":"x"}',
            {"format": "json", "schema": "a int"},
            "in/a: JSON parse error: Column(/a) changed from",
            id="json",
        ),
        pytest.param("a,b\n1\n", {"format": "csv"}, "in/a: CSV parse error: Expected 2 columns, got 1: 1", id="short"),
        pytest.param(
            "b\n1\n",
            {"format": "csv", "schema": "a int", "options": {"header": "true"}},
            "in/a: the header is b, and the declared columns are a",
            id="header",
        ),
        pytest.param("x", {"format": "parquet"}, "in/a cannot be read as parquet: ", id="parquet"),
        pytest.param(
            "x",
            {"format": "avro"},
            "the engine python reads rows of parquet, orc, csv, json, not avro: read its",
            id="avro",
        ),
        pytest.param(
            "x",
            {"format": "csv", "options": {"inferSchema": "true"}},
            "in/a: the engine python does not know the option inferSchema of csv",
            id="option",
        ),
        pytest.param(
            "x",
            {"format": "csv", "options": {"mode": "PERMISSIVE"}},
            "in/a: the engine python reads csv in mode FAILFAST only",
            id="mode",
        ),
    ],
)
def test_an_input_that_cannot_be_read(sandbox: Sandbox, content: str, feed: dict[str, Any], said: str) -> None:
    sandbox.file("in/a", content)
    told = refusal(sandbox, GIVEN, inputs=(sandbox.input("raw", "in", **feed),))
    assert told.startswith(f"input 'raw' (feed 'raw-feed'): {said}"), told


def test_files_of_another_type_are_refused(sandbox: Sandbox) -> None:
    Path(sandbox.folder, "in").mkdir()
    pq.write_table(pa.table({"a": ["1"], "B": [1]}), sandbox.folder / "in/a.parquet")
    raw = sandbox.input("raw", "in", format="parquet", schema="a int")
    assert refusal(sandbox, GIVEN, inputs=(raw,)) == (
        "input 'raw' (feed 'raw-feed'): the files do not have the declared schema: a is string in in/a.parquet, "
        "declared int32"
    )
    raw = sandbox.input("raw", "in", format="parquet", schema="a string, b bigint")
    assert refusal(sandbox, GIVEN, inputs=(raw,)) == (
        "input 'raw' (feed 'raw-feed'): the column B of in/a.parquet is declared as b: the engine python takes names "
        "as they are written"
    )


def test_data_elsewhere(sandbox: Sandbox) -> None:
    raw = sandbox.input("raw", "in", format="parquet")
    there = raw.__class__(raw.name, raw.feed, ("hdfs://namenode/in",))
    assert refusal(sandbox, GIVEN, inputs=(there,)) == (
        "input 'raw' (feed 'raw-feed') lies at hdfs://namenode/in, which the engine python cannot reach: use an engine "
        "with Spark"
    )


def test_a_function_of_a_package_and_libs(sandbox: Sandbox) -> None:
    sandbox.file("lib/helpful_of_tests.py", "ANSWER = 42\n")
    sandbox.file(
        "w.py",
        f"import helpful_of_tests\n{RUN}return pa.table({{'a': [helpful_of_tests.ANSWER]}})",
    )
    workflow = sandbox.workflow(engine="python", path="w.py", lib=["lib"])
    run_workflow(sandbox.task(workflow, executor=InProcessExecutor(sandbox.cluster)))
    assert written(sandbox) == [{"a": 42}]


def test_a_function_that_runs_on_is_cancelled(sandbox: Sandbox) -> None:
    begun = sandbox.folder / "begun"
    text = f"{RUN}open({str(begun)!r}, 'w').close()\n    while True:\n        pass"
    cancellation, ended = Cancellation(), list[BaseException]()

    def compute() -> None:
        with cancellable(cancellation), pytest.raises(CancelledError) as caught:
            run(sandbox, text)
        ended.append(caught.value)

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    wait_until(begun.exists)
    cancellation.cancel("somebody said so")
    thread.join(30)
    assert len(ended) == 1


PROFILED = """
import sys, threading
from contextlib import suppress
from falcon_assets.base.cancellation import Cancellation, CancelledError, cancellable
from falcon_assets.compute.engines.computing.arrow import _cancellable_thread

def computes(cancellation, ends):
    with suppress(CancelledError), cancellable(cancellation), _cancellable_thread():
        if ends:
            cancelling = threading.Thread(target=cancellation.cancel, args=("somebody said so",))
            cancelling.start()
            cancelling.join()

for ends in (False, True):
    computes(Cancellation(), ends)
calls = []
sys.setprofile(lambda *event: calls.append(event))
computes(Cancellation(), False)
sys.setprofile(None)
print(len(calls) > 0)
"""


def test_nothing_is_left_to_come_to_whoever_is_profiled_afterwards() -> None:
    """An exception that is asked for and taken back, or None asked for, stops Python under a profiler."""
    done = subprocess.run([sys.executable, "-c", PROFILED], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n"


def test_spark_and_python_make_and_read_the_same(tmp_path: Path, local_cluster: Cluster) -> None:
    spark = Sandbox(tmp_path, local_cluster)
    spark.file("rows.py", f"import datetime\nfrom decimal import Decimal\nROWS = {ROWS!r}\n")
    spark.file(
        "s.py",
        "from rows import *\ndef run(spark, inputs, instance):\n"
        "    if inputs:\n        return inputs['raw'].coalesce(1)\n    schema = instance.properties['schema']\n"
        "    names = [one.split()[0] for one in schema.split(', ')]\n"
        "    return spark.createDataFrame([[row[name] for name in names] for row in ROWS], schema).coalesce(1)\n",
    )
    spark.file(
        "p.py",
        "import pyarrow as pa\nfrom rows import *\ndef run(inputs, instance):\n"
        "    if inputs:\n        return inputs['raw']\n    schema = instance.properties['schema']\n"
        "    return pa.Table.from_pylist(ROWS).select([one.split()[0] for one in schema.split(', ')])\n",
    )
    engines = {"pyspark": ("s.py", spark.executor), "python": ("p.py", InProcessExecutor(local_cluster))}

    def computed(engine: str, name: str, feed: dict[str, Any], *inputs: InputData) -> InputData:
        path, executor = engines[engine]
        workflow = spark.workflow(engine=engine, path=path, lib=["rows.py"])
        out = spark.output(name, **feed)
        result = run_workflow(
            spark.task(
                workflow, executor=executor, inputs=inputs, outputs=(out,), properties={"schema": feed["schema"]}
            )
        )
        assert result.records == {name: 3}
        return spark.input("raw", f"out/{name}", **feed)

    for file_format, options in OPTIONS.items():
        left_out = ["wall"] if file_format == "orc" else []  # where Spark writes it as a number
        schema = ", ".join(one for one in SCHEMA.split(", ") if one.split()[0] not in left_out)
        rows = [{key: value for key, value in one.items() if key not in left_out} for one in ROWS]
        feed = {"format": file_format, "options": options, "schema": schema}
        for writes, reads in product(engines, engines):
            name = f"{file_format}-{writes}-{reads}"
            made = computed(writes, f"{name}-made", feed)
            computed(reads, f"{name}-told", {"format": "parquet", "schema": schema}, made)
            told = pq.ParquetFile(
                next((tmp_path / f"out/{name}-told").glob("*.parquet")), coerce_int96_timestamp_unit="us"
            )
            table = told.read().cast(with_instants(told))
            millis = file_format in TEXTUAL and writes == "pyspark"  # its writer drops the rest
            expected = [{key: _millis(value, millis) for key, value in one.items()} for one in rows]
            if (file_format, reads) == ("csv", "pyspark"):  # it takes an empty text for none, its own, too
                expected = [{**one, "name": one["name"] or None} for one in expected]
            assert table.to_pylist() == expected, name


def _millis(value: Any, are_kept: bool) -> Any:
    if isinstance(value, datetime) and are_kept:
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value
