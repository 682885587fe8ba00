"""Retention and lateness: nothing may be evicted while late data is still awaited."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.process import Process


def check_retention(definitions: Definitions) -> Iterator[Problem]:
    """Limits that are not longer than the late-arrival cut-off, and late inputs whose feed has no cut-off."""
    for feed in definitions.feeds.values():
        late = feed.entity.late_arrival
        for index, entry in enumerate(feed.entity.clusters):
            limit = entry.retention.limit if entry.retention else None
            if limit is not None and late is not None and limit.length <= late.cut_off.length:
                message = f"{limit} must be longer than late_arrival.cut_off, which is {late.cut_off}"
                yield feed.problem(("clusters", index, "retention", "limit"), message)
    for process in definitions.processes.values():
        yield from _inputs_that_are_never_late(definitions, process)


def _inputs_that_are_never_late(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    feeds = {declared.name: declared.feed for declared in process.entity.inputs}
    late = process.entity.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        feed = definitions.feeds.get(feeds.get(entry.input, ""))
        if feed is not None and feed.entity.late_arrival is None:
            message = (
                f"feed {feed.entity.name!r} declares no late_arrival.cut_off, so input {entry.input!r} is never late"
            )
            yield process.problem(("late_process", "inputs", index, "input"), message)
