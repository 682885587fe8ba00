"""The available instances of a feed, as a set that also knows their order."""

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
    """Instances of a feed; they are sorted once, when somebody asks for their order."""

    @classmethod
    def of(cls, instances: Collection[datetime]) -> InstanceSet:
        """Those instances; the same object where they are such a set."""
        return instances if isinstance(instances, InstanceSet) else cls(instances)

    @cached_property
    def ordered(self) -> list[datetime]:
        """All of them, oldest first."""
        return sorted(self)

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Those from ``first`` to ``last``, newest first."""
        return map(self.ordered.__getitem__, reversed(self._between(first, last)))

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The same, oldest first."""
        return map(self.ordered.__getitem__, self._between(first, last))

    def _between(self, first: datetime, last: datetime) -> range:
        return range(bisect_left(self.ordered, first), bisect_right(self.ordered, last))


@runtime_checkable
class Ordered(Protocol):
    """The available instances of a feed, as what finds the next of them without asking for each that may be."""

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Those from ``first`` to ``last``, both included, newest first; found as they are asked for."""

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The same, oldest first."""


Available: TypeAlias = "Ordered | Collection[datetime] | Callable[[datetime], bool]"
"""The available instances of a feed, or what says whether an instance is."""


def input_instances(declared: Input, feed_timeline: Timeline, nominal: datetime, timezone: str) -> list[datetime]:
    """The existing feed instances of a window of times, oldest first; empty where ``start`` resolves after ``end``.

    Raises:
        ExpressionError: the window is one of ``latest`` or ``future``, or lies beyond the years 1 to 9999.
    """
    start = evaluate_time(declared.start.call, nominal, timezone)
    end = evaluate_time(declared.end.call, nominal, timezone)
    if start > end:
        return []
    first = max(feed_timeline.index_at_or_before(start), 0)
    last = min(feed_timeline.index_at_or_before(end), feed_timeline.count - 1)
    return list(dict.fromkeys(map(feed_timeline.instance, range(first, last + 1))))


def widest(declared: Input) -> Input | None:
    """A window of times that covers whatever ``declared`` may read, itself where it is one; None: anything may be read.

    A window from a time to ``latest(n)`` ends at the nominal time at the latest.
    """
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
    available one after that; only the first ``limit`` existing instances are asked for. A window has the available
    ones between its ends; but one that starts at a time holds every existing instance from there on, available or
    not, and looks back for its end no further than there.

    Returns:
        None where not enough instances are available (yet); empty where ``start`` lies after ``end``, or where the
        feed has no instance from the time that it starts at on.

    Raises:
        ExpressionError: the window is one of times, or starts beyond the years 1 to 9999.
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
    """The feed instance that the process instance ``nominal`` writes; None outside the feed's validity.

    Raises:
        ExpressionError: the instance lies beyond the years 1 to 9999.
    """
    index = feed_timeline.index_at_or_before(evaluate_time(declared.instance.call, nominal, timezone))
    return feed_timeline.instance(index) if 0 <= index < feed_timeline.count else None


def nominal_of_output(
    declared: Output, process_timeline: Timeline, feed_timeline: Timeline, timezone: str, instance: datetime
) -> list[datetime]:
    """The process instances that write the feed instance ``instance``, oldest first: the inverse of the output.

    Only process instances are tried from which the expression can name ``instance`` at all.
    """
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
    """The available instances among some, in their order."""
    if isinstance(available, Ordered):
        if not indexes:
            return iter(())
        ends = timeline.instance(indexes[0]), timeline.instance(indexes[-1])
        found = available.forwards(*ends) if indexes.step > 0 else available.backwards(*reversed(ends))
        return filter(timeline.contains, found)
    is_available = available if callable(available) else available.__contains__
    return filter(is_available, map(timeline.instance, indexes))


class ReaderSpan(NamedTuple):
    """The nominal times whose windows may have a feed instance."""

    first: datetime
    last: datetime
    """Included; before ``first``: there is none."""
    is_exact: bool
    """Whether every instance of the process in the span reads it."""


def reader_span(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> ReaderSpan:
    """Between which process instances those are whose window of ``declared`` has the feed instance.

    It costs the same for any validity. ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
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
    """The process instances, oldest first, whose window of ``declared`` has the feed instance.

    ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
    span = reader_span(declared, process, feed, timezone, instance)
    nominals = process.between(span.first, span.last)
    if span.is_exact:
        return nominals
    return [one for one in nominals if instance in input_instances(declared, feed, one, timezone)]


def _fixed_index(call: Call, process: Timeline, feed: Timeline, timezone: str) -> int | None:
    """The feed instance that an expression means at every nominal time; None where it depends on that."""
    if any(one.name != "dateOffset" for one in call.calls()):
        return None
    return feed.index_at_or_before(evaluate_time(call, process.start, timezone))


def _clip(moment: datetime, offset: timedelta, timeline: Timeline) -> datetime:
    """``moment + offset``, moved into the timeline where it would lie outside it (or outside the calendar)."""
    try:
        return min(max(moment + offset, timeline.start), timeline.end)
    except OverflowError:
        return timeline.end if offset > timedelta() else timeline.start
