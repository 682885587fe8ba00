"""Whether an instance of a process may wait for itself, over any number of processes, feeds and copies between them.

Each of them says which of the instances before it is the *latest* that an instance may need. That never falls from one
instance to the next, so all of them together lead back to earlier instances of the process for ever where the latest of
them does. Where everything steps together that is one number; else instances are checked, as few as tell of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.expressions import evaluate_time, expression_bounds
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import index_shift

MOST_INSTANCES = 5_000
"""How many instances are checked, oldest first: in these 13 years of days a calendar has shown what it can do."""


@dataclass(frozen=True)
class Read:
    """An input: from an instance of the process to the latest feed instance that it may read."""

    process: Timeline
    feed: Timeline
    start: Call
    end: Call
    timezone: str

    @property
    def timeline(self) -> Timeline:
        """What it leads to."""
        return self.feed

    def shift(self) -> int | None:
        """Index that it leads to minus index that it starts from, where that never changes."""
        if self.end.kind is not Kind.TIME:
            return None
        return index_shift(self.process, self.feed, self.end, self.timezone)

    def back(self, nominal: datetime) -> datetime | None:
        """The latest feed instance; whether the window starts after it is not checked."""
        if self.end.kind is Kind.TIME:
            return self.feed.at_or_before(evaluate_time(self.end, nominal, self.timezone))
        if self.end.name == "latest":
            return self.feed.at_or_before(nominal)
        ahead = self.feed.indexes(nominal, self.feed.end)[: _last_number(self.end)]
        return self.feed.instance(ahead[-1]) if ahead else None

    def reads(self, nominal: datetime, until: datetime) -> bool:
        """Whether the window has anything at or before ``until``."""
        last = self.feed.index_at_or_before(until)
        if last < 0 or self.start.kind is not Kind.TIME:
            return last >= 0
        start = evaluate_time(self.start, nominal, self.timezone)
        if self.end.kind is Kind.TIME and start > evaluate_time(self.end, nominal, self.timezone):
            return False
        return self.feed.index_at_or_before(start) <= last


@dataclass(frozen=True)
class Write:
    """An output: from a feed instance to the latest instance of the process that writes it, or to another before it."""

    feed: Timeline
    process: Timeline
    instance: Call
    timezone: str

    @property
    def timeline(self) -> Timeline:
        """What it leads to."""
        return self.process

    def shift(self) -> int | None:
        """As for :class:`Read`."""
        written = index_shift(self.process, self.feed, self.instance, self.timezone)
        return None if written is None else -written

    def writes(self, nominal: datetime) -> datetime:
        """When the feed instance is that a process instance writes, or a little later."""
        return evaluate_time(self.instance, nominal, self.timezone)

    def back(self, instance: datetime) -> datetime | None:
        """The latest process instance."""
        following = self.feed.index_at_or_before(instance) + 1
        shift = self.shift()
        if shift is not None:
            index = min(following - 1 + shift, self.process.count - 1)
            return self.process.instance(index) if index >= 0 else None
        before = self.feed.instance(following)
        low, high = _where(self.process, self.instance, before)
        while low < high:
            middle = (low + high + 1) // 2
            if self.writes(self.process.instance(middle)) < before:
                low = middle
            else:
                high = middle - 1
        return self.process.instance(low) if low >= 0 else None


@dataclass(frozen=True)
class Copied:
    """A replication: from an instance on the target to the same instance on the source, or that before it."""

    target: Timeline
    source: Timeline

    @property
    def timeline(self) -> Timeline:
        """What it leads to."""
        return self.source

    def shift(self) -> int | None:
        """As for :class:`Read`."""
        index = self.source.index_at_or_before(self.target.start)
        if self.target.frequency.unit is TimeUnit.MONTHS or self.source.instance(index) != self.target.start:
            return None
        same = self.target.timezone == self.source.timezone and self.target.frequency == self.source.frequency
        return index if same else None

    def back(self, instance: datetime) -> datetime | None:
        """The instance on the source."""
        return self.source.at_or_before(instance)


@dataclass(frozen=True)
class AnyOf:
    """Several inputs of one feed."""

    reads: tuple[Read, ...]

    @property
    def timeline(self) -> Timeline:
        """What they lead to."""
        return self.reads[0].timeline

    def shift(self) -> int | None:
        """As for :class:`Read`."""
        shifts = [shift for one in self.reads if (shift := one.shift()) is not None]
        return max(shifts) if len(shifts) == len(self.reads) else None

    def back(self, nominal: datetime) -> datetime | None:
        """The latest feed instance of any of them."""
        return max((found for one in self.reads if (found := one.back(nominal)) is not None), default=None)


Step: TypeAlias = Read | AnyOf | Write | Copied
Way: TypeAlias = "tuple[Step, ...]"
"""From an input of a process back to that process."""


@dataclass(frozen=True)
class SelfWait:
    """The first instance that would wait for itself, or for one after it."""

    nominal: datetime
    needs: datetime


@lru_cache(maxsize=4096)
def first_self_wait(way: Way) -> SelfWait | None:
    """The first instance of the process at both ends of the way that it leads to itself or to a later instance."""
    shift = _shift_of(way)
    if shift is not None and shift < 0:
        return None
    process = way[-1].timeline

    def back(index: int) -> int:
        found = _follow(way, process.instance(index))
        return -1 if found is None else process.index_at_or_before(found)

    found = _first(process.count, back, lambda index: _reads(way, process.instance(index)))
    if found is None:
        return None
    nominal = process.instance(found)
    return SelfWait(nominal, _follow(way, nominal) or nominal)


def _shift_of(way: Sequence[Step]) -> int | None:
    shifts = []
    for step in way:
        try:
            shift = step.shift()
        except ExpressionError:
            return None
        if shift is None:
            return None
        shifts.append(shift)
    return sum(shifts)


def _follow(way: Sequence[Step], nominal: datetime) -> datetime | None:
    """Where the way leads to from that instance; None where it leads out of a validity."""
    moment: datetime | None = nominal
    try:
        for step in way:
            if moment is not None:
                moment = step.back(moment)
    except (ExpressionError, OverflowError):
        return None  # beyond the calendar
    return moment


def _reads(way: Sequence[Step], nominal: datetime) -> bool:
    """Whether the first window has anything, and of what the process writes itself where that is all."""
    read, following = way[0], way[1]
    try:
        until = read.back(nominal)
        if isinstance(following, Write) and until is not None:
            writer = following.back(until)
            until = None if writer is None else min(following.writes(writer), until)
        return until is not None and (not isinstance(read, Read) or read.reads(nominal, until))
    except (ExpressionError, OverflowError):
        return False


def _first(count: int, back: Callable[[int], int], counts: Callable[[int], bool]) -> int | None:
    """The first index that ``back`` leads to itself or beyond, and that ``counts``; what it leads to never falls."""
    spans, left = [(-1, count - 1)], MOST_INSTANCES
    known: tuple[int, int] | None = None
    while spans and left:
        low, high = spans.pop()
        if low == high:
            continue
        if known is None or known[0] != high:
            known, left = (high, back(high)), left - 1
        if known[1] <= low:
            continue  # whatever lies between them leads to before itself
        if high - low == 1:
            if counts(high):
                return high
            continue
        middle = (low + high) // 2
        spans += [(middle, high), (low, middle)]
    return None


def _where(process: Timeline, call: Call, before: datetime) -> tuple[int, int]:
    """Between which indexes the last process instance lies whose ``call`` is before that moment; -1: there is none."""
    least, most = expression_bounds(call)
    return _last_until(process, before - MICROSECOND, most), _last_until(process, before, least)


def _last_until(process: Timeline, moment: datetime, later_by: timedelta) -> int:
    try:
        index = process.index_at_or_before(moment - later_by)
    except OverflowError:
        index = -1 if later_by > timedelta() else process.count - 1
    return max(min(index, process.count - 1), -1)


def _last_number(call: Call) -> int:
    return [arg for arg in call.args if isinstance(arg, int)][-1]
