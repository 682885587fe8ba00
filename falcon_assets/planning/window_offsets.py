"""Two grids of equal steps on one line: when a window of one is a span of whole steps of the other."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from math import gcd

from falcon_assets.model.expression import Call
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.wall_clock import from_wall, start_of_day, whole_months_between
from falcon_assets.planning.expressions import Shift, absolute_shift, evaluate_time, wall_shift
from falcon_assets.planning.timeline import OffsetChange, Timeline, offset_changes

_SECOND = timedelta(seconds=1)


def offsets_on_a_line(
    distance: timedelta, step: timedelta, feed_step: timedelta, start: timedelta, end: timedelta
) -> tuple[int, int] | None:
    """As :func:`window_offsets`, where the ends are equally far from every nominal time; steps are whole seconds."""
    if start > end:
        return None
    first = _solve(distance, step, feed_step, start)
    # The last instance of the window comes before the first at or after the upper end.
    last = _solve(distance, step, feed_step, end + feed_step)
    return None if first is None or last is None else (first, last - 1)


def _solve(distance: timedelta, step: timedelta, feed_step: timedelta, shift: timedelta) -> int | None:
    """The ``n`` for which *feed instance at or before T + shift* is *feed instance at or after T + n steps*, for all T.

    Over all T, ``T + n * step`` falls on the points ``y = distance (mod g)`` between feed instances (``g`` the greatest
    common divisor of the steps). Floor ``(y + c) / feed_step`` equals ceiling ``y / feed_step`` on all of them exactly
    where both step up between the same two points, which leaves ``c = shift - n * step`` a range of length ``g``.
    """
    divisor = gcd(step // _SECOND, feed_step // _SECOND) * _SECOND
    above = distance % divisor or divisor
    n, rest = divmod(shift - feed_step + above, step)
    return n if rest < divisor else None


_DAY = timedelta(days=1)
_ZERO = timedelta()
_FARTHEST = timedelta(days=40 * 366)


@lru_cache(maxsize=65536)
def window_offsets(
    process_timeline: Timeline, feed_timeline: Timeline, start: Call, end: Call
) -> tuple[int, int] | None:
    """Offsets ``(so, eo)`` equal to the window from ``start`` to ``end``, for every process instance ``k``.

    Without regard to the feed's validity, the window is exactly the feed's instances with ``instance(k + so) <= F <
    instance(k + 1 + eo)``, the bounds being the process's. None where no such pair exists, where the zones' names
    differ, or where it is not provable. Expressions are evaluated in the process's zone.
    """
    if process_timeline.timezone != feed_timeline.timezone:
        return None
    if process_timeline.frequency.is_absolute and feed_timeline.frequency.is_absolute:
        first, last = absolute_shift(start), absolute_shift(end)
        if first is not None and last is not None:
            distance = process_timeline.start - feed_timeline.start
            lengths = process_timeline.frequency.length, feed_timeline.frequency.length
            return offsets_on_a_line(distance, *lengths, first, last)
    try:
        return _on_the_wall(process_timeline, feed_timeline, start, end)
    except OverflowError:
        return None


def _on_the_wall(process: Timeline, feed: Timeline, start: Call, end: Call) -> tuple[int, int] | None:
    first, last = wall_shift(start, process), wall_shift(end, process)
    if first is None or last is None or not first.is_before_or_at(last):
        return None
    farthest = max(first.length, last.length) + process.frequency.length + feed.frequency.length
    if farthest > _FARTHEST or not _keeps_its_wall(process) or not _keeps_its_wall(feed):
        return None
    years = farthest.days // 365 + 2  # as far around the validity as a window may lie
    changes = offset_changes(process.timezone, process.start.year - years, process.end.year + years)
    if changes and not _is_steady(process, first, last, changes):
        return None
    compare = _from_months if process.frequency.unit is TimeUnit.MONTHS else _from_days
    return compare(process, feed, first, last, changes)


def _is_steady(process: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]) -> bool:
    on_the_wall = not process.frequency.is_absolute and first.is_on_the_wall and last.is_on_the_wall
    return on_the_wall and all(change.leaves_on_its_day(_clock(process)) for change in changes)


def _from_days(
    process: Timeline, feed: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]
) -> tuple[int, int] | None:
    if feed.frequency.unit is TimeUnit.MONTHS:
        return None
    if feed.frequency.is_absolute:
        if changes:
            return _hours_in_days(process, feed, first, last, changes)
        distance = process.start - feed.start
    else:
        distance = process.local_start - feed.local_start
        if not _keep_order(process, feed, first, last, changes):
            return None
    return offsets_on_a_line(distance, process.frequency.length, feed.frequency.length, first.time, last.time)


def _hours_in_days(
    process: Timeline, feed: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]
) -> tuple[int, int] | None:
    step, feed_step = process.frequency.length, feed.frequency.length
    if step % feed_step or not _meets_every_day(process, feed, changes):
        return None
    start_offset, after_start = divmod(first.time, step)
    upper = last.time // step + 1
    before_end = upper * step - last.time
    if after_start >= feed_step or before_end > feed_step or _disturbed(process, after_start, before_end, changes):
        return None
    return start_offset, upper - 1


def _from_months(
    process: Timeline, feed: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]
) -> tuple[int, int] | None:
    if feed.frequency.unit is TimeUnit.MONTHS:
        return _months_in_months(process, feed, first, last, changes)
    step, months = feed.frequency.length, process.frequency.count
    if first.months % months or last.months % months or not _meets_every_day(process, feed, changes):
        return None
    if not (_ZERO <= first.time < step and -step <= last.time < _ZERO) or first.months >= last.months:
        return None
    if feed.frequency.is_absolute:
        if _disturbed(process, first.time, -last.time, changes):
            return None
    elif not _keep_order(process, feed, first, last, changes):
        return None
    return first.months // months, last.months // months - 1


def _months_in_months(
    process: Timeline, feed: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]
) -> tuple[int, int] | None:
    own, other = process.local_start, feed.local_start
    if own.day > 28 or own.replace(year=other.year, month=other.month) != other:
        return None
    if not (first.is_short and last.is_short and _keep_order(process, feed, first, last, changes)):
        return None
    # Days stand for months on the line: a little before an instance floors to the month before it.
    return offsets_on_a_line(
        whole_months_between(other, own) * _DAY,
        process.frequency.count * _DAY,
        feed.frequency.count * _DAY,
        first.floored_months * _DAY,
        last.floored_months * _DAY,
    )


def _meets_every_day(process: Timeline, feed: Timeline, changes: frozenset[OffsetChange]) -> bool:
    step = feed.frequency.length
    if feed.frequency.unit is TimeUnit.DAYS:
        return feed.frequency.count == 1 and _clock(feed) == _clock(process)
    daily = process.frequency.unit is TimeUnit.DAYS or _DAY % step == _ZERO
    aligned = (process.start - feed.start) % step == _ZERO
    return daily and aligned and all(change.shift % step == _ZERO for change in changes)


def _keep_order(process: Timeline, feed: Timeline, first: Shift, last: Shift, changes: frozenset[OffsetChange]) -> bool:
    clock = _clock(process)
    clocks = {point % _DAY for point in (clock, _clock(feed), clock + first.time, clock + last.time)}
    return len(clocks) == 1 or not any(change.touches(point, point) for change in changes for point in clocks)


def _disturbed(
    process: Timeline, after_start: timedelta, before_end: timedelta, changes: frozenset[OffsetChange]
) -> bool:
    clock = _clock(process)
    return any(
        (after_start and change.touches(clock, clock + after_start)) or change.touches(clock - before_end, clock)
        for change in changes
    )


def _keeps_its_wall(timeline: Timeline) -> bool:
    """False where instance 0 is the second occurrence of its wall-clock time."""
    return timeline.frequency.is_absolute or from_wall(timeline.local_start, timeline.timezone) == timeline.start


def _clock(timeline: Timeline) -> timedelta:
    return timeline.local_start - start_of_day(timeline.local_start)


@lru_cache(maxsize=65536)
def index_shift(nominal: Timeline, feed: Timeline, call: Call, timezone: str) -> int | None:
    """Index at or before ``call`` in the feed minus the process's; None where it varies. Raises ExpressionError."""
    if nominal.frequency != feed.frequency:
        return None
    if not (nominal.frequency.is_absolute and absolute_shift(call) is not None):
        offsets = window_offsets(nominal, feed, call, call)
        if offsets is None or offsets[0] != offsets[1]:
            return None
    # One step of the one is one of the other, so the difference of the first instances is that of all.
    return feed.index_at_or_before(evaluate_time(call, nominal.start, timezone))
