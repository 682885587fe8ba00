"""Which inputs are watched for late data, where."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from falcon_assets.catalog.store import EntityStore
from falcon_assets.model.process import Process


def late_inputs(store: EntityStore, processes: Iterable[Process]) -> dict[tuple[str, str, str], timedelta]:
    """(cluster, process, input) -> the cut-off of the feed, of every late input on the clusters of this store."""
    found = {}
    for process in processes:
        feeds = {declared.name: store.feed(declared.feed) for declared in process.inputs}
        for late in process.late_process.inputs if process.late_process else ():
            arrival = feeds[late.input].late_arrival
            if arrival is not None:
                for cluster, _ in store.process_clusters(process):
                    found[cluster.name, process.name, late.input] = arrival.cut_off.length
    return found
