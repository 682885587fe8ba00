"""The import of an instance: parts of a source are read by tasks of Spark, and written as any output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from falcon_assets.compute.engines.computing.session import compute_in_session
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access, access_to
from falcon_assets.features.datasources.datasource_type import ReadRequest, datasource_types
from falcon_assets.features.transfers.extraction import Extraction
from falcon_assets.features.transfers.records import Transferred
from falcon_assets.features.transfers.source_columns import require_known_columns
from falcon_assets.features.transfers.store import ChangesRead
from falcon_assets.model.datasource import Datasource
from falcon_assets.planning.transfers import IMPORTED, ImportWorkload

_EXTRACT = "import.extract"
"""A property of a rerun."""


@dataclass(frozen=True)
class Importing:
    """Imports instances of a feed on a cluster.

    Attributes:
        environ: Has the variables of secrets.
        known: Asks the ledger for what was read before and after an instance.
        now: The falcon clock.
    """

    workload: ImportWorkload
    datasource: Datasource
    environ: Mapping[str, str]
    known: Callable[[datetime], ChangesRead]
    now: Callable[[], datetime]

    def __call__(self, task: WorkflowTask) -> WorkflowResult:
        known, declared = self.known(task.nominal), self.workload.declared
        request = self._request(task, known)
        there = datasource_types()[self.datasource.type]
        with there.open_reading(self._access, request) as reading:
            if there.declares_columns:
                require_known_columns(reading.columns, known.columns, declared, self._where)
            before = task.inputs if request.low is not None else ()  # else there is all in what is read
            (output,), by_spark = task.outputs, self.workload.spark_writes is not None
            with Extraction(declared, reading, self._where, output, task.cluster.name, by_spark) as extraction:
                result = compute_in_session(replace(task, inputs=before), extraction.frames)
                rows, newest = extraction.found(result.records.get(IMPORTED))
            if written := extraction.written:
                captured = replace(result.captured, writes=(*result.captured.writes, written.captured))
                result = replace(result, records={IMPORTED: written.rows}, captured=captured)
        told = Transferred(
            self.workload.name,
            self.workload.cluster,
            task.nominal,
            self.now(),
            "import",
            datasource=self.datasource.name,
            dataset=declared.source.what,
            rows=rows,
            low_watermark=reading.low,
            high_watermark=reading.high,
            newest=newest,
            behind=reading.behind,
            source_columns=tuple((one.name, one.spark_type) for one in reading.columns),
        )
        return replace(result, facts=(told,))

    @property
    def _access(self) -> Access:
        """With the share of what the throttle allows that each of the instances of a run has."""
        found, at_once = access_to(self.datasource, self.environ, write=False), self.workload.parallel
        whole = found.throttle
        share = {
            "connections": max(1, whole.connections // at_once),
            "rows_per_second": whole.rows_per_second and max(1, whole.rows_per_second // at_once),
        }
        return replace(found, throttle=whole.model_copy(update=share))

    @property
    def _where(self) -> str:
        return f"{self.workload.declared.source.what} of {self.datasource.name}"

    def _request(self, task: WorkflowTask, known: ChangesRead) -> ReadRequest:
        declared, line = self.workload.declared, self.workload.timeline
        end = line.instance(line.index_at_or_before(task.nominal) + 1)
        low, upto = (known.low, known.upto) if declared.goes_on else (None, None)
        if self._is_read_anew(task) or (declared.key and not any(one.urls for one in task.inputs)):
            low = None  # there is nothing that changes could be merged into
        return ReadRequest(declared, task.nominal, end, low, upto, declared.parallel, self.workload.entity.schema_)

    def _is_read_anew(self, task: WorkflowTask) -> bool:
        """Raises DatasourceError where a rerun asks for what there is not."""
        asked = task.properties.get(_EXTRACT)
        if asked not in (None, "full"):
            raise DatasourceError(f"{_EXTRACT} is {asked!r}, and can be full only: the instance has all of the source")
        return asked is not None
