"""Snapshot feeds: which instances the data at their one path represents.

Data refreshed at X is the data of every nominal time up to X that had none before: an instance is available when the
data was refreshed at or after its time. Each refresh makes an ordinary partition of every such time, so decisions about
instances (readiness, late data, deadlines) need no rule for snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.timeline import Timeline


def refresh_time(modified: datetime, clock: Clock) -> datetime:
    """On the falcon clock; with a frozen one, the newest modification time of the files unchanged."""
    return clock.at(modified) if clock.runs else modified


def unrecorded_windows(
    line: Timeline, now: datetime, newest: datetime | None, count: int
) -> list[tuple[datetime, datetime]]:
    """Windows (ends included) that may hold unrecorded instances: records by hand and earlier starts leave gaps."""
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
    """The instances to record for data refreshed then, oldest first: those without data, and the newest.

    The newest one only where its signature differs: older data that was put back is another version of it.
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
    return f"snapshot last refreshed at {format_instant(refreshed)}, needs >= {format_instant(needed)}"
