"""Reads an input of a roll-up so that the feeds that its rows lie in can be told apart."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.data.schemas import FIXED_SCHEMAS
from falcon_assets.errors import WorkflowError
from falcon_assets.planning.rollups import member_input


def read_with_members(spark: SparkSession, data: InputData) -> dict[str, DataFrame]:
    """Returns the input by its name, lazily; beside it each of its members, with the columns of all, where asked for.

    Each member is read on its own: whoever needs the rows of one does not read the others.

    Raises:
        WorkflowError: as :func:`.read_input`, or its rows have the column of the member already.
    """
    whole, members = read_input(spark, data), data.members
    if members is None:
        return {data.name: whole}
    frames = {members.names[0]: whole} if len(members.names) == 1 else _by_member(spark, data, whole)
    if members.column:
        if members.column.lower() in {name.lower() for name in whole.columns}:
            raise WorkflowError(
                f"{data.title}: its rows have a column {members.column} already: name another one in members.column"
            )
        frames = {name: frame.withColumn(members.column, sf.lit(name)) for name, frame in frames.items()}
        whole = reduce(DataFrame.unionByName, frames.values())
    views = frames if members.are_inputs else {}
    return {data.name: whole, **{member_input(data.name, name): frame for name, frame in views.items()}}


def _by_member(spark: SparkSession, data: InputData, whole: DataFrame) -> dict[str, DataFrame]:
    feed = data.feed
    if feed.schema_ is None and feed.format not in FIXED_SCHEMAS:  # that of all files, also for those of one member
        feed = feed.model_copy(update={"schema_": whole.schema.toDDL()})
    return {
        name: read_input(spark, replace(one, feed=feed)) if one.urls else spark.createDataFrame([], whole.schema)
        for name, one in data.by_member.items()
    }
