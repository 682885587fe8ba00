"""Finds out whether a process instance may wait for itself, over any number of processes, feeds and copies.

Each step maps an instance to the *latest* instance before it that it may need. That never falls from one instance to
the next, so a way leads back to earlier instances of the process for ever where the latest of them do. Where everything
steps together that is one number; else instances are checked, as few as decide it.
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
"""How many instances are checked, oldest first: 13 years of days show everything that a calendar can do."""


@dataclass(frozen=True)
class Read:
    process: Timeline
    feed: Timeline
    start: Call
    end: Call
    timezone: str

    @property
    def timeline(self) -> Timeline:
        return self.feed

    def shift(self) -> int | None:
        """Target index minus source index, where that never changes."""
        if self.end.kind is not Kind.TIME:
            return None
        return index_shift(self.process, self.feed, self.end, self.timezone)

    def back(self, nominal: datetime) -> datetime | None:
        """Does not check whether the window starts after it."""
        if self.end.kind is Kind.TIME:
            return self.feed.at_or_before(evaluate_time(self.end, nominal, self.timezone))
        if self.end.name == "latest":
            return self.feed.at_or_before(nominal)
        ahead = self.feed.indexes(nominal, self.feed.end)[: _last_number(self.end)]
        return self.feed.instance(ahead[-1]) if ahead else None

    def reads(self, nominal: datetime, until: datetime) -> bool:
        last = self.feed.index_at_or_before(until)
        if last < 0 or self.start.kind is not Kind.TIME:
            return last >= 0
        start = evaluate_time(self.start, nominal, self.timezone)
        if self.end.kind is Kind.TIME and start > evaluate_time(self.end, nominal, self.timezone):
            return False
        return self.feed.index_at_or_before(start) <= last


@dataclass(frozen=True)
class Write:
    feed: Timeline
    process: Timeline
    instance: Call
    timezone: str

    @property
    def timeline(self) -> Timeline:
        return self.process

    def shift(self) -> int | None:
        written = index_shift(self.process, self.feed, self.instance, self.timezone)
        return None if written is None else -written

    def writes(self, nominal: datetime) -> datetime:
        """The time of the feed instance that a process instance writes, or a little later."""
        return evaluate_time(self.instance, nominal, self.timezone)

    def back(self, instance: datetime) -> datetime | None:
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
        return self.source

    def shift(self) -> int | None:
        index = self.source.index_at_or_before(self.target.start)
        if self.target.frequency.unit is TimeUnit.MONTHS or self.source.instance(index) != self.target.start:
            return None
        same = self.target.timezone == self.source.timezone and self.target.frequency == self.source.frequency
        return index if same else None

    def back(self, instance: datetime) -> datetime | None:
        return self.source.at_or_before(instance)


@dataclass(frozen=True)
class AnyOf:
    reads: tuple[Read, ...]

    @property
    def timeline(self) -> Timeline:
        return self.reads[0].timeline

    def shift(self) -> int | None:
        shifts = [shift for one in self.reads if (shift := one.shift()) is not None]
        return max(shifts) if len(shifts) == len(self.reads) else None

    def back(self, nominal: datetime) -> datetime | None:
        return max((found for one in self.reads if (found := one.back(nominal)) is not None), default=None)


Step: TypeAlias = Read | AnyOf | Write | Copied
Way: TypeAlias = "tuple[Step, ...]"


@dataclass(frozen=True)
class SelfWait:
    nominal: datetime
    needs: datetime


@lru_cache(maxsize=4096)
def first_self_wait(way: Way) -> SelfWait | None:
    """Searches the way, whose both ends are the process, for the first instance that leads to itself or a later one."""
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
    moment: datetime | None = nominal
    try:
        for step in way:
            if moment is not None:
                moment = step.back(moment)
    except (ExpressionError, OverflowError):
        return None  # beyond the calendar
    return moment


def _reads(way: Sequence[Step], nominal: datetime) -> bool:
    """Whether the first window reads anything; if the process's own output is all it reads, anything of that."""
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
    """The first index that ``back`` maps to itself or beyond, and that ``counts``; relies on ``back`` never falling."""
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
