"""Snapshots that a process writes: an earlier instance does not replace the output of a later one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class NewerIsWritten(Reason):
    feed: str
    newest: datetime

    def __str__(self) -> str:
        newest = format_instant(self.newest)
        return f"snapshot {self.feed} has its instance {newest} already, which an earlier one does not replace"


def replaced_by(workload: Workload, nominal: datetime, newest: Mapping[str, datetime]) -> NewerIsWritten | None:
    """``newest`` is the newest written instance by snapshot feed; raises ExpressionError beyond the years 1 to 9999."""
    for output in workload.snapshots:
        there = newest.get(output.feed)
        line = feed_timeline(workload.feeds[output.feed], workload.cluster)
        if there and (own := output_instance(output, line, nominal, workload.timezone)) and own < there:
            return NewerIsWritten(output.feed, there)
    return None
