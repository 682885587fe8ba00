"""Checks of the windows of inputs and outputs over all nominal times, against the instances of their feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.expression import Call, InstanceExpression
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.workloads import written

_SAMPLES = 200
_DOOMSDAY = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class FeedWindows:
    """The windows of one input (or output) at all nominal times of its process.

    Both ends are monotonic in the nominal time, so the first or last window with a property is found by bisection.
    """

    start: Call
    end: Call
    process: Timeline
    feed: Timeline
    timezone: str

    def bounds(self) -> str:
        """Raises ExpressionError if the first start is beyond the years 1 to 9999."""
        first, last = self._starts(0), self._ends(self.process.count - 1)
        return f"{format_instant(first)} to {format_instant(last)}"

    def size(self) -> int:
        """Counts the feed instances, existing or not, in the first window; raises ExpressionError as above."""
        return self.feed.index_at_or_before(self._ends(0)) - self.feed.index_at_or_before(self._starts(0)) + 1

    def has_instances(self, k: int) -> bool:
        return self.is_ordered(k) and self.meets_first(k) and not self.is_past_last(k)

    def is_ordered(self, k: int) -> bool:
        return self._starts(k) <= self._ends(k)

    def meets_first(self, k: int) -> bool:
        return self._ends(k) >= self.feed.start

    def is_past_last(self, k: int) -> bool:
        """Whether the window starts after the feed's last instance, floored to the feed's grid as all times are."""
        start = self._starts(k)
        return start >= self.feed.end and self.feed.index_at_or_before(start) >= self.feed.count

    def is_always_inverted(self, among: range) -> bool:
        """Whether the window ends before it starts, at the first instances and at others spread evenly."""
        samples = (*among[:_SAMPLES], *among[:: len(among) // _SAMPLES + 1])
        return not any(map(self.is_ordered, samples))

    def candidates(self) -> range:
        """Returns the process instances whose window can meet the feed's validity, judged by its two ends."""
        everything = self.process.count
        return range(_first(everything, self.meets_first), _first(everything, self.is_past_last))

    def _starts(self, k: int) -> datetime:
        return self._value(self.start, k)

    def _ends(self, k: int) -> datetime:
        return self._value(self.end, k)

    def _value(self, call: Call, k: int) -> datetime:
        """Fails at the first instance only: later ones may leave the year 9999, as validities may be endless."""
        try:
            return evaluate_time(call, self.process.instance(k), self.timezone)
        except ExpressionError:
            if not k:
                raise
            return _DOOMSDAY


def _first(count: int, condition: Callable[[int], bool]) -> int:
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle + 1
    return low


def check_output_validity(definitions: Definitions) -> Iterator[Problem]:
    """Outputs that never exist together, and warnings where some instances of a process have none to write."""
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            if entry.name in definitions.clusters:
                yield from _on(definitions, process, entry.name)


def _on(definitions: Definitions, process: Declared[Process], cluster: str) -> Iterator[Problem]:
    nominal = process_timeline(process.entity, cluster)
    spans: dict[int, range] = {}
    for index, output in enumerate(process.entity.outputs):
        feed = definitions.feeds.get(output.feed)
        if feed is None or feed.entity.on(cluster) is None:
            return  # said elsewhere
        spans[index] = written(nominal, feed_timeline(feed.entity, cluster), output, process.entity.timezone)
    if not all(spans.values()):
        return  # the check of windows says so
    if spans and max(span.start for span in spans.values()) >= min(span.stop for span in spans.values()):
        lives = "; ".join(f"{process.entity.outputs[k].name}: {_life(nominal, span)}" for k, span in spans.items())
        yield process.problem(("outputs",), f"never exist together on cluster {cluster!r}, so nothing runs: {lives}")
        return
    for index, span in spans.items():
        missing = [f"before {format_instant(nominal.instance(span.start))}"] if span.start else []
        missing += [f"from {format_instant(nominal.instance(span.stop))} on"] if span.stop < nominal.count else []
        if missing:
            output = process.entity.outputs[index]
            feed_there = feed_timeline(definitions.feeds[output.feed].entity, cluster)
            validity = f"{format_instant(feed_there.start)} to {format_instant(feed_there.end)}"
            yield process.warning(
                ("outputs", index, "instance"),
                f"instances {' and '.join(missing)} do not run on cluster {cluster!r}: output {output.name!r} lies "
                f"outside the validity of feed {output.feed!r} there, {validity}",
            )


def _life(nominal: Timeline, span: range) -> str:
    return f"{format_instant(nominal.instance(span.start))} to {format_instant(nominal.instance(span.stop - 1))}"


_LARGEST = 1_000_000
"""Limit of instances in a window: each is a path that is checked, recorded and read."""


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
    """Returns why ``latest`` or ``future`` finds nothing at any nominal time; None: it may find something."""
    if call.name == "latest":
        last = timeline.last or timeline.start
        return None if last >= instances.start else f"looks back from {format_instant(last)} at the latest"
    beyond = instances.last is None or timeline.start > instances.last
    return f"looks ahead from {format_instant(timeline.start)} at the earliest" if beyond else None


def _number(expression: InstanceExpression) -> int:
    return next(arg for arg in expression.call.args if isinstance(arg, int))
