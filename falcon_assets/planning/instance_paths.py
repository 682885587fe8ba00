"""Paths of feed instances on a cluster, and the instance that a path belongs to.

The rule of the path variables ``${YEAR} ${MONTH} ${DAY} ${HOUR} ${MINUTE}``: feeds of minutes and hours show UTC, feeds
of days and months show the wall clock of the feed's zone. In either case no two instances share a path. Where
``path_timezone`` names another zone, its wall clock is shown, and the checks of definitions refuse what would be
shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Literal, NamedTuple, TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate, has_control_characters
from falcon_assets.model.template import Variable, value_of
from falcon_assets.model.wall_clock import MICROSECOND, moments_of_wall, to_wall
from falcon_assets.planning.timeline import Timeline, dated_changes, feed_timeline

LocationKind: TypeAlias = Literal["data", "stats", "meta"]


class Place(NamedTuple):
    root: str | None
    """URL, of a whole URL its part up to the first time variable, else the last step; None: the cluster's own store."""
    template: PathTemplate


@dataclass(frozen=True)
class InstancePaths:
    """Paths are ``/``-separated, below the root of their store, without a slash at the end.

    A table feed has its filled-in ``catalog:`` URI in place of a path. Other ``${...}`` than times name the cluster's
    variables, or else the feed's properties.
    """

    feed: Feed
    cluster: Cluster

    def data(self, instance: datetime) -> str:
        return self.template.render(self.wall(instance), {})

    def render(self, template: PathTemplate, instance: datetime) -> str:
        return self.place(template).template.render(self.wall(instance), {})

    def instance(self, path: str, by: PathTemplate | None = None) -> datetime | None:
        try:
            template = by or self.template
            wall = template.match(path, {}) if template.is_timed else None  # what all instances share is nobody's
            if wall is None:
                return None
            for found in self._at_wall(wall):
                inside = self.timeline.start <= found < self.timeline.end
                if inside and template.render(self.wall(found), {}) == path:
                    return found
        except (ExpressionError, OverflowError):
            pass
        return None

    def _at_wall(self, wall: datetime) -> Iterator[datetime]:
        """The instances that may be the first with a path at or after ``wall``: one, except at clock changes."""
        timeline = self.timeline
        if self._is_calendar:
            yield timeline.instance(timeline.index_of_wall(wall))
            return
        first, last = moments_of_wall(wall, self.zone)
        index = timeline.index_at_or_before(first - MICROSECOND) + 1
        yield timeline.instance(index)
        while timeline.instance(index) < last:
            index += 1
            yield timeline.instance(index)

    @cached_property
    def prefix(self) -> str:
        """The folder above the first time variable: all data of the feed is in it, nothing above it is the feed's."""
        if self.feed.table_on(self.cluster.name):
            return self.template.text.partition("#")[0]
        return self.template.fixed_prefix({}) or "/"

    @cached_property
    def timeline(self) -> Timeline:
        return feed_timeline(self.feed, self.cluster.name)

    def wall(self, instance: datetime) -> datetime:
        if self._is_calendar and not self.feed.frequency.is_absolute:
            index = self.timeline.index_at_or_before(instance)
            if self.timeline.instance(index) == instance:
                return self.timeline.wall(index)
        return to_wall(instance, self.zone)

    @cached_property
    def zone(self) -> str:
        return self.feed.path_zone_on(self.cluster.name)

    @cached_property
    def _is_calendar(self) -> bool:
        return self.zone == self.feed.calendar_zone

    @property
    def template(self) -> PathTemplate:
        return self._data.template

    @property
    def root(self) -> str | None:
        return self._data.root

    @cached_property
    def roots(self) -> frozenset[str | None]:
        return frozenset((self.root, *(self.place(template).root for _, template in self.templates())))

    def templates(self) -> Iterator[tuple[LocationKind, PathTemplate]]:
        """Statistics and metadata without a time in the path belong to the feed, and are left out."""
        locations = self.feed.locations_on(self.cluster.name)
        declared: tuple[tuple[LocationKind, PathTemplate | None], ...] = (
            ("data", locations.data),
            ("stats", locations.stats),
            ("meta", locations.meta),
        )
        for kind, template in declared:
            if template is not None and (kind == "data" or template.is_timed):
                yield kind, template

    @cached_property
    def _data(self) -> Place:
        table = self.feed.table_on(self.cluster.name)
        if table:
            return Place(None, PathTemplate(self._fill(PathTemplate.parse(table.uri))))
        if self.feed.rollup is not None:  # no place: a name that no other feed of the cluster has
            return Place(None, PathTemplate(f"{ROLLUPS}/{self.feed.name}/{_EVERY_MINUTE}"))
        template = self.feed.locations_on(self.cluster.name).data
        if template is None:
            raise ExpressionError(f"feed {self.feed.name!r} has neither a data location nor a table on {self._where}")
        return self.place(template)

    @property
    def _where(self) -> str:
        return f"cluster {self.cluster.name!r}"

    def place(self, template: PathTemplate) -> Place:
        """Raises ExpressionError for an unknown variable, a path out of the root, or a time in a bucket or host."""
        filled, store = self._fill(template), ""
        if template.is_url:
            scheme, _, rest = filled.partition("://")
            host, _, filled = rest.partition("/")
            store = f"{scheme.lower()}://{host}"
            if "${" in host:
                raise ExpressionError(f"{template.text!r}: a time must not stand in what comes before the first folder")
        if "://" in filled:
            raise ExpressionError(f"{template.text!r}: a variable puts a URL into the path on {self._where}")
        folders = [folder for folder in filled.split("/") if folder not in ("", ".")]
        if has_control_characters(filled):
            raise ExpressionError(
                f"{template.text!r}: a variable puts control characters into the path on {self._where}"
            )
        if ".." in folders:
            raise ExpressionError(f"{template.text!r}: a variable puts '..' into the path on {self._where}")
        below = PathTemplate("/" + "/".join(folders))
        if not store:
            return Place(None, below)
        prefix = below.fixed_prefix({})
        if not below.is_timed:  # of a snapshot feed, which may be a single file
            prefix = prefix.rpartition("/")[0]
        return Place(store + (prefix or "/"), PathTemplate(below.text[len(prefix) :]))

    def _fill(self, template: PathTemplate) -> str:
        values = {**self.feed.properties, **self.cluster.variables}
        pieces = (
            part
            if isinstance(part, str)
            else f"${{{part.name}}}"
            if part.name in TIME_VARIABLES
            else value_of(template.text, part, values)
            for part in template.parts
            if isinstance(part, str | Variable)
        )
        return "".join(pieces)


ROLLUPS = "/.rollups"
"""Where paths of roll-ups seem to lie; nothing ever does."""
_EVERY_MINUTE = "${YEAR}-${MONTH}-${DAY}T${HOUR}-${MINUTE}"
_SPAN = {
    "YEAR": timedelta(days=366),
    "MONTH": timedelta(days=31),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
}
_CLOCKS_APART = timedelta(days=2)
"""More than any zone's wall clock differs from UTC, a skipped day included."""
_DAY = timedelta(days=1)
_FEW_DAYS, _FEW_SPANS = timedelta(days=7), 7
_STEPS = (_FEW_DAYS + 2 * _CLOCKS_APART) // _DAY + 1


@dataclass(frozen=True)
class FolderSpans:
    """Spans of nominal times (naive UTC, ends included); ``apart``: at most this far is the clock of paths from UTC."""

    spans: Sequence[tuple[datetime, datetime]]
    apart: timedelta

    @classmethod
    def of(cls, paths: InstancePaths, spans: Iterable[tuple[datetime, datetime]]) -> FolderSpans:
        apart = timedelta(0) if paths.zone == "UTC" else _CLOCKS_APART
        return cls([(_utc_wall(first), _utc_wall(last)) for first, last in spans], apart)

    def may_hold(self, level: PathTemplate, path: str) -> bool:
        if "YEAR" not in level.variables:
            return True  # ${MONTH} above ${YEAR}: nothing can be said yet
        earliest = level.match(path, {})
        if earliest is None:
            return False
        # 2013 in ${YEAR}/${DAY} leaves the month open: only the variables without a gap narrow the time down.
        finest = list(takewhile(level.variables.__contains__, TIME_VARIABLES))[-1]
        length = _SPAN[finest] + self.apart
        return any(earliest - last <= self.apart and first - earliest < length for first, last in self.spans)

    def folders(self, level: PathTemplate) -> set[str] | None:
        """The folders of a few days, existing or not, so that the folder above need not be listed; else None."""
        if any(last - first > _FEW_DAYS for first, last in self.spans) or len(self.spans) > _FEW_SPANS:
            return None
        if set(level.variables) not in ({"YEAR"}, {"YEAR", "MONTH"}, {"YEAR", "MONTH", "DAY"}):
            return None
        try:
            days = (
                (first - self.apart + n * _DAY, last + self.apart) for first, last in self.spans for n in range(_STEPS)
            )
            return {level.render(min(day, end), {}) for day, end in days}
        except OverflowError:
            return None  # at the ends of the calendar


def _utc_wall(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


_YEARS = 40
"""Dates of clock changes repeat after 28 years, and with them their effect on instances."""
_AROUND = 2
"""Steps on either side of a change; elsewhere neighbours are as far apart on the wall as in time."""


def first_shared(paths: InstancePaths, template: PathTemplate) -> tuple[datetime, datetime] | None:
    """The first two instances that share a path by ``template`` (as fine as the frequency needs); None: none do."""
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
