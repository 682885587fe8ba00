"""Late inputs: which are declared, how one changed, and which workflow then runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.process import Process
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class Arrival:
    """A version of an input instance that is not the one read; ``looked_before``: when it was last seen missing."""

    change: LateChange
    seen_at: datetime
    by_late_rerun: bool
    looked_before: datetime | None = None

    @property
    def came_at(self) -> datetime:
        return self.seen_at if self.looked_before is None else min(self.looked_before + MICROSECOND, self.seen_at)


def late_inputs(workloads: Iterable[Workload]) -> dict[tuple[str, str, str], timedelta]:
    """(cluster, workload, input) -> the cut-off; for compaction it is never too late."""
    found = {}
    for workload in workloads:
        read = {declared.name: workload.feeds[declared.feed] for declared in workload.inputs}
        for late in workload.late.inputs if workload.late else ():
            arrival = read[late.input].late_arrival
            if workload.kind == "compaction":
                found[workload.cluster, workload.name, late.input] = timedelta.max
            elif arrival is not None:
                found[workload.cluster, workload.name, late.input] = arrival.cut_off.length
    return found


def late_workflow(process: Process, changes: Collection[LateChange] | None) -> Workflow:
    """The workflow of the first changed late input that declares one, else that of the process.

    ``changes`` None: this is no late rerun; empty: not known, so any late input may have changed.
    """
    if changes is None or process.late_process is None:
        return process.workflow
    changed = {one.input for one in changes}
    inputs = [one for one in process.late_process.inputs if not changed or one.input in changed]
    return next((one.workflow for one in inputs if one.workflow is not None), process.workflow)
