"""The export of an instance: tasks of Spark load it beside its target, and one transaction makes it visible."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.datasources.datasource_type import (
    LoadedPart,
    TargetWriting,
    WritePart,
    WriteRequest,
    datasource_types,
)
from falcon_assets.features.transfers.records import InstanceDelivered
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.transfers import EXPORTED, ExportWorkload

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Exporting:
    """Delivers instances of a feed on a cluster.

    Attributes:
        environ: Has the variables of secrets.
        before: Asks the ledger for the execution by which an instance was delivered last; None: by none.
        now: The falcon clock.
    """

    workload: ExportWorkload
    datasource: Datasource
    environ: Mapping[str, str]
    before: Callable[[datetime], str | None]
    now: Callable[[], datetime]

    def __call__(self, task: WorkflowTask) -> WorkflowResult:
        access = access_to(self.datasource, self.environ, write=True)
        told: list[InstanceDelivered] = []

        def last() -> None:
            task.unchanged()
            current_cancellation().make_final()

        def deliver(spark: SparkSession, inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
            frame = self._chosen(inputs[EXPORTED])
            request = self._request(task, frame)
            with datasource_types()[self.datasource.type].open_writing(access, request) as writing:
                rows = writing.delivered
                if rows is None:
                    rows = writing.commit(load_parts(frame, writing, self._parts), last)
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
        return frame.select(*(sf.col(_quoted(one)) for one in fields.of(tuple(frame.columns))))

    @property
    def _parts(self) -> int:
        """How many tasks load an instance at once: all instances of a run share the connections."""
        if not datasource_types()[self.datasource.type].loads_in_parallel:
            return 1
        declared, throttle = self.workload.declared, self.datasource.throttle
        return max(1, min(declared.parallel, throttle.connections // self.workload.parallel))

    def _request(self, task: WorkflowTask, frame: DataFrame) -> WriteRequest:
        workload, line = self.workload, self.workload.timeline
        (source,) = task.inputs
        rate = self.datasource.throttle.rows_per_second
        version = " ".join(source.versions)
        return WriteRequest(
            workload.declared,
            workload.entity.name,
            workload.cluster,
            task.nominal,
            line.instance(line.index_at_or_before(task.nominal) + 1),
            workload.timezone,
            version,
            [(one.name, one.dataType.simpleString()) for one in frame.schema],
            execution_of(workload, task.nominal, version, self.before(task.nominal)),
            rate / (self._parts * workload.parallel) if rate else None,
        )

    def _told(self, request: WriteRequest, rows: int) -> InstanceDelivered:
        return InstanceDelivered(
            self.workload.name,
            self.workload.cluster,
            request.start,
            self.now(),
            self.workload.entity.name,
            request.version,
            self.datasource.name,
            self.workload.declared.target.table,
            request.execution,
            rows,
        )


def execution_of(workload: ExportWorkload, nominal: datetime, version: str, before: str | None) -> str:
    """Identifies the delivery of a version: the same for all attempts at it, until one of them is recorded.

    ``before`` is the execution that was recorded last. So late data, a rerun and a delivery on request have others,
    even if the data is the same, or was delivered some time before.
    """
    known = (workload.name, workload.cluster, format_instant(nominal), version, before or "")
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:32]


def load_parts(frame: DataFrame, writing: TargetWriting, parts: int) -> list[LoadedPart]:
    """Loads all rows, in so many tasks at most; raises DatasourceError with what a task found."""
    load = partial(_load, writing.part)
    loaded = writing.arranged(frame, parts).mapInArrow(load, "part int, attempt bigint, rows bigint, problem string")
    rows = loaded.collect()
    if problem := next((row["problem"] for row in rows if row["problem"]), None):
        raise DatasourceError(problem)
    return [LoadedPart(row["part"], row["attempt"], row["rows"]) for row in rows]


def _load(part: WritePart, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers; a problem of the datasource is a result, as Spark's next attempt would have it, too."""
    import pyarrow as pa  # noqa: PLC0415 - only the workers need it

    context = TaskContext.get()
    assert context is not None
    number, attempt, rows, problem = context.partitionId(), context.taskAttemptId(), 0, None
    try:
        rows = part.load(number, attempt, batches)
    except DatasourceError as error:
        problem = str(error)
    columns = {
        "part": pa.array([number], pa.int32()),
        "attempt": pa.array([attempt], pa.int64()),
        "rows": pa.array([rows], pa.int64()),
        "problem": pa.array([problem], pa.string()),
    }
    yield pa.RecordBatch.from_pydict(columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
