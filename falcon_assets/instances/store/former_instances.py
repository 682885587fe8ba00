"""Instances of earlier definitions of a feed, which are kept even where a path became coarser.

Only an editor can change the properties that name instances; commands refuse it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from falcon_assets.errors import StorageError
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import DATA_VERSIONS, DEFINITION_VERSIONS
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reasons_to_keep import HoldsFormer
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained

_BLOCK = 256
"""So many instances, one after the other, are asked about together."""
_FREQUENCY = r"""frequency["']?\s*:\s*["']?([a-z]+\(\s*[0-9]+\s*\))"""
_TIMEZONE = r"""(?:^|[\s{,"'])timezone["']?\s*:\s*["']?([A-Za-z0-9_/+-]+)"""
"""Finds the properties that name instances in definitions of any layout."""


class EntityTimeline(NamedTuple):
    kind: str
    name: str
    cluster: str
    timeline: Timeline


def redefined(connection: Connection, lines: Collection[EntityTimeline]) -> list[EntityTimeline]:
    """Those whose entities had another frequency, or another zone of days and months."""
    table = DEFINITION_VERSIONS.c
    said = func.substring(table.text, _FREQUENCY), func.substring(table.text, _TIMEZONE)
    asked = select(table.kind, table.name, *said).where(table.text.is_not(None)).distinct()
    return changed(lines, [(row[0], row[1], row[2], row[3]) for row in connection.execute(asked)])


def changed(
    lines: Iterable[EntityTimeline], recorded: Iterable[tuple[str, str, str | None, str | None]]
) -> list[EntityTimeline]:
    """``recorded`` has kind, name, frequency and zone of all definitions ever recorded, as written."""
    before: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for kind, name, frequency, timezone in recorded:
        if frequency is not None:
            before.setdefault((kind, name), set()).add((re.sub(r"\s+", "", frequency), timezone or "UTC"))
    return [one for one in lines if any(_differs(one.timeline, *said) for said in before.get((one.kind, one.name), ()))]


def _differs(timeline: Timeline, frequency: str, timezone: str) -> bool:
    other_zone = not timeline.frequency.is_absolute and timezone != timeline.timezone
    return frequency != str(timeline.frequency) or other_zone


Places = Sequence[tuple[str, datetime]]
"""Shown paths of former instances, in order, with their nominal times."""


def former_places(
    connection: Connection, cluster: str, feed: str, timeline: Timeline, first: datetime, last: datetime
) -> Places:
    """Available instances outside the timeline, between two times, both excluded."""
    table = DATA_VERSIONS.c
    is_there = table.cluster == cluster, table.feed == feed, table.status == "AVAILABLE", table.path.is_not(None)
    asked = select(table.path, table.instance).where(*is_there, table.instance > first, table.instance < last)
    return sorted((path, at) for path, at in connection.execute(asked) if not timeline.contains(at))


def holds_former(store: ClusterStore, path: str, places: Places) -> HoldsFormer | None:
    """Finds a former instance at or below the path, which would be deleted with it; StorageError: the store is away."""
    for volume in store.there():
        for lies, former in lying_within(volume.shown(path), places):
            below = lies.removeprefix(volume.shown("").rstrip("/"))
            with driver_explained(store.cluster.name, f"look for {lies}"):
                if store.fs.exists(volume.path(below)):
                    return HoldsFormer(former, lies)
    return None


def lying_within(folder: str, places: Places) -> Places:
    same = places[bisect_left(places, folder, key=_path) :]
    below = places[bisect_left(places, f"{folder}/", key=_path) :]
    found = [one for one in same[:1] if one[0] == folder]
    for one in below:
        if not one[0].startswith(f"{folder}/"):
            break
        found.append(one)
    return found


def _path(place: tuple[str, datetime]) -> str:
    return place[0]


@dataclass(frozen=True)
class FormerInstances:
    """What publications must not replace; keep one object for a run: it asks about many instances together."""

    ledger: Ledger
    _blocks: dict[tuple[str, str, int], Places] = field(default_factory=dict, init=False)

    def require_apart(self, store: ClusterStore, feed: Feed, instance: datetime, path: str) -> None:
        """Raises StorageError where publishing would replace data of an earlier definition."""
        if feed.snapshot or feed.table_on(store.cluster.name) is not None:
            return
        line = feed_timeline(feed, store.cluster.name)
        index = line.index_at_or_before(instance)
        first, last = line.instance(index - 1), line.instance(index + 1)
        places = [one for one in self._block(store.cluster.name, feed.name, line, index) if first < one[1] < last]
        if found := holds_former(store, path, places):
            raise StorageError(
                f"cluster {store.cluster.name!r}: instance {format_instant(instance)} of {feed.name} would overwrite "
                f"data that is not its own: {found}: give the feed another path or its former frequency, or move that "
                "data away"
            )

    def _block(self, cluster: str, feed: str, line: Timeline, index: int) -> Places:
        key = (cluster, feed, index // _BLOCK)
        if key not in self._blocks:
            begin = index // _BLOCK * _BLOCK
            span = line.instance(begin - 1), line.instance(begin + _BLOCK)
            with self.ledger.engine.connect() as connection:
                self._blocks[key] = former_places(connection, cluster, feed, line, *span)
        return self._blocks[key]
