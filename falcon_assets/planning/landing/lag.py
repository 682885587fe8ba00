"""How far the newest instance of a feed is behind."""

from __future__ import annotations

from datetime import datetime, timedelta

from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.time.timeline import Timeline


def lag(timeline: Timeline, newest: datetime | None, due: datetime, now: datetime) -> timedelta:
    """How long ago the nominal time was of the first instance after the newest one; nothing, where that is not due yet.

    Where the validity is over and its last instance is there, nothing is behind any more.

    Args:
        timeline: The instances of the feed.
        newest: The newest one that is there; None: there is none.
        due: None after it is due yet.
        now: The time.
    """
    first = timeline.start if newest is None else newest + MICROSECOND
    missing = timeline.indexes(first, due) if first <= due and timeline.count else range(0)
    return max(now - timeline.instance(missing[0]), timedelta()) if missing else timedelta()
