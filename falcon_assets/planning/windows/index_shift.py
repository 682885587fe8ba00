"""Expressions that name the same feed instance for every process instance, but for a number of steps."""

from __future__ import annotations

from functools import lru_cache

from falcon_assets.model.expression import Call
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.window_offsets import window_offsets
from falcon_assets.planning.windows.window_shift import absolute_shift


@lru_cache(maxsize=65536)
def index_shift(nominal: Timeline, feed: Timeline, call: Call, timezone: str) -> int | None:
    """Index of the feed instance at or before ``call`` minus index of the process instance; None where it varies.

    Raises:
        ExpressionError: the call is no time, or lies beyond the years 1 to 9999 at the first nominal time.
    """
    if nominal.frequency != feed.frequency:
        return None
    if not (nominal.frequency.is_absolute and absolute_shift(call) is not None):
        offsets = window_offsets(nominal, feed, call, call)
        if offsets is None or offsets[0] != offsets[1]:
            return None
    # One step of the one is one of the other, so the difference of the first instances is that of all.
    return feed.index_at_or_before(evaluate_time(call, nominal.start, timezone))
