"""Windows of inputs and outputs: at least one must meet the feed's validity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from falcon_assets.catalog.checks.time.feed_windows import FeedWindows
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.expression import Call, InstanceExpression
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.time.timeline import Timeline, feed_timeline, process_timeline

_LARGEST = 1_000_000
"""Each of them is a path that is checked, recorded and read."""


def check_windows(definitions: Definitions) -> Iterator[Problem]:
    """Windows that can never hold an instance of their feed, on each cluster of the process."""
    for process in definitions.processes.values():
        for window in _windows(process):
            for entry in process.entity.clusters:
                message = _problem(definitions, process.entity, window, entry.name)
                if message is not None:
                    yield process.problem(window.path, f"{window.subject} {message}")


@dataclass(frozen=True)
class _DeclaredWindow:
    """An input, or an output as a window of one instance."""

    path: KeyPath
    subject: str
    feed: str
    start: InstanceExpression
    end: InstanceExpression


def _windows(process: Declared[Process]) -> Iterator[_DeclaredWindow]:
    for index, one in enumerate(process.entity.inputs):
        yield _DeclaredWindow(("inputs", index, "start"), f"input {one.name!r}", one.feed, one.start, one.end)
    for index, output in enumerate(process.entity.outputs):
        path = ("outputs", index, "instance")
        yield _DeclaredWindow(path, f"output {output.name!r}", output.feed, output.instance, output.instance)


def _problem(definitions: Definitions, process: Process, window: _DeclaredWindow, cluster: str) -> str | None:
    feed = definitions.feeds.get(window.feed)
    if feed is None or feed.entity.on(cluster) is None or cluster not in definitions.clusters:
        return None
    timeline, instances = process_timeline(process, cluster), feed_timeline(feed.entity, cluster)
    validity = f"{format_instant(instances.start)} to {format_instant(instances.end)}"
    never = f"never falls inside the validity of feed {window.feed!r} on cluster {cluster!r}, {validity}: it"
    inverted = f"is always empty: its start {window.start} lies after its end {window.end}"
    if window.start.call.kind is Kind.INSTANCES:
        missed = _never_found(window.start.call, timeline, instances)
        return inverted if _number(window.start) > _number(window.end) else f"{never} {missed}" if missed else None
    end = window.end.call if window.end.call.kind is Kind.TIME else Call("instanceTime")  # the last that latest can be
    windows = FeedWindows(window.start.call, end, timeline, instances, process.timezone)
    try:
        bounds = windows.bounds()
        if min(windows.size(), instances.count) > _LARGEST:
            return f"holds {windows.size()} instances of feed {window.feed!r}: {_LARGEST} at most"
        if windows.has_instances(0) or windows.has_instances(timeline.count - 1):
            return None
        met = windows.candidates()
        return f"{never} reaches from {bounds}" if not met else inverted if windows.is_always_inverted(met) else None
    except ExpressionError as error:
        return f"has no value: {error}"


def _never_found(call: Call, timeline: Timeline, instances: Timeline) -> str | None:
    """Why ``latest`` or ``future`` finds nothing at any nominal time; None where it may find something."""
    if call.name == "latest":
        last = timeline.last or timeline.start
        return None if last >= instances.start else f"looks back from {format_instant(last)} at the latest"
    beyond = instances.last is None or timeline.start > instances.last
    return f"looks ahead from {format_instant(timeline.start)} at the earliest" if beyond else None


def _number(expression: InstanceExpression) -> int:
    return next(arg for arg in expression.call.args if isinstance(arg, int))
