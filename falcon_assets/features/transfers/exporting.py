"""The export of an instance: tasks of Spark load it beside its target, and one transaction makes it visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.datasources.datasource_type import TargetWriting, WritePart, WriteRequest, datasource_types
from falcon_assets.features.transfers.records import Transferred
from falcon_assets.model.datasource import Datasource
from falcon_assets.planning.transfers import EXPORTED, ExportWorkload

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Exporting:
    """Delivers instances of a feed on a cluster.

    Attributes:
        environ: Has the variables of secrets.
        now: The falcon clock.
    """

    workload: ExportWorkload
    datasource: Datasource
    environ: Mapping[str, str]
    now: Callable[[], datetime]

    def __call__(self, task: WorkflowTask) -> WorkflowResult:
        access = access_to(self.datasource, self.environ, write=True)
        told: list[Transferred] = []

        def deliver(spark: SparkSession, inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
            frame = self._chosen(inputs[EXPORTED])
            request = self._request(task, frame)
            with datasource_types()[self.datasource.type].open_writing(access, request) as writing:
                rows = (
                    writing.delivered if writing.delivered is not None else write_parts(frame, writing, request.parts)
                )
            told.append(self._told(request, rows))
            return {}

        result = compute_in_session(task, deliver)
        return replace(result, facts=tuple(told))

    def _chosen(self, frame: DataFrame) -> DataFrame:
        fields = self.workload.declared.fields
        if fields is None:
            return frame
        if missing := [one for one in fields.include or fields.exclude or () if one not in frame.columns]:
            there = ", ".join(frame.columns)
            raise DatasourceError(f"{self.workload.name}: there is no column {', '.join(missing)}; there is: {there}")
        return frame.select(*fields.of(tuple(frame.columns)))

    def _request(self, task: WorkflowTask, frame: DataFrame) -> WriteRequest:
        columns = [(one.name, one.dataType.simpleString()) for one in frame.schema]
        parts = min(self.workload.declared.parallel, self.datasource.throttle.connections)
        feed, cluster = self.workload.entity.name, self.workload.cluster
        return WriteRequest(self.workload.declared, feed, cluster, task.nominal, columns, task.run_id, parts)

    def _told(self, request: WriteRequest, rows: int) -> Transferred:
        return Transferred(
            self.workload.name,
            self.workload.cluster,
            request.start,
            self.now(),
            "export",
            datasource=self.datasource.name,
            dataset=self.workload.declared.target.table,
            rows=rows,
            execution=request.execution,
        )


def write_parts(frame: DataFrame, writing: TargetWriting, parts: int) -> int:
    """Loads all parts, each by a task, and commits them; returns how many rows there are."""
    spread = frame.select(*(sf.expr(writing.expression(one.name, one.dataType.simpleString())) for one in frame.schema))
    loaded = spread.coalesce(parts).mapInArrow(partial(_load, writing.part), "part int, rows bigint").collect()
    return writing.commit({row["part"]: row["rows"] for row in loaded})


def _load(part: WritePart, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers."""
    import pyarrow as pa  # noqa: PLC0415 - only the workers need it

    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    rows = part.load(number, batches)
    yield pa.RecordBatch.from_pydict({"part": pa.array([number], pa.int32()), "rows": pa.array([rows], pa.int64())})
