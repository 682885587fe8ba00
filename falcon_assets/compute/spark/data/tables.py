"""Reads partitions of tables by their files: Spark has no catalog, the partition keys are literals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import literal
from falcon_assets.compute.spark.data.schemas import compare_orc, parse_schema
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of
from falcon_assets.errors import WorkflowError
from falcon_assets.storage.kinds.reading import ReadablePartition
from falcon_assets.storage.tables.catalog import Column, TableLayout
from falcon_assets.storage.tables.column_types import as_read, plain_type
from falcon_assets.storage.tables.key_values import NO_VALUE, same


def read_partitions(spark: SparkSession, data: InputData) -> DataFrame:
    """Returns all partitions as one DataFrame, lazily: the columns of the table or declared schema, then other keys.

    Raises:
        WorkflowError: the table does not have the declared schema, or is in a format that Spark does not read by path.
    """
    layout = data.partitions[0].layout
    columns = _declared(data, layout) if data.feed.schema_ is not None else layout.columns
    frames = [_read(spark, data, columns, one) for one in data.partitions]
    # As a tree, so that thousands of partitions are no tower of plans.
    while len(frames) > 1:
        frames = [reduce(DataFrame.unionByName, frames[at : at + 16]) for at in range(0, len(frames), 16)]
    keys = [key.name for key in layout.keys if key.name not in {one.name for one in columns}]
    return frames[0].select(*(f"`{name}`" for name in [*(one.name for one in columns), *keys]))


def _read(spark: SparkSession, data: InputData, columns: tuple[Column, ...], one: ReadablePartition) -> DataFrame:
    if not one.partition.format:
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): a partition of {one.layout.name} is neither in Parquet "
            "nor in ORC, and no other formats of tables can be read"
        )
    values = same(one.layout.keys, one.partition.values)
    keys = {key.name.lower(): (key, value) for key, value in zip(one.layout.keys, values, strict=True)}
    # Where files name columns otherwise, all of the table are read, and renamed by their places, inner ones, too.
    in_files = one.columns or [column for column in columns if column.name.lower() not in keys]
    schema = ", ".join(f"`{column.name}` {as_read(column.type)}" for column in in_files)
    reader = spark.read.format(one.partition.format).schema(schema).option("recursiveFileLookup", "true")
    places = [literal(place) for place in one.partition.places]
    if one.partition.format == "orc":
        _check_orc(spark, data, places, in_files)
    frame = reader.load(places)
    if one.columns:
        named = zip(one.columns, one.layout.columns, strict=True)
        frame = frame.select(*(sf.col(f"`{has.name}`").cast(is_.type).alias(is_.name) for has, is_ in named))
    typed = {column.name.lower(): column for column in columns}
    for name, (key, value) in keys.items():
        column = typed.get(name, key)
        frame = frame.withColumn(column.name, sf.lit(None if value == NO_VALUE else value).cast(as_read(column.type)))
    return frame


def _check_orc(spark: SparkSession, data: InputData, places: list[str], columns: Sequence[Column]) -> None:
    """ORC's reader rounds values with more digits, and makes null of values of another type."""
    try:
        found = spark.read.format("orc").option("recursiveFileLookup", "true").load(places).schema
    except SPARK_ERRORS as error:
        if condition_of(error) == "UNABLE_TO_INFER_SCHEMA":  # no file at all: nothing can be wrong
            return
        raise
    declared = ", ".join(f"`{column.name}` {plain_type(column.type)}" for column in columns)
    compare_orc(data, found, parse_schema(declared))


def _declared(data: InputData, layout: TableLayout) -> tuple[Column, ...]:
    there = {one.name.lower(): one.type for one in (*layout.columns, *layout.keys)}
    keys = {key.name.lower() for key in layout.keys}
    schema = parse_schema(data.feed.schema_ or "")
    declared = tuple(Column(field.name, field.dataType.simpleString()) for field in schema)
    wrong = [
        f"{one.name} is {there.get(one.name.lower(), 'not there')}, declared {one.type}"
        for one in declared
        if one.name.lower() not in keys and as_read(there.get(one.name.lower(), "")) != as_read(one.type)
    ]
    if wrong:
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): table {layout.name} does not have the declared schema: "
            f"{'; '.join(wrong)}"
        )
    return declared
