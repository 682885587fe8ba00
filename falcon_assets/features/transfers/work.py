"""Transfers as processes: what plans, computes, publishes and records a process instance does so for theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from pydantic import PrivateAttr

from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.model.process import Process, ProcessCluster
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload

Moving: TypeAlias = Callable[[WorkflowTask], WorkflowResult]


class TransferWorkflow(Workflow):
    """The workflow of a transfer, which no definition names."""

    engine: Literal["transfer"] = "transfer"
    _moving: Moving = PrivateAttr()

    @classmethod
    def of(cls, moving: Moving) -> TransferWorkflow:
        made = cls()
        made._moving = moving
        return made

    def compute(self, task: Any) -> WorkflowResult:
        return self._moving(task)


def process_of(workload: ImportWorkload | ExportWorkload, moving: Moving) -> Process:
    """The transfer as a process, whose instances are computed by ``moving``."""
    feed = workload.entity
    entry = feed.on(workload.cluster)
    assert entry is not None
    return Process.model_construct(
        kind="process",
        name=workload.name,
        description=workload.description,
        tags=feed.tags,
        clusters=(ProcessCluster.model_construct(name=workload.cluster, validity=entry.validity),),
        frequency=feed.frequency,
        timezone=feed.timezone,
        inputs=workload.inputs,
        outputs=workload.outputs,
        workflow=TransferWorkflow.of(moving),
        late_process=workload.late,
        properties=feed.properties,
        acl=feed.acl,
        schedule=feed.schedule,
    )
