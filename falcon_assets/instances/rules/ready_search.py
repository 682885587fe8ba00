"""Searches long backlogs for instances to which an input is complete, from the available data instead of one by one.

The instances of a feed lie on a line of whole numbers. Outside its validity nothing is waited for, so what is there, or
need not be, are *stretches* of that line between missing instances; a window is complete where it lies in one of them.
Stretches are few where little has landed, and where all has.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from falcon_assets.errors import ExpressionError
from falcon_assets.model.process import Input
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import InstanceSet, latest_instances
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import window_offsets

_CHUNK = 512
_KEPT_CHUNKS = 128
_BEYOND = (-(1 << 62), 1 << 62)


@dataclass(frozen=True)
class ReadySearch:
    """Keep it: windows are cached."""

    declared: Input
    timezone: str
    nominal: Timeline
    feed: Timeline
    _windows: dict[int, tuple[array[int], array[int]]] = field(default_factory=dict, init=False)

    def among(self, spans: Sequence[range], available: InstanceSet) -> list[range]:
        """Filters by one input; indexes in rising order."""
        if not spans:
            return []
        if self.declared.is_of_times:
            if self._offsets is not None:
                return intersection(spans, self._complete(self._offsets, available))
            return _only(spans, self._complete_window(available))
        if self.declared.start.call.name == "latest":
            return intersection(spans, self._since_enough(available))
        return _only(spans, lambda k: self._latest(self.nominal.instance(k), available))

    @cached_property
    def asks_each(self) -> bool:
        """Whether each instance must be tested."""
        return self._offsets is None if self.declared.is_of_times else self.declared.start.call.name != "latest"

    @cached_property
    def _offsets(self) -> tuple[int, int] | None:
        return window_offsets(self.nominal, self.feed, self.declared.start.call, self.declared.end.call)

    def _complete(self, offsets: tuple[int, int], available: InstanceSet) -> Iterator[range]:
        """For windows that are whole steps of the workload; see :func:`window_offsets`."""
        everything = range(self.nominal.count)
        for after, before in self._stretches(available):
            first, stop = everything.start, everything.stop
            if after is not None:
                first = max(first, self._at_or_before(after) + 1 - offsets[0])
            if before is not None:
                stop = min(stop, self._at_or_before(before) - offsets[1])
            if first < stop:
                yield range(first, stop)

    def _at_or_before(self, feed_index: int) -> int:
        return self.nominal.index_at_or_before(self.feed.instance(feed_index))

    def _complete_window(self, available: InstanceSet) -> Callable[[int], bool]:
        stretches = list(self._stretches(available))
        missing = [after for after, _ in stretches if after is not None]

        def is_complete(index: int) -> bool:
            first, last = self._window(index)
            before = stretches[bisect_left(missing, first)][1]
            return first > last or before is None or last < before

        return is_complete

    def _window(self, index: int) -> tuple[int, int]:
        """Cached in chunks: they never change, and calendars take time."""
        chunk, offset = divmod(index, _CHUNK)
        if chunk not in self._windows:
            if len(self._windows) >= _KEPT_CHUNKS:
                self._windows.clear()
            following = range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, self.nominal.count))
            ends = [self._ends(self.nominal.instance(k)) for k in following]
            self._windows[chunk] = array("q", [one[0] for one in ends]), array("q", [one[1] for one in ends])
        firsts, lasts = self._windows[chunk]
        return firsts[offset], lasts[offset]

    def _ends(self, nominal: datetime) -> tuple[int, int]:
        try:
            start = evaluate_time(self.declared.start.call, nominal, self.timezone)
            end = evaluate_time(self.declared.end.call, nominal, self.timezone)
        except ExpressionError:
            return _BEYOND  # said where the instance is decided for itself
        return (0, -1) if start > end else (self.feed.index_at_or_before(start), self.feed.index_at_or_before(end))

    def _since_enough(self, available: InstanceSet) -> list[range]:
        calls = self.declared.start.call, self.declared.end.call
        first, last = (number for call in calls for number in call.args if isinstance(number, int))
        if first > last:
            return [range(self.nominal.count)]
        there = [one for one in available.ordered if self.feed.contains(one)]
        return [self.nominal.indexes(there[-first], self.nominal.end)] if len(there) > -first else []

    def _latest(self, nominal: datetime, available: InstanceSet) -> bool:
        window = latest_instances(self.declared, self.feed, nominal, available, self.timezone)
        return window is not None and available.issuperset(window)

    def _stretches(self, available: InstanceSet) -> Iterator[tuple[int | None, int | None]]:
        """As the missing instances before and after; None: no end."""
        after, expected = None, 0
        for index in chain(self._indexes(available), [self.feed.count]):
            if index > expected:
                yield after, expected
                after = index - 1
            expected = max(expected, index + 1)
        yield after, None

    def _indexes(self, available: InstanceSet) -> Iterator[int]:
        for instance in available.ordered:
            index = self.feed.index_at_or_before(instance)
            if not 0 <= index < self.feed.count or self.feed.instance(index) != instance:
                continue
            # A day that a zone left out makes two neighbours one: see Timeline.
            if index and not self.feed.frequency.is_absolute and self.feed.instance(index - 1) == instance:
                yield index - 1
            yield index


def intersection(spans: Iterable[range], others: Iterable[range]) -> list[range]:
    found, following = [], iter(others)
    other = next(following, None)
    for span in spans:
        while other is not None and other.start < span.stop:
            first, stop = max(span.start, other.start), min(span.stop, other.stop)
            if first < stop:
                found.append(range(first, stop))
            if other.stop > span.stop:
                break
            other = next(following, None)
    return found


def _only(spans: Iterable[range], is_wanted: Callable[[int], bool]) -> list[range]:
    found: list[range] = []
    for index in chain.from_iterable(spans):
        if is_wanted(index):
            if found and found[-1].stop == index:
                found[-1] = range(found[-1].start, index + 1)
            else:
                found.append(range(index, index + 1))
    return found
