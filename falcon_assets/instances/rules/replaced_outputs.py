"""Snapshots that a process writes: an earlier instance does not replace the output of a later one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.reasons import NewerIsWritten
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


def replaced_by(workload: Workload, nominal: datetime, newest: Mapping[str, datetime]) -> NewerIsWritten | None:
    """``newest`` is the newest written instance by snapshot feed; raises ExpressionError beyond the years 1 to 9999."""
    for output in workload.snapshots:
        there = newest.get(output.feed)
        line = feed_timeline(workload.feeds[output.feed], workload.cluster)
        if there and (own := output_instance(output, line, nominal, workload.timezone)) and own < there:
            return NewerIsWritten(output.feed, there)
    return None
