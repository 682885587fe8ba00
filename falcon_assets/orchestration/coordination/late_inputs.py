"""Which inputs are watched for late data, where."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


def late_inputs(
    feeds: Mapping[str, Feed], clusters: Collection[str], processes: Iterable[Process]
) -> dict[tuple[str, str, str], timedelta]:
    """(cluster, process, input) -> the cut-off of the feed, of every late input on those clusters."""
    found = {}
    for process in processes:
        read = {declared.name: feeds[declared.feed] for declared in process.inputs}
        for late in process.late_process.inputs if process.late_process else ():
            arrival = read[late.input].late_arrival
            if arrival is not None:
                here = (one.name for one in process.clusters if one.name in clusters)
                found.update({(name, process.name, late.input): arrival.cut_off.length for name in here})
    return found
