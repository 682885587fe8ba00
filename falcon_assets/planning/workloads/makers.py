"""Which instances of processes and replications bring an instance of a feed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from falcon_assets.planning.time.timeline import feed_timeline
from falcon_assets.planning.windows.input_windows import nominal_of_output
from falcon_assets.planning.workloads.workload import Workload


def makers(
    workloads: Iterable[Workload], feed: str, cluster: str, instance: datetime
) -> list[tuple[Workload, datetime]]:
    """Those of the workloads, with the nominal times, that are to bring that instance of the feed on the cluster.

    Raises:
        UnknownEntityError: the feed is not on the cluster.
        ExpressionError: an output lies beyond the years 1 to 9999.
    """
    found: dict[tuple[Workload, datetime], None] = {}
    for workload in workloads:
        line = feed_timeline(workload.feeds[feed], cluster)
        for output in workload.outputs:
            if output.feed == feed:
                nominals = nominal_of_output(output, workload.timeline, line, workload.timezone, instance)
                found.update(dict.fromkeys((workload, nominal) for nominal in nominals))
    return list(found)
