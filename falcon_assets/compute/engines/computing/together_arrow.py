"""Calls Python functions of one instance, ``run(inputs, instance)``, in tasks of Spark: for many, or for one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from falcon_assets.compute.arrow.writing import declared_columns, title_of
from falcon_assets.compute.engines.computing import arrow_groups, task
from falcon_assets.compute.engines.computing.arrow_groups import INPUT, NO_INPUT, ROWS, calling
from falcon_assets.compute.engines.computing.python import load_function
from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together import Example, compute_all, keyed, rows_of, writers_of
from falcon_assets.compute.engines.computing.together_files import BatchRows
from falcon_assets.compute.engines.computing.together_joins import KEY
from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.errors import WorkflowError

_PARAMETERS = "inputs, instance"

for _module in (arrow_groups, task):  # executors need not have this package
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]


def compute_alone(one: WorkflowTask, path: str | None, name: str | None) -> WorkflowResult:
    """Computes a batch of one instance; raises WorkflowError."""

    def compute(spark: SparkSession, inputs: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        own = {data.name: inputs[data.name] for data in one.inputs}
        return {one.outputs[0].name: _made(spark, keyed(one, own, sf.lit(0)), [one], path, name).drop(KEY)}

    return compute_in_session(one, compute)


def compute_together(
    tasks: Sequence[WorkflowTask], path: str | None, name: str | None, example: Example
) -> list[WorkflowResult]:
    """As :func:`.compute_all`; it fails as well where the function does."""

    def rows_by(child: SparkSession) -> Mapping[str, BatchRows]:
        inputs = {
            data[0].name: rows_of(child, data, range(len(tasks)), "int")
            for data in zip(*(one.inputs for one in tasks), strict=True)
        }
        return {tasks[0].outputs[0].name: BatchRows(_made(child, inputs, tasks, path, name))}

    return compute_all(tasks, example, rows_by)


def _made(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    tasks: Sequence[WorkflowTask],
    path: str | None,
    name: str | None,
) -> DataFrame:
    """The rows of the output, behind the number of the instance; ``inputs`` have that in a column :data:`KEY`."""
    function, file = load_function(tasks[0], path, name, _PARAMETERS)
    columns = _columns(tasks[0].outputs[0])
    struct = from_arrow_schema(pa.schema([pa.field(KEY, pa.int32()), *columns]), prefer_timestamp_ntz=True)
    wanted = pa.schema([*to_arrow_schema(struct, timezone="UTC")][1:])
    call = calling(
        function,
        [one.instance for one in tasks],
        [*inputs],
        wanted,
        f"{file}: {getattr(function, '__name__', 'run')}()",
    )
    members = [spark.range(len(tasks)).select(sf.col("id").cast("int").alias(KEY), sf.lit(NO_INPUT).alias(INPUT))]
    for number, frame in enumerate(inputs.values()):
        own = sf.struct(*(f"`{one}`" for one in frame.columns if one != KEY))
        members.append(frame.select(KEY, sf.lit(number).alias(INPUT), own.alias(f"{ROWS}{number}")))
    rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), members)
    # Else Spark would let one task compute them all, as it looks only at how much data there is.
    return rows.repartition(writers_of(spark, tasks), KEY).groupBy(KEY).applyInArrow(call, struct)


def _columns(data: OutputData) -> pa.Schema:
    try:
        return declared_columns(data)
    except KeyError as error:
        raise WorkflowError(f"{title_of(data)}: Arrow has no type {error}") from None
