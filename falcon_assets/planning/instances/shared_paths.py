"""Whether two instances of a feed would share a path, because of the clock that paths show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.planning.time.zone_changes import dated_changes

_YEARS = 40
"""So many are looked at: the dates of clock changes, and with them what they do to instances, repeat after 28."""
_AROUND = 2
"""So many steps on either side of a change: elsewhere neighbours are as far apart on the wall as they are in time."""


def first_shared(paths: InstancePaths, template: PathTemplate) -> tuple[datetime, datetime] | None:
    """The first two instances that ``template`` gives one path, None where it does not.

    Args:
        paths: The feed and the cluster.
        template: One of the feed's, as fine as the frequency needs.
    """
    if paths.zone == paths.feed.calendar_zone:
        return None  # that clock names the instances, each otherwise
    names = [name for name in template.variables if name in TIME_VARIABLES]
    times = PathTemplate("-".join(f"${{{name}}}" for name in names))
    for window in _windows(paths):
        seen: dict[str, datetime] = {}
        for instance in window:
            other = seen.setdefault(times.render(paths.wall(instance), {}), instance)
            if other != instance:
                return other, instance
    return None


def _windows(paths: InstancePaths) -> Iterator[list[datetime]]:
    """Neighbouring instances, wherever two of them can share a path."""
    line, zones = paths.timeline, {paths.zone, paths.feed.calendar_zone}
    if line.frequency.unit is TimeUnit.MONTHS:
        # Those of the 31st are on other days of other months, so any of them may be near the end of one.
        yield [line.instance(k) for k in range(min(line.count, _YEARS * 12 // line.frequency.count + 1))]
        return
    last = min(line.end.year, line.start.year + _YEARS)
    changes = sorted((at, one.shift) for zone in zones for at, one in dated_changes(zone, line.start.year, last))
    for at, shift in changes:
        around = abs(shift) + _AROUND * line.frequency.length + timedelta(hours=1)
        yield line.between(max(at - around, line.start), min(at + around, line.end))
