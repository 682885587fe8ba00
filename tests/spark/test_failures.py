"""Failures in Spark say their cause in a few lines; the stacks are in the log of the run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.failures import explain, memory_hint
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from tests.spark.sandbox import Sandbox

UDF = """
import os
from pyspark.sql import functions as sf
def run(spark, inputs, instance):
    def of(text): {body}
    return inputs["flights"].select(sf.udf(of)("s").alias("s"))
"""
GONE = """
import pathlib
def run(spark, inputs, instance):
    flights = inputs["flights"]
    assert flights.count() == 1
    for folder in instance.inputs["flights"]:
        pathlib.Path(folder.removeprefix("file://"), "a.json").unlink()
    return flights
"""


@pytest.fixture
def anywhere(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    return Sandbox(tmp_path, any_cluster)


@pytest.mark.parametrize(
    ("workflow", "content", "feed", "cause"),
    [
        pytest.param("SELECT nonsense FROM flights", "", {}, r"w\.sql:1: \[UNRESOLVED_COLUMN.*`nonsense`", id="column"),
        pytest.param("SELECT CAST(s AS int) FROM flights", "", {}, r"\[CAST_INVALID_INPUT\] The value 'x'", id="cast"),
        pytest.param(UDF.format(body="return int(text)"), "", {}, r"ValueError: .*'x' \(.*/w\.py:5\)$", id="udf"),
        pytest.param(
            UDF.format(body="os._exit(3)"), "", {}, r"delays-feed'\): Python worker exited unexpectedly", id="worker"
        ),
        pytest.param(
            "SELECT * FROM flights",
            "no Parquet at all",
            {"format": "parquet"},
            "a.json is not a Parquet file",
            id="file",
        ),
        pytest.param(GONE, "", {"schema": "s string"}, r"a\.json.* does not exist", id="gone"),
        pytest.param(
            "SELECT raise_error(concat_ws('\\n', sequence(1, 99))) AS s FROM flights",
            "",
            {},
            r"\[USER_RAISED_EXCEPTION\] 1$",
            id="words",
        ),
    ],
)
def test_what_went_wrong(
    anywhere: Sandbox, workflow: str, content: str, feed: dict[str, str], cause: str, capfd: pytest.CaptureFixture[str]
) -> None:
    anywhere.file("in/a.json", content or '{"s":"x"}')
    name = "w.py" if "def run" in workflow else "w.sql"
    anywhere.file(name, workflow)
    engine = "pyspark" if name == "w.py" else "spark-sql"
    task = anywhere.task(
        anywhere.workflow(engine=engine, path=name), inputs=(anywhere.counted("flights", "in", **feed),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    text = str(caught.value)
    assert re.search(cause, text), text
    assert len(text.splitlines()) == 1 and len(text) < 700, text
    assert "Traceback (most recent call last):" in capfd.readouterr().err


@pytest.mark.soak
def test_the_jvm_ends_meanwhile(sandbox: Sandbox, spark: SparkSession) -> None:
    sandbox.file(
        "w.py",
        "def run(spark, inputs, instance):\n    spark.sparkContext._gateway.proc.kill()\n    return spark.range(3)\n",
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", path="w.py")))
    assert "Spark's JVM has died: it was killed (SIGKILL), as the system does when memory" in str(caught.value)
    assert sandbox.session().range(3).count() == 3


@pytest.mark.parametrize(
    ("code", "says"),
    [(52, "it ran out of memory: raise spark.driver.memory"), (-9, "lower spark.driver.memory"), (137, "lower spark")],
)
def test_how_a_jvm_ended_tells_of_its_memory(code: int, says: str) -> None:
    assert says in memory_hint(code)
    assert [memory_hint(other) for other in (0, 1, -15, None)] == [""] * 4


@pytest.mark.soak
@pytest.mark.parametrize("ends", ["halt", "exit"])
def test_a_jvm_whose_heap_was_exhausted_says_which_key_to_raise(
    sandbox: Sandbox, spark: SparkSession, ends: str
) -> None:
    """It is gone at once, or its jobs are cancelled before; really exhausting a heap takes minutes when it is busy."""
    sandbox.file(
        "w.py",
        f"def run(spark, inputs, instance):\n    spark._jvm.java.lang.Runtime.getRuntime().{ends}(52)\n",
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", path="w.py")))
    assert str(caught.value).endswith("raise spark.driver.memory, or let the workflow collect less")
    assert sandbox.session().range(3).count() == 3


DEAD_AND_ASKED_AGAIN = """
def run(spark, inputs, instance):
    spark.sparkContext._gateway.proc.kill()
    spark.sparkContext._gateway.proc.wait()
    for _ in range(2):  # at the latest the second call opens a connection
        try:
            spark.range(3)
        except Exception as error:
            raised = error
    raise raised
"""
NOBODY_LISTENS = """
import socket
def run(spark, inputs, instance):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        socket.create_connection(taken.getsockname())
"""


def test_a_connection_that_is_refused_is_of_the_jvm_or_of_the_program(sandbox: Sandbox, spark: SparkSession) -> None:
    for text, said in (
        (NOBODY_LISTENS, "ConnectionRefusedError: [Errno 111] Connection refused"),
        (DEAD_AND_ASKED_AGAIN, "Spark's JVM has died: it was killed (SIGKILL)"),
    ):
        sandbox.file("w.py", text)
        with pytest.raises(WorkflowError, match=re.escape(said)):
            run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", path="w.py")))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "Job aborted due to stage failure: Task 0 in stage 8.0 failed 1 times, most recent failure: Lost task 0.0 "
            "in stage 8.0 (TID 8) (10.0.0.1 executor 3): java.lang.OutOfMemoryError: Java heap space",
            "Java heap space (Spark ran out of memory: raise spark.driver.memory or spark.executor.memory)",
        ),
        (
            "No space left on device",
            "No space left on device (a disk is full: if no file is named, it is the disk of spark.local.dir "
            "(/tmp by default))",
        ),
        (
            "Relative path in absolute URI: .a:b.json.crc",
            "Relative path in absolute URI: .a:b.json.crc (Hadoop cannot open files with a colon in their name: rename "
            "the file)",
        ),
    ],
)
def test_what_to_do_about_it(message: str, said: str) -> None:
    assert explain(Py4JError(message)) == said
