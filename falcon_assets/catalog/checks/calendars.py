"""Checks of calendars: instants are whole minutes, but the offsets of zones once were local solar time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from falcon_assets.catalog.checks.paths import is_of_feed, templates_on
from falcon_assets.catalog.declared import Declared, Definitions, cluster_names
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.instant import format_instant
from falcon_assets.model.wall_clock import from_wall, start_of_day, to_wall
from falcon_assets.planning.instance_paths import InstancePaths, first_shared
from falcon_assets.planning.timeline import Timeline, offset_changes

_MINUTE, _NO_TIME = timedelta(minutes=1), timedelta()


def check_calendars(definitions: Definitions) -> Iterator[Problem]:
    """Days and months in a zone whose offset was not a whole number of minutes from UTC."""
    for declared in definitions.clustered():
        entity = declared.entity
        if entity.frequency.is_absolute:
            continue
        for index, name in enumerate(cluster_names(entity)):
            entry = entity.on(name)
            if entry is None:
                continue
            line = Timeline(entry.validity.start, entry.validity.end, entity.frequency, entity.timezone)
            changes = offset_changes(line.timezone, line.start.year, line.end.year)
            shifts = (line.local_start - line.start.replace(tzinfo=None), *(change.shift for change in changes))
            if any(shift % _MINUTE != _NO_TIME for shift in shifts):
                rule = "had an offset from UTC with seconds then: start later, or use a frequency of minutes or hours"
                yield declared.problem(("clusters", index, "validity", "start"), f"clocks in {line.timezone} {rule}")


def check_path_zones(definitions: Definitions) -> Iterator[Problem]:
    """Instances that share a path because of ``path_timezone``; a warning where a start is between two dates."""
    for feed in definitions.feeds.values():
        for index, entry, cluster in definitions.feed_clusters(feed):
            if feed.entity.snapshot:
                continue
            declared = entry.path_timezone or feed.entity.path_timezone
            paths = InstancePaths(feed.entity, cluster)
            if declared is None:
                yield from _other_date(feed, index, paths)
            elif paths.zone != feed.entity.calendar_zone:
                key: KeyPath = (*(("clusters", index) if entry.path_timezone else ()), "path_timezone")
                yield from _shared(feed, index, key, paths)


def _shared(feed: Declared[Feed], index: int, key: KeyPath, paths: InstancePaths) -> Iterator[Problem]:
    for path, template in templates_on(feed.entity, index):
        if is_of_feed(path, template) or template.missing_for(feed.entity.frequency):
            continue
        shared = first_shared(paths, template)
        if shared is not None:
            both = " and ".join(map(format_instant, shared))
            shared_path = f"instances {both} would share a path of {template.text!r} in {paths.zone}"
            yield feed.problem(key, f"{shared_path}{_why(*map(paths.wall, shared))}")
            return


def _why(one: datetime, other: datetime) -> str:
    if one == other:
        return f", where clocks show {one:%Y-%m-%dT%H:%M} twice: write UTC"
    return f", at {one:%Y-%m-%dT%H:%M} and {other:%Y-%m-%dT%H:%M}: write a finer path, or start at another time of day"


def _other_date(feed: Declared[Feed], index: int, paths: InstancePaths) -> Iterator[Problem]:
    entity, start = feed.entity, paths.timeline.start
    if entity.frequency.is_absolute:
        return
    wall, written = to_wall(start, entity.timezone), to_wall(start, "UTC")
    is_months = entity.frequency.unit is TimeUnit.MONTHS
    begins = start_of_day(wall).replace(day=1) if is_months else start_of_day(wall)
    if wall == written or start == from_wall(begins, entity.timezone):
        return
    try:
        folder, other = paths.data(start), _in_utc(entity, index, paths.cluster).data(start)
    except ExpressionError:
        return  # another check reports it
    wanted = from_wall(start_of_day(written).replace(day=1) if is_months else start_of_day(written), entity.timezone)
    what = "midnight of the first of a month" if is_months else "midnight"
    shown = f"{format_instant(start)} is {wall:%Y-%m-%dT%H:%M} in {entity.timezone}, not {what}"
    lies = f"instance {format_instant(start)} lies in {folder!r}"
    meant = f" (UTC: in {other!r})" if other != folder else ""
    advice = f"start at {format_instant(wanted)}, or set path_timezone to the zone of the times in paths{meant}"
    yield feed.warning(("clusters", index, "validity", "start"), f"{shown}: {lies}; {advice}")


def _in_utc(feed: Feed, index: int, cluster: Cluster) -> InstancePaths:
    entry = feed.clusters[index].model_copy(update={"path_timezone": "UTC"})
    clusters = (*feed.clusters[:index], entry, *feed.clusters[index + 1 :])
    return InstancePaths(feed.model_copy(update={"clusters": clusters}), cluster)
