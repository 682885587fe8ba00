"""Which folders can have the instances of spans of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.planning.instances.instance_paths import InstancePaths

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
