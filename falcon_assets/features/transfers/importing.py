"""The import of an instance: parts of a source are read by tasks of Spark, and written as any output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.datasources.datasource_type import (
    ReadPart,
    ReadRequest,
    SourceColumn,
    SourceReading,
    datasource_types,
)
from falcon_assets.features.transfers.records import Transferred
from falcon_assets.features.transfers.store import ChangesRead
from falcon_assets.model.datasource import Datasource
from falcon_assets.planning.transfers import IMPORTED, ImportWorkload

if TYPE_CHECKING:
    import pyarrow as pa

_TIMES = "spark.sql.parquet.outputTimestampType"


@dataclass(frozen=True)
class Importing:
    """Imports instances of a feed on a cluster.

    Attributes:
        environ: Has the variables of secrets.
        watermarks: Asks the ledger for those around an instance.
        now: The falcon clock.
    """

    workload: ImportWorkload
    datasource: Datasource
    environ: Mapping[str, str]
    watermarks: Callable[[datetime], ChangesRead]
    now: Callable[[], datetime]

    def __call__(self, task: WorkflowTask) -> WorkflowResult:
        access = access_to(self.datasource, self.environ, write=False)
        with datasource_types()[self.datasource.type].open_reading(access, self._request(task)) as reading:
            result = compute_in_session(task, partial(self._imported, task, reading))
        return replace(result, facts=(self._told(task, reading, result.records[IMPORTED]),))

    def _imported(
        self, task: WorkflowTask, reading: SourceReading, spark: SparkSession, inputs: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        if _TIMES not in {**task.cluster.properties, **task.settings}:
            spark.conf.set(_TIMES, "TIMESTAMP_MICROS")  # readers make nanoseconds of INT96, in which 9999-12-31 is 1816
        return {IMPORTED: read_parts(spark, reading)}

    def _request(self, task: WorkflowTask) -> ReadRequest:
        declared, line = self.workload.declared, self.workload.timeline
        end = line.instance(line.index_at_or_before(task.nominal) + 1)
        parts = min(declared.parallel, self.datasource.throttle.connections)
        known = self.watermarks(task.nominal) if declared.goes_on else ChangesRead(None, None)
        return ReadRequest(declared, task.nominal, end, known.low, known.upto, parts, self.workload.entity.schema_)

    def _told(self, task: WorkflowTask, reading: SourceReading, rows: int) -> Transferred:
        return Transferred(
            self.workload.name,
            self.workload.cluster,
            task.nominal,
            self.now(),
            "import",
            datasource=self.datasource.name,
            dataset=self.workload.declared.source.what,
            rows=rows,
            low_watermark=reading.low,
            high_watermark=reading.high,
            source_columns=tuple((one.name, one.spark_type) for one in reading.columns),
        )


def read_parts(spark: SparkSession, reading: SourceReading) -> DataFrame:
    """Returns all parts, lazily: each is read by a task."""
    parts, columns = tuple(reading.parts), tuple(reading.columns)
    arriving = ", ".join(f"`{_escaped(one.name)}` {one.arrives_as}" for one in columns)
    numbers = spark.range(0, len(parts), 1, max(1, len(parts)))
    arrived = numbers.mapInArrow(partial(_read, parts), arriving)
    return arrived.select(*(_column(one) for one in columns))


def _column(one: SourceColumn) -> Column:
    name = f"`{_escaped(one.name)}`"
    return sf.expr(one.expression or name).alias(one.name)


def _escaped(name: str) -> str:
    return name.replace("`", "``")


def _read(parts: Sequence[ReadPart], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from parts[number].batches()
