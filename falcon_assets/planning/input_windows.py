"""Resolves the windows of inputs to feed instances, and outputs to the instance they write, in both directions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call, InstanceExpression
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.process import Input, Output
from falcon_assets.planning.expressions import evaluate_time, expression_bounds
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import window_offsets


class InstanceSet(frozenset[datetime]):
    @classmethod
    def of(cls, instances: Collection[datetime]) -> InstanceSet:
        return instances if isinstance(instances, InstanceSet) else cls(instances)

    @cached_property
    def ordered(self) -> list[datetime]:
        return sorted(self)

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return map(self.ordered.__getitem__, reversed(self._between(first, last)))

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return map(self.ordered.__getitem__, self._between(first, last))

    def _between(self, first: datetime, last: datetime) -> range:
        return range(bisect_left(self.ordered, first), bisect_right(self.ordered, last))


@runtime_checkable
class Ordered(Protocol):
    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Both ends included, newest first; lazy."""

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]: ...


Available: TypeAlias = "Ordered | Collection[datetime] | Callable[[datetime], bool]"


def input_instances(declared: Input, feed_timeline: Timeline, nominal: datetime, timezone: str) -> list[datetime]:
    """Raises ExpressionError for windows of ``latest`` or ``future``, and beyond the years 1 to 9999."""
    start = evaluate_time(declared.start.call, nominal, timezone)
    end = evaluate_time(declared.end.call, nominal, timezone)
    if start > end:
        return []
    first = max(feed_timeline.index_at_or_before(start), 0)
    last = min(feed_timeline.index_at_or_before(end), feed_timeline.count - 1)
    return list(dict.fromkeys(map(feed_timeline.instance, range(first, last + 1))))


def widest(declared: Input) -> Input | None:
    """Covers all that ``declared`` may read (``latest`` ends at the nominal time); None: no window does."""
    if declared.is_of_times:
        return declared
    if declared.start.call.kind is Kind.TIME:
        return declared.model_copy(update={"end": InstanceExpression.parse("instanceTime()")})
    return None


def latest_instances(
    declared: Input, timeline: Timeline, nominal: datetime, available: Available, timezone: str
) -> list[datetime] | None:
    """The feed instances of a window that ``latest(n)`` or ``future(n,limit)`` ends, oldest first.

    ``latest(0)`` is the most recent available instance at or before ``nominal``, ``latest(-1)`` the available one
    before that. ``future(0,limit)`` is the first available instance at or after ``nominal``, ``future(1,limit)`` the
    available one after that, both among the first ``limit`` existing instances. A window has the available ones between
    its ends; one that starts at a time has every existing instance from there on, available or not, and looks back for
    its end no further than that. None where not enough instances are available (yet); empty where ``start`` lies after
    ``end``, or where the feed has no instance from the start on. Raises ExpressionError for windows of times.
    """
    if declared.start.call.kind is Kind.TIME:
        return _up_to_latest(declared, timeline, nominal, available, timezone)
    start, end = _numbers(declared.start.call), _numbers(declared.end.call)
    if start[0] > end[0]:
        return []
    if declared.start.call.name == "latest":
        before = timeline.indexes(timeline.start, nominal)
        found = list(islice(_those(timeline, before[::-1], available), 1 - start[0]))
        return found[::-1][: end[0] - start[0] + 1] if len(found) > -start[0] else None
    ahead = timeline.indexes(nominal, timeline.end)
    # Each end has its own limit: both must find their instance within it.
    ends = [list(islice(_those(timeline, ahead[:limit], available), 1 + n)) for n, limit in (start, end)]
    return ends[1][start[0] :] if len(ends[0]) > start[0] and len(ends[1]) > end[0] else None


def output_instance(declared: Output, feed_timeline: Timeline, nominal: datetime, timezone: str) -> datetime | None:
    """None outside the feed's validity; raises ExpressionError beyond the years 1 to 9999."""
    index = feed_timeline.index_at_or_before(evaluate_time(declared.instance.call, nominal, timezone))
    return feed_timeline.instance(index) if 0 <= index < feed_timeline.count else None


def nominal_of_output(
    declared: Output, process_timeline: Timeline, feed_timeline: Timeline, timezone: str, instance: datetime
) -> list[datetime]:
    if not feed_timeline.contains(instance):
        return []
    least, most = expression_bounds(declared.instance.call)
    try:
        following = feed_timeline.instance(feed_timeline.index_at_or_before(instance) + 1)
        first, last = instance - most, following - least
    except OverflowError:
        first, last = process_timeline.start, process_timeline.end
    return [
        nominal
        for nominal in process_timeline.between(first, last)
        if output_instance(declared, feed_timeline, nominal, timezone) == instance
    ]


def _up_to_latest(
    declared: Input, timeline: Timeline, nominal: datetime, available: Available, timezone: str
) -> list[datetime] | None:
    (back,) = _numbers(declared.end.call)
    start = evaluate_time(declared.start.call, nominal, timezone)
    first = max(timeline.index_at_or_before(start), 0)
    last = min(timeline.index_at_or_before(nominal), timeline.count - 1)
    if start > nominal or first > last:
        return []
    found = list(islice(_those(timeline, range(last, first - 1, -1), available), 1 - back))
    if len(found) <= -back:
        return None
    return list(takewhile(lambda one: one <= found[-1], map(timeline.instance, range(first, last + 1))))


def _numbers(call: Call) -> tuple[int, ...]:
    if call.name not in ("latest", "future"):
        raise ExpressionError(f"{call.name}(...) is a time: it does not depend on what is available")
    return tuple(arg for arg in call.args if isinstance(arg, int))


def _those(timeline: Timeline, indexes: range, available: Available) -> Iterator[datetime]:
    if isinstance(available, Ordered):
        if not indexes:
            return iter(())
        ends = timeline.instance(indexes[0]), timeline.instance(indexes[-1])
        found = available.forwards(*ends) if indexes.step > 0 else available.backwards(*reversed(ends))
        return filter(timeline.contains, found)
    is_available = available if callable(available) else available.__contains__
    return filter(is_available, map(timeline.instance, indexes))


class ReaderSpan(NamedTuple):
    first: datetime
    last: datetime
    """Included; before ``first``: there is none."""
    is_exact: bool


def reader_span(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> ReaderSpan:
    """The nominal times that may read the instance, at a cost independent of the validity; for windows of times."""
    start, end = declared.start.call, declared.end.call
    index = feed.index_at_or_before(instance)
    offsets = window_offsets(process, feed, start, end)
    if offsets is not None:
        at = process.index_at_or_before(instance)
        indexes = range(max(at - offsets[1], process.first), min(at - offsets[0], process.count - 1) + 1)
        if not indexes:
            return ReaderSpan(process.end, process.start, True)
        return ReaderSpan(process.instance(indexes[0]), process.instance(indexes[-1]), True)
    # T reads the instance only if start(T) lies before the feed's next instance, and end(T) not before the instance.
    fixed_start, fixed_end = (_fixed_index(call, process, feed, timezone) for call in (start, end))
    if (fixed_start is not None and fixed_start > index) or (fixed_end is not None and fixed_end < index):
        return ReaderSpan(process.end, process.start, True)
    first = last = None
    if fixed_end is None:
        first = _clip(instance, -expression_bounds(end)[1], process)
    if fixed_start is None:
        following = min(index + 1, feed.count)
        upper = feed.instance(following) if following < feed.count else feed.end
        last = _clip(upper, -expression_bounds(start)[0], process)
    return ReaderSpan(first or process.start, last or process.end, False)


def consumers(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> list[datetime]:
    """Oldest first; for windows of times only."""
    span = reader_span(declared, process, feed, timezone, instance)
    nominals = process.between(span.first, span.last)
    if span.is_exact:
        return nominals
    return [one for one in nominals if instance in input_instances(declared, feed, one, timezone)]


def _fixed_index(call: Call, process: Timeline, feed: Timeline, timezone: str) -> int | None:
    if any(one.name != "dateOffset" for one in call.calls()):
        return None
    return feed.index_at_or_before(evaluate_time(call, process.start, timezone))


def _clip(moment: datetime, offset: timedelta, timeline: Timeline) -> datetime:
    try:
        return min(max(moment + offset, timeline.start), timeline.end)
    except OverflowError:
        return timeline.end if offset > timedelta() else timeline.start
