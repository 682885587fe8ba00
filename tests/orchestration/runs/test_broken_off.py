"""What is said of instances whose run is interrupted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dagster as dg

from falcon_assets.compute.executor import InProcessExecutor
from falcon_assets.history.dagster_internals.events import Batches
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.events.record import said_by
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.instances.runs.workload_execution import WorkloadRun
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.data_usage import Usage
from falcon_assets.planning.workloads import ProcessWorkload
from tests.builders import make_cluster, make_process

T = parse_instant("2013-01-01T00:00Z")


class Ended:
    """An instance without outputs that succeeded."""

    nominal = T

    def events(self, partition: str, at: Any, definition: int | None) -> Any:
        return materializations(InstanceResult(T, {}, (), "", 1.0, Usage()), "p", "primary", partition, at, definition)


def test_what_ended_before_its_start_was_recorded_has_both_in_history(instance: dg.DagsterInstance) -> None:
    """The interruption came while its start was written down, or before."""
    workload = ProcessWorkload(make_process(inputs=[], outputs=[]), "primary", {})
    for running in ({}, {T: False}):
        events: list[Any] = []
        context: Any = SimpleNamespace(instance=instance, run_id="run")
        work: Any = SimpleNamespace(definition=lambda _: 1, executor=InProcessExecutor(make_cluster()))
        run = WorkloadRun(workload, lambda: T, context, None, work, Batches(events.extend))  # type: ignore[arg-type]
        run.outcomes.put(T, Ended())
        run.running.update(running)
        run._record_interruption()
        states = [InstanceChanged.read(said_by(event)).state.value for event in events]
        assert states == ["RUNNING", "SUCCEEDED"]
