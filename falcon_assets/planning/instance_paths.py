"""Where the instances of a feed lie on a cluster, and which instance a path belongs to.

The rule of the path variables ``${YEAR} ${MONTH} ${DAY} ${HOUR} ${MINUTE}``: feeds of minutes and hours show UTC,
feeds of days and months show the wall clock of the feed's zone. So in either case no two instances share a path. Where
``path_timezone`` says another zone, its wall clock is shown, and the checks of definitions refuse what would be shared.
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
    """Where a template of a feed leads on a cluster."""

    root: str | None
    """URL of the root of the store: of a whole URL its fixed prefix, the folder above the first time variable, else
    above the last step. None: the cluster's own store."""
    template: PathTemplate
    """Below the root, normalised, with nothing left in it but time variables."""


@dataclass(frozen=True)
class InstancePaths:
    """The paths of one feed on one cluster: ``/``-separated, below the root of their store, no slash at the end.

    That is the cluster's store, or that at :attr:`root` where the location is a whole URL.

    A table feed has no path; its filled-in ``catalog:`` URI takes the place of :meth:`data`.

    Attributes:
        feed: The feed; must be on ``cluster``.
        cluster: Its variables, and below them the feed's properties, are what other ``${...}`` may name.
    """

    feed: Feed
    cluster: Cluster

    def data(self, instance: datetime) -> str:
        """The path of ``instance``.

        Raises:
            ExpressionError: the template names an unknown variable or leaves the root.
        """
        return self.template.render(self.wall(instance), {})

    def render(self, template: PathTemplate, instance: datetime) -> str:
        """The path of ``instance`` by another template of the feed, such as ``retention.archive_to``."""
        return self.place(template).template.render(self.wall(instance), {})

    def instance(self, path: str, by: PathTemplate | None = None) -> datetime | None:
        """The existing instance whose :meth:`data` is exactly ``path``; None for any other text.

        Args:
            path: Any text.
            by: The template of a :meth:`place` to go by instead of that of the data.
        """
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
        """The instances that may be the first whose paths show ``wall`` or a later time: one, but for clock changes."""
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
        """The folder above the first time variable: all of this feed lies in it, nothing above it is the feed's."""
        if self.feed.table_on(self.cluster.name):
            return self.template.text.partition("#")[0]
        return self.template.fixed_prefix({}) or "/"

    @cached_property
    def timeline(self) -> Timeline:
        """The feed's instances on the cluster."""
        return feed_timeline(self.feed, self.cluster.name)

    def wall(self, instance: datetime) -> datetime:
        """The clock time (naive) that the paths of ``instance`` show."""
        if self._is_calendar and not self.feed.frequency.is_absolute:
            index = self.timeline.index_at_or_before(instance)
            if self.timeline.instance(index) == instance:
                return self.timeline.wall(index)
        return to_wall(instance, self.zone)

    @cached_property
    def zone(self) -> str:
        """The zone whose clock the paths show."""
        return self.feed.path_zone_on(self.cluster.name)

    @cached_property
    def _is_calendar(self) -> bool:
        """Whether paths show the times that instances are named after, none of which is shown twice."""
        return self.zone == self.feed.calendar_zone

    @property
    def template(self) -> PathTemplate:
        """The template of :meth:`data`, normalised, with nothing left in it but time variables."""
        return self._data.template

    @property
    def root(self) -> str | None:
        """URL of the root of the store that the data lies on; None: the cluster's own store."""
        return self._data.root

    @cached_property
    def roots(self) -> frozenset[str | None]:
        """The roots of the stores that its data, statistics and metadata lie on.

        Raises:
            ExpressionError: a template names an unknown variable or leaves its root.
        """
        return frozenset((self.root, *(self.place(template).root for _, template in self.templates())))

    def templates(self) -> Iterator[tuple[LocationKind, PathTemplate]]:
        """The locations that instances have something in, as declared: what has no time in it belongs to the feed."""
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
        template = self.feed.locations_on(self.cluster.name).data
        if template is None:
            raise ExpressionError(f"feed {self.feed.name!r} has neither a data location nor a table on {self._where}")
        return self.place(template)

    @property
    def _where(self) -> str:
        return f"cluster {self.cluster.name!r}"

    def place(self, template: PathTemplate) -> Place:
        """Where a template of the feed leads.

        Raises:
            ExpressionError: it names an unknown variable or leaves its root, or a time stands in the bucket or host of
                a URL.
        """
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


_SPAN = {
    "YEAR": timedelta(days=366),
    "MONTH": timedelta(days=31),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
}
_CLOCKS_APART = timedelta(days=2)
"""More than any zone's wall clock is away from UTC, a day that a zone skipped included. Where paths
show UTC, no folder beside those of the span is listed."""
_DAY = timedelta(days=1)
_FEW_DAYS, _FEW_SPANS = timedelta(days=7), 7
_STEPS = (_FEW_DAYS + 2 * _CLOCKS_APART) // _DAY + 1
"""So many days reach from the beginning of a span to its end at least."""


@dataclass(frozen=True)
class FolderSpans:
    """Spans of nominal times of a feed, for the folders that a template makes of them.

    Attributes:
        spans: In UTC, naive; both ends included.
        apart: How far the clock that the paths show is from UTC at most.
    """

    spans: Sequence[tuple[datetime, datetime]]
    apart: timedelta

    @classmethod
    def of(cls, paths: InstancePaths, spans: Iterable[tuple[datetime, datetime]]) -> FolderSpans:
        """Those of aware times."""
        apart = timedelta(0) if paths.zone == "UTC" else _CLOCKS_APART
        return cls([(_utc_wall(first), _utc_wall(last)) for first, last in spans], apart)

    def may_hold(self, level: PathTemplate, path: str) -> bool:
        """Whether ``path`` matches the template of its level, and what it leaves open may reach into a span."""
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
        """The folders of that level, there or not, where the spans are a few days; None where they are not.

        Then the folder above, which has an entry for each day of history perhaps, need not be listed.
        """
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
