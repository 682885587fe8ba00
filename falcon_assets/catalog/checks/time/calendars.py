"""Calendars that no instant can name: instants are whole minutes, and clocks were once set by the sun."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from falcon_assets.catalog.declared import Definitions, cluster_names
from falcon_assets.errors import Problem
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.time.zone_changes import offset_changes

_MINUTE, _NO_TIME = timedelta(minutes=1), timedelta()


def check_calendars(definitions: Definitions) -> Iterator[Problem]:
    """Days and months in a zone whose clocks were not a whole number of minutes from UTC."""
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
                rule = "were not set by whole minutes of UTC then: start later, or step by minutes or hours"
                yield declared.problem(("clusters", index, "validity", "start"), f"clocks in {line.timezone} {rule}")
