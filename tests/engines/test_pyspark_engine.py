from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import NOMINAL, Sandbox


def run(sandbox: Sandbox, text: str, **task: Any) -> dict[str, int]:
    sandbox.file("w.py", text)
    workflow = sandbox.workflow(engine="pyspark", path="w.py")
    return dict(run_workflow(sandbox.task(workflow, **task)).records)


def refusal(sandbox: Sandbox, text: str, **task: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        run(sandbox, text, **task)
    return str(caught.value).replace(f"{sandbox.folder}/", "")


def test_the_instance_tells_everything(sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", '{"a":1}')
    run(
        sandbox,
        "from dataclasses import astuple\n"
        "def run(spark, inputs, instance):\n"
        "    assert sorted(inputs) == ['raw']\n"
        "    return spark.createDataFrame([(str(astuple(instance)),)], 'told string')\n",
        inputs=(sandbox.input("raw", "in"),),
        properties={"threshold": "15"},
    )
    folder = sandbox.folder.as_uri()
    told = (
        "hourly",
        "primary",
        NOMINAL,
        {"threshold": "15"},
        {"raw": (f"{folder}/in",)},
        {"delays": f"{folder}/out/delays"},
    )
    assert sandbox.rows() == [(str(told),)]


def test_several_outputs(sandbox: Sandbox) -> None:
    records = run(
        sandbox,
        "def run(spark, inputs, instance):\n    return {'a': spark.range(1), 'b-c': spark.range(2)}",
        outputs=(sandbox.output("a"), sandbox.output("b-c")),
    )
    assert records == {"a": 1, "b-c": 2}


def test_dataclasses_and_own_functions_travel_to_the_workers(sandbox: Sandbox) -> None:
    text = """
from __future__ import annotations
from dataclasses import dataclass
from pyspark.sql import functions as sf

@dataclass
class Point:
    x: int

def double(x):
    return Point(x).x * 2

def run(spark, inputs, instance):
    return spark.range(3).select(sf.udf(double, "bigint")("id").alias("x"))
"""
    run(sandbox, text)
    assert sandbox.rows() == [(0,), (2,), (4,)]


def test_a_changed_file_is_loaded_again(sandbox: Sandbox) -> None:
    text = "def run(spark, inputs, instance):\n    return spark.range({})\n"
    assert run(sandbox, text.format(1)) == {"delays": 1}
    file = sandbox.file("w.py", text.format(2))
    os.utime(file, ns=(1, 1))
    task = sandbox.task(sandbox.workflow(engine="pyspark", path="w.py"), outputs=(sandbox.output("again"),))
    assert run_workflow(task).records == {"again": 2}


def test_a_function_of_a_package(sandbox: Sandbox) -> None:
    sandbox.file("shop_of_tests/flows.py", "def daily(spark, inputs, instance):\n    return spark.range(4)\n")
    sys.path.insert(0, str(sandbox.folder))
    try:
        task = sandbox.task(sandbox.workflow(engine="pyspark", function="shop_of_tests.flows:daily"))
        assert run_workflow(task).records == {"delays": 4}
        task = sandbox.task(sandbox.workflow(engine="pyspark", function="shop_of_tests.flows:weekly"))
        with pytest.raises(WorkflowError) as caught:
            run_workflow(task)
    finally:
        sys.path.remove(str(sandbox.folder))
    assert str(caught.value) == ("shop_of_tests.flows: there is no function weekly(spark, inputs, instance) in it")


def test_a_package_that_is_not_there(sandbox: Sandbox) -> None:
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", function="no_such.flows:daily")))
    assert str(caught.value) == (
        "no_such.flows: the module cannot be imported: ModuleNotFoundError: No module named 'no_such'"
    )


RUN = "def run(spark, inputs, instance):\n    "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x = 1", "w.py: there is no function run(spark, inputs, instance) in it", id="no-function"),
        pytest.param("x = 1\ndef run(:", "w.py:2: invalid syntax", id="syntax"),
        pytest.param("x = 1\ny = nope", "w.py:2: NameError: name 'nope' is not defined", id="load"),
        pytest.param(f"{RUN}x = 1\n    return x / 0", "w.py:3: ZeroDivisionError: division by zero", id="exception"),
        pytest.param(
            f"{RUN}return spark.range(1).select('nope')",
            "w.py:2: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `nope` "
            "cannot be resolved. Did you mean one of the following? [`id`].",
            id="analysis",
        ),
        pytest.param(
            f"{RUN}pass",
            "w.py: run() returned nothing: return a DataFrame, or a dict of DataFrames with delays",
            id="nothing",
        ),
        pytest.param(
            f"{RUN}return [1]",
            "w.py: run() returned a value of type list: return a DataFrame, or a dict of DataFrames with delays",
            id="list",
        ),
        pytest.param(
            f"{RUN}return {{'other': 1, 'delays': 2}}",
            "w.py: run() returned a dict that does not fit: other is not an output; delays is a value of type int; "
            "the outputs are delays",
            id="dict",
        ),
        pytest.param(
            f"{RUN}return {{}}",
            "w.py: run() returned a dict that does not fit: delays is missing; the outputs are delays",
            id="empty-dict",
        ),
    ],
)
def test_malformed_workflows(sandbox: Sandbox, text: str, message: str) -> None:
    assert refusal(sandbox, text) == message


def test_without_outputs_nothing_is_returned(sandbox: Sandbox) -> None:
    sandbox.file("w.py", f"{RUN}spark.range(3).collect()")
    task = sandbox.task(sandbox.workflow(engine="pyspark", path="w.py"), outputs=())
    assert run_workflow(task).records == {}
    assert refusal(sandbox, f"{RUN}return spark.range(1)", outputs=()) == (
        "w.py: run() returned a DataFrame, but the process has no outputs: return nothing"
    )


def test_one_frame_for_several_outputs(sandbox: Sandbox) -> None:
    both = (sandbox.output("a"), sandbox.output("b"))
    assert refusal(sandbox, f"{RUN}return spark.range(1)", outputs=both) == (
        "w.py: run() returned one DataFrame for several outputs: return a dict with a, b"
    )


def test_no_file(sandbox: Sandbox) -> None:
    with pytest.raises(WorkflowError, match=r"w\.py: the workflow's file cannot be read: No such file or directory$"):
        run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", path="w.py")))


@pytest.mark.parametrize(
    ("text", "line"), [("import sys\nsys.exit(3)\n", 2), ("def run(spark, inputs, instance):\n    exit(3)\n", 2)]
)
def test_exit_fails_the_instance_and_does_not_end_the_run(sandbox: Sandbox, text: str, line: int) -> None:
    assert refusal(sandbox, text) == f"w.py:{line}: SystemExit: 3"
