"""Which inputs are watched for late data, where."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from falcon_assets.planning.workloads import Workload


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
