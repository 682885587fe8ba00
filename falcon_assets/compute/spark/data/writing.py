"""Writes an output and counts its records meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import WorkflowError

NO_MARKER = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
"""Hadoop's own ``_SUCCESS`` must not appear: publishing decides when an instance is complete."""
_METRIC_SECONDS = 30.0


def write_output(frame: DataFrame, data: OutputData) -> int:
    """Writes ``frame``, even if it is empty; returns the number of records.

    Raises:
        WorkflowError: columns for the partitions are missing, or Spark cannot compute or write the data.
    """
    feed = data.feed
    where = f"output {data.name!r} (feed {feed.name!r})"
    if feed.format == "binaryFile":
        raise WorkflowError(f"{where}: Spark can only read the format binaryFile, not write it")
    try:
        if data.partitions:
            _check_partitions(frame, data, where)
        observation = Observation()
        _save(frame.observe(observation, sf.count(sf.lit(1)).alias("records")), data, data.partitions)
        records = observed(observation, frame, data)
        if records == 0 and data.partitions:  # no folder was written, and nothing would show the columns
            _save(frame.limit(0).drop(*data.partitions), data, ())
    except SPARK_ERRORS as error:
        raise WorkflowError(f"{where}: {explain(error)}") from error
    return records


def _save(frame: DataFrame, data: OutputData, partitions: tuple[str, ...]) -> None:
    writer = frame.write.format(data.feed.format).options(**data.feed.options).option(NO_MARKER, "false")
    if partitions:
        writer = writer.partitionBy(*partitions)
    elif data.partitions:
        writer = writer.mode("append")
    writer.save(data.url)


def _check_partitions(frame: DataFrame, data: OutputData, where: str) -> None:
    columns = {column.lower() for column in frame.columns}
    missing = [name for name in data.partitions if name.lower() not in columns]
    if missing:
        raise WorkflowError(
            f"{where}: the feed is partitioned by {', '.join(data.partitions)}, but the data has no column "
            f"{', '.join(missing)}; its columns are {', '.join(frame.columns)}"
        )


def observed(observation: Observation, frame: DataFrame, data: OutputData, seconds: float = _METRIC_SECONDS) -> int:
    """Returns the count of ``observation``; if Spark lost it, the number of records in the output's folder."""
    records = metrics_of(observation, frame, seconds).get("records")
    return count_records(frame.sparkSession, data) if records is None else int(records)


def metrics_of(observation: Observation, frame: DataFrame, seconds: float = _METRIC_SECONDS) -> Mapping[str, Any]:
    """Returns what an observation of a finished query has found; empty: Spark lost it.

    Classic Spark delivers metrics over its listener bus, which drops events under pressure; waiting for one without
    a bound (``Observation.get``) could hang for ever.
    """
    java = getattr(observation, "_jo", None)
    if java is not None:
        jvm: Any = frame.sparkSession.sparkContext._jvm
        limit = getattr(jvm, "scala.concurrent.duration.Duration").fromNanos(int(seconds * 1e9))
        try:
            getattr(jvm, "scala.concurrent.Await").ready(java.future(), limit)
        except Py4JJavaError:  # a TimeoutException
            return {}
    return observation.get


def count_records(spark: SparkSession, data: OutputData) -> int:
    return read_input(spark, InputData(data.name, data.feed, (data.url,))).count()
