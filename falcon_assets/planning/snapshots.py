"""Snapshot feeds: which instances the data at their one path stands for.

Data that was refreshed at X is what was there at every nominal time up to X that had nothing before: an instance is
available when the data was refreshed at or after its time. So each refresh makes an ordinary partition of every such
time, and what decides about instances (readiness, late data, deadlines) needs to know nothing of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.timeline import Timeline


def refresh_time(modified: datetime, clock: Clock) -> datetime:
    """When data was refreshed, on the falcon clock; with one that stands still, the time of its files as it is.

    Args:
        modified: The newest modification time of its files.
        clock: The falcon clock.
    """
    return clock.at(modified) if clock.runs else modified


def unrecorded_windows(
    line: Timeline, now: datetime, newest: datetime | None, count: int
) -> list[tuple[datetime, datetime]]:
    """Where instances may be that are not recorded, both ends included.

    All up to the newest one are, unless fewer are than there are: what was recorded by hand, or before the validity
    began earlier, leaves gaps.

    Args:
        line: The instances that exist.
        now: The time.
        newest: The newest instance that is recorded; None: none is.
        count: How many are.
    """
    is_whole = newest is not None and count > line.index_at_or_before(newest) - line.first
    first = newest if newest is not None and is_whole else line.start
    return [(first, now)] if first <= now else []


def instances_to_record(
    line: Timeline,
    windows: Iterable[tuple[datetime, datetime]],
    known: Mapping[datetime, str | None],
    refreshed: datetime,
    signature: str,
) -> list[datetime]:
    """The instances that data refreshed then is to be recorded for, oldest first.

    Those in the windows that it is the first data for, and the newest one where that is recorded with other data. Older
    data that was put back is another version of the newest one.

    Args:
        line: The instances that exist.
        windows: Where to look for instances that are not known, both ends included.
        known: The signatures of known instances; the newest of all that are known is among them.
        refreshed: When, on the falcon clock, not later than now.
        signature: That of the data.
    """
    recorded = (one for one in known if line.contains(one))
    newest = max(filter(None, (line.at_or_before(refreshed), max(recorded, default=None))), default=None)
    if newest is None:
        return []
    found = {one for first, last in windows for one in line.between(first, min(last, newest)) if one not in known}
    if newest in known and known[newest] != signature:
        found.add(newest)
    return sorted(found)


def not_refreshed(refreshed: datetime, needed: datetime) -> str:
    """What an instance lacks whose data is older than it, in words."""
    return f"snapshot last refreshed at {format_instant(refreshed)}, needs >= {format_instant(needed)}"
