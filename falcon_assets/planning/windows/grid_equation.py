"""Two grids of equal steps on one line: when a window of one is a span of whole steps of the other."""

from __future__ import annotations

from datetime import timedelta
from math import gcd

_SECOND = timedelta(seconds=1)


def offsets_on_a_line(
    distance: timedelta, step: timedelta, feed_step: timedelta, start: timedelta, end: timedelta
) -> tuple[int, int] | None:
    """Window offsets where the ends lie at the same distances from every nominal time.

    Args:
        distance: From any feed instance to any process instance.
        step: Of the process, whole seconds.
        feed_step: Of the feed, whole seconds.
        start: From the nominal time to the window's start.
        end: From the nominal time to the window's end.

    Returns:
        As :func:`~falcon_assets.planning.windows.window_offsets.window_offsets`; None where there are none.
    """
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
