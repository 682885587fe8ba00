"""Calls PySpark functions of many instances, ``run(spark, inputs, instances)``: also for one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from falcon_assets.compute.engines.computing.python import call_function
from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together import Example, compute_all, keyed, rows_of, table
from falcon_assets.compute.engines.computing.together_files import BatchRows
from falcon_assets.compute.engines.computing.together_joins import KEY
from falcon_assets.errors import WorkflowError

_PARAMETERS = "spark, inputs, instances"
_TIMES = "falcon_times"


def compute_alone(task: WorkflowTask, path: str | None, name: str | None) -> WorkflowResult:
    """Computes a batch of one instance; raises WorkflowError."""

    def compute(spark: SparkSession, inputs: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        made = _called(spark, keyed(task, inputs, sf.lit(task.nominal)), [task], path, name)
        return {name: one.where(_is_known(sf.col(KEY) == task.nominal)).drop(KEY) for name, one in made.items()}

    return compute_in_session(task, compute)


def compute_together(
    tasks: Sequence[WorkflowTask], path: str | None, name: str | None, example: Example
) -> list[WorkflowResult]:
    """As :func:`.compute_all`; also raises WorkflowError where the function fails."""
    times = [task.nominal.isoformat() for task in tasks]

    def rows_by(child: SparkSession) -> Mapping[str, BatchRows]:
        inputs = {
            data[0].name: rows_of(child, data, times, "timestamp")
            for data in zip(*(task.inputs for task in tasks), strict=True)
        }
        made = _called(child, inputs, tasks, path, name)
        numbers = [{_TIMES: time, f"{_TIMES}_number": number} for number, time in enumerate(times)]
        known = sf.broadcast(table(child, numbers, f"{_TIMES}: timestamp, {_TIMES}_number: int"))
        return {name: BatchRows(_numbered(one, known)) for name, one in made.items()}

    return compute_all(tasks, example, rows_by, may_read_more=True)


def _called(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    tasks: Sequence[WorkflowTask],
    path: str | None,
    name: str | None,
) -> dict[str, DataFrame]:
    instances = [task.instance for task in tasks]
    made, where = call_function((spark, dict(inputs), instances), tasks[0], path, name, _PARAMETERS)
    for output, frame in made.items():
        kinds = {one.name.lower(): one.dataType for one in frame.schema.fields}
        if not isinstance(kinds.get(KEY), TimestampType):
            found = f"is {kinds[KEY].simpleString()}" if KEY in kinds else "is missing"
            raise WorkflowError(
                f"{where} returned a DataFrame for {output} whose column {KEY} {found}: it has to be the nominal time "
                "of the instance that a row belongs to, as in the inputs"
            )
    return made


def _numbered(frame: DataFrame, known: DataFrame) -> DataFrame:
    joined = frame.join(known, sf.col(KEY) == sf.col(_TIMES), "left").withColumn("falcon_number", _number())
    others = [f"`{one}`" for one in frame.columns if one.lower() != KEY]
    return joined.select(sf.col("falcon_number").alias(KEY), *others)


def _number() -> Any:
    return sf.coalesce(sf.col(f"{_TIMES}_number"), _unknown().cast("int"))


def _is_known(condition: Any) -> Any:
    return sf.coalesce(sf.when(condition, sf.lit(True)), _unknown().cast("boolean"))


def _unknown() -> Any:
    said = sf.coalesce(sf.col(KEY).cast("string"), sf.lit("NULL"))
    return sf.raise_error(sf.concat(sf.lit(f"a row is of no instance of the batch: its {KEY} is "), said))
