"""What every engine does on every kind of execute endpoint."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowResult
from falcon_assets.compute.spark.sessions import application_id, isolated, session_for
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from tests.spark.sandbox import Sandbox

SQL = "SELECT carrier, avg(delay) AS delay, :nominal_time AS at FROM flights WHERE delay > :threshold GROUP BY carrier"
PYTHON = """
from pyspark.sql import functions as sf

@sf.udf("string")
def upper(text):
    return text.upper()

def run(spark, inputs, instance):
    late = inputs["flights"].where(sf.col("delay") > int(instance.properties["threshold"]))
    return late.select(upper("carrier").alias("carrier"), "delay")
"""
PROGRAM = """
import sys

import helpful
from pyspark.sql import SparkSession

source, target, told, day, endpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
assert ("connect" in type(spark).__module__) == endpoint.startswith("sc://")
assert endpoint.startswith("sc://") or spark.sparkContext.master == endpoint
spark.read.json(source.split(",")).selectExpr("carrier", f"'{day}' AS day").write.parquet(target)
known = {key: spark.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.own.option")}
known["helpful"] = str(helpful.ANSWER)
spark.createDataFrame(list(known.items()), "name string, value string").write.parquet(told)
spark.stop()
"""


def planted(folder: Path, cluster: Cluster) -> Sandbox:
    made = Sandbox(folder, cluster)
    made.file("in/04/a.json", '{"carrier":"aa","delay":20}\n{"carrier":"aa","delay":40}\n')
    made.file("in/05/a.json", '{"carrier":"ua","delay":10}\n{"carrier":"dl","delay":30}\n')
    made.file("wf/late.sql", SQL)
    made.file("wf/late.py", PYTHON)
    return made


@pytest.fixture
def sandbox(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    return planted(tmp_path, any_cluster)


@pytest.fixture(scope="module")
def submitted(any_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sandbox, WorkflowResult]:
    """A program that has run once: starting it is nearly all that it costs."""
    sandbox = planted(tmp_path_factory.mktemp("submitted"), any_cluster)
    sandbox.file("wf/program.py", PROGRAM)
    sandbox.file("my libs/helpful.py", "ANSWER = 42\n")
    args = ("${flights}", "${delays}", "${told}", "${formatTime(instanceTime(),'yyyy-MM-dd')}", "${endpoint}")
    task = sandbox.task(
        sandbox.workflow(engine="spark-submit", path="wf/program.py", args=args, lib=["my libs/helpful.py"]),
        inputs=(sandbox.input("flights", "in/04", "in/05"),),
        outputs=(sandbox.output("delays"), sandbox.output("told")),
        properties={"endpoint": any_cluster.interfaces.execute.endpoint},
        settings={
            **{f"spark.sql.own.{number}": "x" for number in range(30)},
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.own.option": "a b",
        },
    )
    return sandbox, run_workflow(task)


def test_sql_reads_computes_and_writes(sandbox: Sandbox) -> None:
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/late.sql"),
        inputs=(sandbox.input("flights", "in/04", "in/05"),),
        properties={"threshold": "15", "spark.dotted": "not a parameter"},
    )
    result = run_workflow(task)
    assert result.records == {"delays": 2}
    assert result.application_id == application_id(sandbox.session())
    assert [(row[0], row[1], f"{row[2]:%H:%M}") for row in sandbox.rows()] == [
        ("aa", 30.0, "05:00"),
        ("dl", 30.0, "05:00"),
    ]


def test_pyspark_reads_computes_and_writes(sandbox: Sandbox) -> None:
    task = sandbox.task(
        sandbox.workflow(engine="pyspark", path="wf/late.py"),
        inputs=(sandbox.input("flights", "in/04", "in/05", schema="carrier string, delay int"),),
        properties={"threshold": "15"},
    )
    assert run_workflow(task).records == {"delays": 3}
    assert sandbox.rows() == [("AA", 20), ("AA", 40), ("DL", 30)]


def test_spark_submit_reads_computes_and_writes(submitted: tuple[Sandbox, WorkflowResult]) -> None:
    sandbox, result = submitted
    assert result.records == {"delays": 4, "told": 3}
    assert result.application_id.startswith(("local-", "app-"))
    assert sandbox.rows() == [("aa", "2013-01-01"), ("aa", "2013-01-01"), ("dl", "2013-01-01"), ("ua", "2013-01-01")]


def test_partitions_flags_and_empty_inputs(sandbox: Sandbox) -> None:
    sandbox.file("p/05/US/a.json", '{"delay":1}')
    sandbox.file("p/05/country=DE/a.json", '{"delay":2}')
    sandbox.file("p/05/DONE", "not data")
    sandbox.file("wf/both.sql", "SELECT p.country, p.delay FROM p LEFT ANTI JOIN nothing USING (delay)")
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/both.sql"),
        inputs=(
            sandbox.input("p", "p/05", partitions=["country"], availability_flag="DONE"),
            sandbox.input("nothing", schema="delay bigint"),
        ),
        outputs=(sandbox.output("delays", partitions=["country"]),),
    )
    assert run_workflow(task).records == {"delays": 2}
    assert sandbox.rows() == [(1, "US"), (2, "DE")]


def test_an_empty_result_is_an_instance_too(sandbox: Sandbox) -> None:
    sandbox.file("wf/none.sql", "SELECT carrier, delay FROM flights WHERE delay > 1000")
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/none.sql"), inputs=(sandbox.input("flights", "in/04"),)
    )
    assert run_workflow(task).records == {"delays": 0}
    assert sandbox.rows() == []


def test_without_outputs_every_statement_is_run_to_its_end(sandbox: Sandbox) -> None:
    path = sandbox.file("wf/check.sql", "SHOW VIEWS;\nSELECT assert_true(delay > 15, carrier) FROM flights")
    workflow = sandbox.workflow(engine="spark-sql", path="wf/check.sql")
    assert run_workflow(sandbox.task(workflow, inputs=(sandbox.input("flights", "in/04"),), outputs=())).records == {}
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(workflow, inputs=(sandbox.input("flights", "in/05"),), outputs=()))
    assert str(caught.value) == f"{path}:2: [USER_RAISED_EXCEPTION] ua"


def test_an_error_names_the_line_of_the_file(sandbox: Sandbox) -> None:
    path = sandbox.file("wf/bad.sql", "-- about\nSELECT 1 AS one;\n\nSELECT carrier,\n  nonsense FROM flights")
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/bad.sql"), inputs=(sandbox.input("flights", "in/04"),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    assert str(caught.value) == (
        f"{path}:5: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `nonsense` "
        "cannot be resolved. Did you mean one of the following? [`delay`, `carrier`]."
    )


def test_an_error_while_computing_names_the_output(sandbox: Sandbox) -> None:
    sandbox.file("wf/cast.sql", "SELECT CAST(carrier AS int) AS number FROM flights")
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/cast.sql"), inputs=(sandbox.input("flights", "in/04"),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    assert str(caught.value).startswith(
        "output 'delays' (feed 'delays-feed'): [CAST_INVALID_INPUT] The value 'aa' of the type "
    )
    assert "\n" not in str(caught.value)


def test_an_exception_in_a_udf_names_its_line(sandbox: Sandbox) -> None:
    path = sandbox.file("wf/boom.py", PYTHON.replace("text.upper()", "text / 0"))
    task = sandbox.task(
        sandbox.workflow(engine="pyspark", path="wf/boom.py"),
        inputs=(sandbox.input("flights", "in/04"),),
        properties={"threshold": "15"},
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    assert str(caught.value) == (
        "output 'delays' (feed 'delays-feed'): "
        f"TypeError: unsupported operand type(s) for /: 'str' and 'int' ({path}:6)"
    )


def test_a_value_of_another_type_than_declared_is_an_error(sandbox: Sandbox) -> None:
    sandbox.file("wf/copy.sql", "SELECT * FROM flights")
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="wf/copy.sql"),
        inputs=(sandbox.input("flights", "in/04", schema="carrier int, delay int"),),
    )
    with pytest.raises(
        WorkflowError,
        match=r"a\.json: \[CANNOT_PARSE_JSON_FIELD\] Cannot parse the field name 'carrier' and the value aa ",
    ):
        run_workflow(task)


def test_views_of_parallel_instances_do_not_collide(sandbox: Sandbox) -> None:
    sandbox.file("wf/copy.sql", "CREATE TEMPORARY VIEW mine AS SELECT * FROM flights; SELECT hour FROM mine")

    def one(hour: int) -> None:
        sandbox.file(f"n/{hour}/a.json", f'{{"hour":{hour}}}')
        output = sandbox.output(f"o{hour}")
        task = sandbox.task(
            sandbox.workflow(engine="spark-sql", path="wf/copy.sql"),
            inputs=(sandbox.input("flights", f"n/{hour}", schema="hour int"),),
            outputs=(output,),
        )
        run_workflow(task)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(8)))
    assert [sandbox.rows(f"o{hour}") for hour in range(8)] == [[(hour,)] for hour in range(8)]


def test_settings_of_a_process_reach_its_session(sandbox: Sandbox) -> None:
    settings = {"spark.sql.shuffle.partitions": "3", "spark.hadoop.my.option": "x", "spark.own.option": "y"}
    sandbox.file("wf/set.sql", "SET spark.sql.shuffle.partitions; SELECT '${spark.sql.shuffle.partitions}' AS n")
    task = sandbox.task(sandbox.workflow(engine="spark-sql", path="wf/set.sql"), settings=settings)
    assert run_workflow(task).records == {"delays": 1}
    assert sandbox.rows() == [("3",)]
    assert sandbox.session().conf.get("spark.sql.shuffle.partitions") == "2"
    for fixed in ("spark.executor.memory", "spark.sql.warehouse.dir"):
        with pytest.raises(WorkflowError) as caught:
            run_workflow(sandbox.task(sandbox.workflow(engine="spark-sql", path="wf/set.sql"), settings={fixed: "1g"}))
        assert str(caught.value) == (
            f"process 'hourly': property {fixed}: Spark reads it when it starts: declare it in the properties of the "
            "cluster, or run a program (engine: spark-submit)"
        )
    with pytest.raises(WorkflowError, match=r"property spark\.sql\.adaptive\.enabled: .*maybe"):
        run_workflow(
            sandbox.task(
                sandbox.workflow(engine="spark-sql", path="wf/set.sql"),
                settings={"spark.sql.adaptive.enabled": "maybe"},
            )
        )


def test_what_a_workflow_brings_along(sandbox: Sandbox) -> None:
    name = f"shouting_{abs(hash(sandbox.folder))}"
    sandbox.file(f"my libs/{name}.py", "def shout(text):\n    return text.upper() + '!'\n")
    sandbox.file(
        "wf/along.py",
        f"from pyspark.sql import functions as sf\nimport {name}\n\n"
        f"@sf.udf('string')\ndef loud(text):\n    import {name}\n    return {name}.shout(text)\n\n"
        f"def run(spark, inputs, instance):\n    "
        f"return spark.range(1).select(loud(sf.lit({name}.shout('a'))).alias('v'))\n",
    )
    task = sandbox.task(sandbox.workflow(engine="pyspark", path="wf/along.py", lib=["my libs"]))
    assert run_workflow(task).records == {"delays": 1}
    assert sandbox.rows() == [("A!!",)]


def test_what_a_program_brings_along_and_the_settings_of_its_process_reach_it(
    submitted: tuple[Sandbox, WorkflowResult],
) -> None:
    sandbox, _ = submitted
    assert sandbox.rows("told") == [
        ("helpful", "42"),
        ("spark.sql.own.option", "a b"),
        ("spark.sql.shuffle.partitions", "3"),
    ]


def test_cluster_properties_reach_the_session(sandbox: Sandbox, working: str) -> None:
    session = session_for(sandbox.cluster, working)
    with isolated(session) as child:
        assert child.conf.get("spark.sql.shuffle.partitions") == "2"
        assert child.conf.get("spark.sql.session.timeZone") == "UTC"
        child.conf.set("spark.sql.shuffle.partitions", "7")
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"
    assert session_for(sandbox.cluster, working) is session
