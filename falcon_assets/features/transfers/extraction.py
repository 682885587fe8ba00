"""Rows of a source in Spark: read in parts, counted, and merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.compute.spark.data.writing import metrics_of
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import DatasourceError, WorkflowError
from falcon_assets.features.datasources.datasource_type import ReadPart, SourceColumn, SourceReading
from falcon_assets.features.transfers.merging import merged, newest_of_each, quoted
from falcon_assets.features.transfers.task_files import TaskOutput, fits, write_in_tasks
from falcon_assets.model.transfer import Import
from falcon_assets.planning.transfers import BEFORE, IMPORTED

if TYPE_CHECKING:
    import pyarrow as pa

_TIMES = "spark.sql.parquet.outputTimestampType"


@dataclass
class Extraction:
    """The rows of an instance; what it holds in Spark is released at the end of the context.

    Attributes:
        where: Names the source.
        spark_writes: Whether Spark has to write the output, on ``cluster``.
        written: What the tasks have written themselves; None: Spark writes it.
    """

    declared: Import
    reading: SourceReading
    where: str
    output: OutputData
    cluster: str
    spark_writes: bool
    written: TaskOutput | None = field(default=None, init=False)
    _held: DataFrame | None = field(default=None, init=False)
    _counted: Mapping[str, Any] = field(default_factory=dict, init=False)
    _observed: tuple[Observation, DataFrame] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Raises DatasourceError where columns are named that are not read."""
        taken = [one.name for one in self.reading.columns]
        named = (*self.declared.key, *((self._column,) if self.declared.key and self._column else ()))
        if lacking := [one for one in named if one not in taken]:
            raise DatasourceError(
                f"{self.where}: upsert needs the column {', '.join(map(repr, lacking))}, which is not read; there is: "
                f"{', '.join(taken)}"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            with suppress(*SPARK_ERRORS, OSError):  # the JVM may have died, and its memory with it
                self._held.unpersist()

    def frames(self, spark: SparkSession, inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame | None]:
        """The output, or None where the tasks have written it; raises WorkflowError where it cannot be read."""
        if spark.conf.get(_TIMES) == "INT96":  # in whose nanoseconds 9999-12-31 is a day of 1816
            spark.conf.set(_TIMES, "TIMESTAMP_MICROS")
        rows, key = read_parts(spark, self.reading), self.declared.key
        if not self.spark_writes and fits(self.output, self.reading.columns, spark.conf.getAll):
            self.written = write_in_tasks(rows, self.reading, self.output, self.cluster, self._taken_column)
            return {IMPORTED: None}
        if BEFORE in inputs:  # changes are looked at twice, and may be others at the second time
            self._held = rows = rows.persist()
            try:
                (figures,) = rows.agg(*self._figures()).collect()
            except SPARK_ERRORS as error:
                raise WorkflowError(f"{self.where}: {explain(error)}") from error
            self._counted = figures.asDict()
        elif self.declared.incremental:
            observation = Observation()
            rows = rows.observe(observation, *self._figures())
            self._observed = observation, rows
        if key and self._column:
            rows = newest_of_each(rows, key, self._column)
        return {IMPORTED: merged(inputs[BEFORE], rows, key) if BEFORE in inputs else rows}

    def found(self, written: int | None) -> tuple[int | None, str | None]:
        """After the output was written: how many rows were read, and the newest value; ``written`` rows were."""
        if self.written is not None:
            return self.written.rows, self.written.newest
        counted = metrics_of(*self._observed) if self._observed else self._counted
        return counted.get("rows", written), counted.get("newest")

    @property
    def _column(self) -> str | None:
        return self.declared.incremental.column if self.declared.incremental else None

    @property
    def _taken_column(self) -> str | None:
        return self._column if self._column in [one.name for one in self.reading.columns] else None

    def _figures(self) -> Iterator[Column]:
        yield sf.count(sf.lit(1)).alias("rows")
        if self._taken_column is not None:
            yield sf.max(sf.col(quoted(self._taken_column))).cast("string").alias("newest")


def read_parts(spark: SparkSession, reading: SourceReading) -> DataFrame:
    """Returns all parts, lazily: each is read by a task."""
    parts, columns = tuple(reading.parts), tuple(reading.columns)
    arriving = ", ".join(f"{quoted(one.name)} {one.arrives_as}" for one in columns)
    numbers = spark.range(0, len(parts), 1, max(1, len(parts)))
    arrived = numbers.mapInArrow(partial(_read, parts), arriving)
    return arrived.select(*(_as_in_the_feed(one) for one in columns))


def _as_in_the_feed(one: SourceColumn) -> Column:
    return sf.expr(one.expression or quoted(one.name)).alias(one.name)


def _read(parts: Sequence[ReadPart], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from parts[number].batches()
