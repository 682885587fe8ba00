"""What each instance replaces as a whole: an earlier instance does not replace what a later one has written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.reasons import NewerIsDelivered, NewerIsWritten
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.transfers import ExportWorkload
from falcon_assets.planning.workloads import Workload


def replaced_by(
    workload: Workload, nominal: datetime, newest: Mapping[str, datetime]
) -> NewerIsWritten | NewerIsDelivered | None:
    """``newest`` is from :func:`.newest_written`; raises ExpressionError beyond the years 1 to 9999."""
    if isinstance(workload, ExportWorkload):
        delivered = newest.get(workload.name) if workload.replaces_earlier else None
        return NewerIsDelivered(workload.target, delivered) if delivered and nominal < delivered else None
    for output in workload.snapshots:
        there = newest.get(output.feed)
        line = feed_timeline(workload.feeds[output.feed], workload.cluster)
        if there and (own := output_instance(output, line, nominal, workload.timezone)) and own < there:
            return NewerIsWritten(output.feed, there)
    return None
