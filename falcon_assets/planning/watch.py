"""Which missing instances are looked for now: young ones in every tick, old ones less and less often."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.wall_clock import MICROSECOND

_AT_LEAST = timedelta(hours=24)
_INSTANCES_AT_LEAST = 24


def watch_windows(
    timeline: Timeline, now: datetime, looked_at: datetime | None, horizon: timedelta
) -> tuple[tuple[datetime, datetime], ...]:
    """The spans of nominal times in which missing instances are looked for in this tick, latest first.

    An instance is looked for in every tick until it is ``horizon`` old, then once as it gets ``horizon * 2**k`` old,
    k = 0, 1, 2 ... So one that lands at some age is found before it is twice as old, plus the time between two ticks;
    and the number of spans grows with the logarithm of the history only.

    Args:
        timeline: The instances that exist.
        now: The time of this tick.
        looked_at: The time of the last tick whose spans were looked through to the end; None: there was none, so
            everything is looked through.
        horizon: More than zero; see :func:`horizon_of`.

    Returns:
        Spans from an existing instance to an existing instance, both included; they do not overlap.
    """
    if looked_at is None:
        spans = [timeline.indexes(timeline.start, now)]
    else:
        spans = _spans(timeline, now, min(looked_at, now - MICROSECOND), horizon)
    return tuple((timeline.instance(span[0]), timeline.instance(span[-1])) for span in spans if span)


def _spans(timeline: Timeline, now: datetime, looked_at: datetime, horizon: timedelta) -> list[range]:
    """Indexes of the instances that were younger than ``horizon * 2**k`` at ``looked_at`` and no longer are."""
    history = now - timeline.start
    # After a pause longer than the horizon, what came up in the pause was never looked for: so not from now - horizon.
    spans = [timeline.indexes(_after(looked_at, horizon, timeline), now)]
    age = horizon
    while age <= history:
        span = timeline.indexes(_after(looked_at, age, timeline), now - age)
        if span and spans[-1] and span.stop >= spans[-1].start:
            spans[-1] = range(min(span.start, spans[-1].start), spans[-1].stop)
        elif span:
            spans.append(span)
        age *= 2
    return spans


def _after(looked_at: datetime, age: timedelta, timeline: Timeline) -> datetime:
    """Just after the nominal time that is ``age`` before ``looked_at``, but not before the timeline's start."""
    return looked_at - age + MICROSECOND if looked_at - timeline.start >= age else timeline.start


def horizon_of(feed: Feed, consumers_timeouts: Iterable[timedelta]) -> timedelta:
    """How old instances of ``feed`` get while they are looked for in every tick.

    The longest of: the late cut-off, any consumer's timeout, a day, and 24 instances.

    Args:
        feed: The feed.
        consumers_timeouts: How long each process that reads the feed waits for it.
    """
    cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else timedelta()
    return max(cut_off, _AT_LEAST, _INSTANCES_AT_LEAST * feed.frequency.length, *consumers_timeouts)
