"""Late inputs: which are declared, what changed of one, and which workflow then runs."""

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
    """The present version of an input instance that is not the version that was read.

    Attributes:
        change: The input instance, the version that was read and the present one.
        seen_at: When the present version was seen, UTC.
        by_late_rerun: Whether a late rerun of its producer published it.
        looked_before: The last time at which a collector found that it was not there yet; None: it was seen as it came.
    """

    change: LateChange
    seen_at: datetime
    by_late_rerun: bool
    looked_before: datetime | None = None

    @property
    def came_at(self) -> datetime:
        """The earliest time at which it may have come: after the last time at which it was not there."""
        return self.seen_at if self.looked_before is None else min(self.looked_before + MICROSECOND, self.seen_at)


def late_inputs(workloads: Iterable[Workload]) -> dict[tuple[str, str, str], timedelta]:
    """(cluster, workload, input) -> the cut-off of the feed, of every late input."""
    found = {}
    for workload in workloads:
        read = {declared.name: workload.feeds[declared.feed] for declared in workload.inputs}
        for late in workload.late.inputs if workload.late else ():
            arrival = read[late.input].late_arrival
            if arrival is not None:
                found[workload.cluster, workload.name, late.input] = arrival.cut_off.length
    return found


def late_workflow(process: Process, changes: Collection[LateChange] | None) -> Workflow:
    """What a late rerun runs: what the first changed late input declares that declares something.

    Without any, the workflow of the process.

    Args:
        process: The process.
        changes: What changed; empty: nobody knows (a person asked for a late rerun of an instance that never succeeded,
            say), and any late input may have; None: this is no late rerun.
    """
    if changes is None or process.late_process is None:
        return process.workflow
    changed = {one.input for one in changes}
    inputs = [one for one in process.late_process.inputs if not changed or one.input in changed]
    return next((one.workflow for one in inputs if one.workflow is not None), process.workflow)
