"""What an instance still waits for: the feed instances of its required inputs that are not available."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeAlias

from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.rules.ready_search import ReadySearch
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import InstanceSet, input_instances, latest_instances
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.window_offsets import window_offsets
from falcon_assets.planning.workloads import Workload

Availability: TypeAlias = "Mapping[str, Collection[datetime]] | Callable[[str], Callable[[datetime], bool]]"
"""By the name of a feed: its available instances (sets, for speed; no entry = none), or what says which are."""


@dataclass(frozen=True, slots=True)
class MissingInput:
    """A feed instance that a required input lacks.

    Attributes:
        input: The input.
        feed: Its feed.
        instance: The instance; of ``latest`` and ``future`` the window that there is not enough for.
    """

    input: str
    feed: str
    instance: datetime | str

    def __str__(self) -> str:
        """In one line: ``flights: raw-flights 2013-01-01T05:00Z``."""
        instance = self.instance if isinstance(self.instance, str) else format_instant(self.instance)
        return f"{self.input}: {self.feed} {instance}"


@dataclass(frozen=True, slots=True)
class MissingRefresh(MissingInput):
    """An instance of a snapshot feed that a required input lacks: the data was not refreshed since its time."""

    def __str__(self) -> str:
        """In one line: ``carriers: carriers refreshed at or after 2013-01-01T05:00Z``."""
        if isinstance(self.instance, str):
            return f"{self.input}: {self.feed} {self.instance}"
        return f"{self.input}: {self.feed} refreshed at or after {format_instant(self.instance)}"


def missing_input(name: str, feed: Feed, instance: datetime | str) -> MissingInput:
    """What the input of that name lacks."""
    return (MissingRefresh if feed.snapshot else MissingInput)(name, feed.name, instance)


@dataclass(frozen=True)
class Readiness:
    """Tells what the instances of a workload wait for; make it once, ask it often.

    Attributes:
        workload: The workload.
    """

    workload: Workload

    def missing(self, nominal: datetime, available: Availability) -> Iterator[MissingInput]:
        """What the instance ``nominal`` lacks, in the order of the inputs; nothing: it is ready.

        Optional inputs are never waited for, nor what lies outside a feed's validity.

        Raises:
            UnknownEntityError: the workload or one of its feeds is not defined on the cluster.
            ExpressionError: a window lies beyond the years 1 to 9999.
        """
        for window in self._windows:
            feed = window.declared.feed
            there = available.get(feed, ()) if isinstance(available, Mapping) else available(feed)
            for lacking in window.missing(nominal, there):
                yield missing_input(window.declared.name, self.workload.feeds[feed], lacking)

    def ready(self, spans: Sequence[range], available: Mapping[str, InstanceSet]) -> list[range]:
        """Those of some instances that lack nothing, both as indexes in the timeline, in rising order.

        It takes the longer the more is available, not the more instances there are; what an instance lacks, and
        whether a window lies beyond the years 1 to 9999, is for :meth:`missing` to say.

        Raises:
            UnknownEntityError: as for :meth:`missing`.
        """
        found = [span for span in spans if span]
        for window in sorted(self._windows, key=lambda one: one.search.asks_each):
            found = window.search.among(found, available.get(window.declared.feed, InstanceSet()))
        return found

    @cached_property
    def _windows(self) -> tuple[_Window, ...]:
        workload = self.workload
        return tuple(
            _Window(declared, workload.timezone, workload.timeline, self._timeline(declared.feed))
            for declared in workload.inputs
            if not declared.optional
        )

    def _timeline(self, name: str) -> Timeline:
        if name not in self.workload.feeds:
            raise UnknownEntityError(f"process {self.workload.name!r} names feed {name!r}, which is not defined")
        return feed_timeline(self.workload.feeds[name], self.workload.cluster)


@dataclass(frozen=True)
class _Window:
    """A required input."""

    declared: Input
    timezone: str
    nominal: Timeline
    feed: Timeline

    def missing(
        self, nominal: datetime, available: Collection[datetime] | Callable[[datetime], bool]
    ) -> Sequence[datetime | str]:
        """The feed instances that are not available; for ``latest`` and ``future`` what there is not enough of."""
        is_available = available if callable(available) else available.__contains__
        if self.declared.is_of_times:
            return [instance for instance in self._instances(nominal) if not is_available(instance)]
        window = latest_instances(self.declared, self.feed, nominal, available, self.timezone)
        if window is None:
            return [f"{self.declared.start} to {self.declared.end}"]
        return [instance for instance in window if not is_available(instance)]

    @cached_property
    def search(self) -> ReadySearch:
        return ReadySearch(self.declared, self.timezone, self.nominal, self.feed)

    @cached_property
    def _steps(self) -> tuple[timedelta, timedelta] | None:
        """How far from the nominal time the window starts and (excluded) ends, where that never changes.

        Only where both timelines step in absolute time: there is nothing to gain where calendars must be asked.
        """
        if not (self.nominal.frequency.is_absolute and self.feed.frequency.is_absolute):
            return None
        offsets = window_offsets(self.nominal, self.feed, self.declared.start.call, self.declared.end.call)
        step = self.nominal.frequency.length
        return (offsets[0] * step, (offsets[1] + 1) * step) if offsets else None

    def _instances(self, nominal: datetime) -> Sequence[datetime]:
        if self._steps is None:
            return input_instances(self.declared, self.feed, nominal, self.timezone)
        after_start = nominal - self.feed.start
        length = self.feed.frequency.length
        # Rounded up: the first feed instances at or after the ends of the half-open stretch of time.
        first = max(-((-after_start - self._steps[0]) // length), 0)
        stop = min(-((-after_start - self._steps[1]) // length), self.feed.count)
        return [self.feed.start + k * length for k in range(first, stop)]
