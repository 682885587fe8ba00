"""Runs, evictions and restores as OpenLineage events: repeated exports have the same ids."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    documentation_job,
    error_message_run,
    job_type_job,
    nominal_time_run,
    ownership_job,
    parent_run,
    processing_engine_run,
    source_code_job,
    sql_job,
    tags_job,
    tags_run,
)

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.lineage.recorded_runs import RecordedRun
from falcon_assets.features.openlineage.datasets import SOURCE, Datasets
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.workloads import Workload

_PRODUCER = f"pkg:pypi/falcon-assets@{version_of('falcon-assets')}"
_STATES = {
    InstanceState.SUCCEEDED: RunState.COMPLETE,
    InstanceState.FAILED: RunState.FAIL,
    InstanceState.TIMED_OUT: RunState.FAIL,
    InstanceState.KILLED: RunState.ABORT,
}
_UNSAID = {
    InstanceState.FAILED: "it failed",
    InstanceState.TIMED_OUT: "its inputs did not come in time",
    InstanceState.KILLED: "it was killed",
}
_IDS = uuid.UUID("4f0a9b52-6f6c-5d0b-9d55-8c7d1c5d3b0e")
set_producer(_PRODUCER)  # of facets, to which the client gives it itself


class RunEvents:
    def __init__(self, store: EntityStore, home: Path, namespace: str) -> None:
        """``namespace`` is that of jobs, ``home`` is ``FALCON_HOME``."""
        self._store, self._namespace = store, namespace
        self._datasets = Datasets(store, home)

    def of_run(self, run: RecordedRun) -> list[RunEvent]:
        """Returns START and end, both required by the specification; an unknown start is the time of the end."""
        end, workload = run.end, self._store.workload(run.end.process, run.end.cluster)
        of_run = (end.run_id,) if end.run_id is not None else (end.state.value, end.ended)
        what = Run(self._id(*of_run, end.process, end.cluster, end.nominal), self._run_facets(run, workload))
        job = Job(self._namespace, f"{end.cluster}.{end.process}", _job_facets(run, workload))
        read, written = ({place for one in run.outputs for place in getattr(one, of)} for of in ("places", "writes"))
        inputs = [*self._datasets.inputs(run.inputs, run.columns), *self._datasets.read_besides(read)]
        inputs += [self._datasets.taken(one) for one in run.datasets if not one.is_sent]
        outputs = [self._datasets.output(one, run.columns, run.inputs) for one in run.outputs]
        outputs += self._datasets.written_besides(written)
        outputs += [self._datasets.sent(one) for one in run.datasets if one.is_sent]
        begun = Run(what.runId, {key: one for key, one in (what.facets or {}).items() if key != "errorMessage"})
        start = _event(RunState.START, min(end.started or end.ended, end.ended), begun, job, inputs)
        return [start, _event(_STATES[end.state], end.ended, what, job, inputs, outputs)]

    def of_eviction(self, version: Version) -> list[RunEvent]:
        kind = "ARCHIVAL" if version.archived_to else "EVICTION"
        gone = self._datasets.output(version, {}, is_gone=True)
        outputs = [gone, *([self._datasets.at(version.archived_to)] if version.archived_to else [])]
        return self._of_version(version, kind, version.ended_by, version.ended_at, {}, outputs)

    def of_restore(self, version: Version) -> list[RunEvent]:
        who = {"user": version.restored_by or ""}
        outputs = [self._datasets.output(version, {})]
        return self._of_version(version, "RESTORE", None, version.seen_at, who, outputs)

    def _of_version(
        self,
        version: Version,
        kind: str,
        run_id: str | None,
        at: datetime | None,
        tags: Mapping[str, str],
        outputs: Sequence[OutputDataset],
    ) -> list[RunEvent]:
        if at is None:
            return []
        key = self._id(kind, run_id, _time(at), version.id)
        facets: dict[str, Any] = {"nominalTime": nominal_time_run.NominalTimeRunFacet(_time(version.instance))}
        tags = {**tags, **({"dagster_run": run_id} if run_id else {})}
        if tags:
            facets["tags"] = _run_tags(tags)
        job = Job(self._namespace, f"{version.cluster}.{version.feed}.{kind.lower()}", {"jobType": _job_type(kind)})
        inputs = [] if kind == "EVICTION" else self._datasets.inputs([version], {})
        run = Run(key, facets)
        return [_event(RunState.START, at, run, job, inputs), _event(RunState.COMPLETE, at, run, job, inputs, outputs)]

    def _run_facets(self, run: RecordedRun, workload: Workload | None) -> dict[str, Any]:
        end, made = run.end, run.outputs[0] if run.outputs else None
        facets: dict[str, Any] = {
            "nominalTime": nominal_time_run.NominalTimeRunFacet(_time(end.nominal), _next(workload, end.nominal))
        }
        if workload is not None and end.run_id is not None and _is_uuid(end.run_id):
            facets["parent"] = parent_run.ParentRunFacet(
                parent_run.Run(end.run_id), parent_run.Job(self._namespace, workload.job_name)
            )
        environment = (made.environment if made else None) or {}
        if "pyspark" in environment:
            facets["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
                str(environment["pyspark"]), "spark", version_of("openlineage-python")
            )
        if not end.succeeded:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(end.reason or _UNSAID[end.state], "PYTHON")
        tags = {
            "dagster_run": end.run_id,
            "attempt": end.attempt or None,
            "definition": end.definition,
            "definition_hash": run.definition and run.definition.text_hash,
            "workflow_hash": run.definition and run.definition.workflow_hash,
            "user": made and made.made_by,
            "late": "true" if made and made.late else None,
            **environment,
        }
        return {**facets, "tags": _run_tags({name: str(of) for name, of in tags.items() if of})}

    def _id(self, *what: object) -> str:
        parts = (format_instant(one) if isinstance(one, datetime) else str(one) for one in what)
        return str(uuid.uuid5(_IDS, "\n".join([self._namespace, *parts])))


def _job_facets(run: RecordedRun, workload: Workload | None) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if run.definition is not None and run.definition.text is not None:
        facets["sourceCode"] = source_code_job.SourceCodeJobFacet("YAML", run.definition.text)
    if run.sql is not None:
        facets["sql"] = sql_job.SQLJobFacet(run.sql, "spark")
    if workload is None:
        return facets
    entity = workload.entity
    facets["jobType"] = _job_type(workload.kind.upper())
    if workload.description:
        facets["documentation"] = documentation_job.DocumentationJobFacet(workload.description)
    if entity.acl:
        facets["ownership"] = ownership_job.OwnershipJobFacet([ownership_job.Owner(entity.acl.owner)])
    tags = [tags_job.TagsJobFacetFields(name, value, "USER") for name, value in entity.tags.items()]
    tags += [tags_job.TagsJobFacetFields("pipeline", one, SOURCE) for one in workload.pipelines]
    return {**facets, "tags": tags_job.TagsJobFacet(tags)}


def _job_type(kind: str) -> job_type_job.JobTypeJobFacet:
    return job_type_job.JobTypeJobFacet("BATCH", SOURCE, kind)


def _run_tags(tags: Mapping[str, str]) -> tags_run.TagsRunFacet:
    return tags_run.TagsRunFacet([tags_run.TagsRunFacetFields(name, of, SOURCE) for name, of in tags.items()])


def _next(workload: Workload | None, nominal: datetime) -> str | None:
    """Returns the start of the next instance; None: not known, or the instance is not declared any more."""
    if workload is None or not workload.timeline.contains(nominal):
        return None
    timeline = workload.timeline
    try:
        return _time(timeline.instance(timeline.index_at_or_before(nominal) + 1))
    except OverflowError:
        return None


def _event(
    state: RunState,
    at: datetime,
    run: Run,
    job: Job,
    inputs: Sequence[InputDataset],
    outputs: Sequence[OutputDataset] = (),
) -> RunEvent:
    return RunEvent(eventType=state, eventTime=_time(at), run=run, job=job, inputs=[*inputs], outputs=[*outputs])


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
