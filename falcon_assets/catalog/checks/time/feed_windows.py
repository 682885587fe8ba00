"""The windows of an input or output over all nominal times of its process, against the instances of its feed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.evaluate import evaluate_time

_SAMPLES = 200
_DOOMSDAY = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class FeedWindows:
    """The windows of one input (or output) at all nominal times of its process.

    Both ends only grow with the nominal time, so what is first or last can be found by bisection.
    """

    start: Call
    end: Call
    process: Timeline
    feed: Timeline
    timezone: str

    def bounds(self) -> str:
        """The first start and the last end.

        Raises:
            ExpressionError: the first start is beyond the years 1 to 9999.
        """
        first, last = self._starts(0), self._ends(self.process.count - 1)
        return f"{format_instant(first)} to {format_instant(last)}"

    def size(self) -> int:
        """How many feed instances the window at the first process instance has, existing or not.

        Raises:
            ExpressionError: one of its ends is beyond the years 1 to 9999.
        """
        return self.feed.index_at_or_before(self._ends(0)) - self.feed.index_at_or_before(self._starts(0)) + 1

    def has_instances(self, k: int) -> bool:
        """Whether the window at process instance ``k`` has an existing feed instance."""
        return self.is_ordered(k) and self.meets_first(k) and not self.is_past_last(k)

    def is_ordered(self, k: int) -> bool:
        """Whether the window does not end before it starts."""
        return self._starts(k) <= self._ends(k)

    def meets_first(self, k: int) -> bool:
        """Whether the window ends at or after the feed's first instance."""
        return self._ends(k) >= self.feed.start

    def is_past_last(self, k: int) -> bool:
        """Whether the window starts after the feed's last instance, floored to the feed's grid as all times are."""
        start = self._starts(k)
        return start >= self.feed.end and self.feed.index_at_or_before(start) >= self.feed.count

    def is_always_inverted(self, among: range) -> bool:
        """Whether the window ends before it starts at all process instances that are sampled.

        Samples are the first instances and some that are spread evenly: a pattern of the calendar shows within them.
        """
        samples = (*among[:_SAMPLES], *among[:: len(among) // _SAMPLES + 1])
        return not any(map(self.is_ordered, samples))

    def candidates(self) -> range:
        """The process instances whose window meets the feed's validity, as far as its two ends say."""
        everything = self.process.count
        return range(_first(everything, self.meets_first), _first(everything, self.is_past_last))

    def _starts(self, k: int) -> datetime:
        return self._value(self.start, k)

    def _ends(self, k: int) -> datetime:
        return self._value(self.end, k)

    def _value(self, call: Call, k: int) -> datetime:
        """What has a value at first has one until it leaves the year 9999: a validity may go on for ever."""
        try:
            return evaluate_time(call, self.process.instance(k), self.timezone)
        except ExpressionError:
            if not k:
                raise
            return _DOOMSDAY


def _first(count: int, condition: Callable[[int], bool]) -> int:
    """The first of ``0 .. count-1`` from which on the condition is true; ``count`` where it never does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle + 1
    return low
