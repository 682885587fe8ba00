"""Readiness of instances: which feed instances of required inputs are missing."""

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
"""By feed: its available instances (sets, for speed; no entry = none), or a predicate."""


@dataclass(frozen=True, slots=True)
class MissingInput:
    """``instance`` is a text for ``latest`` and ``future``: the window that lacks instances."""

    input: str
    feed: str
    instance: datetime | str

    def __str__(self) -> str:
        instance = self.instance if isinstance(self.instance, str) else format_instant(self.instance)
        return f"{self.input}: {self.feed} {instance}"


@dataclass(frozen=True, slots=True)
class MissingRefresh(MissingInput):
    """A snapshot feed that was not refreshed since the time of the instance."""

    def __str__(self) -> str:
        if isinstance(self.instance, str):
            return f"{self.input}: {self.feed} {self.instance}"
        return f"{self.input}: {self.feed} refreshed at or after {format_instant(self.instance)}"


def missing_input(name: str, feed: Feed, instance: datetime | str) -> MissingInput:
    return (MissingRefresh if feed.snapshot else MissingInput)(name, feed.name, instance)


@dataclass(frozen=True)
class Readiness:
    """Keep it: everything that depends on the workload alone is cached."""

    workload: Workload

    def missing(self, nominal: datetime, available: Availability) -> Iterator[MissingInput]:
        """Yields the missing inputs in their order; none: the instance is ready.

        Optional inputs, and instances outside a feed's validity, are never waited for. Raises UnknownEntityError where
        the workload or one of its feeds is not on the cluster, and ExpressionError where a window lies beyond the years
        1 to 9999.
        """
        for window in self._windows:
            feed = window.declared.feed
            there = available.get(feed, ()) if isinstance(available, Mapping) else available(feed)
            for lacking in window.missing(nominal, there):
                yield missing_input(window.declared.name, self.workload.feeds[feed], lacking)

    def ready(self, spans: Sequence[range], available: Mapping[str, InstanceSet]) -> list[range]:
        """Filters instances, as indexes in the timeline in rising order.

        Costs grow with available data, not with instances. Raises UnknownEntityError as :meth:`missing`; windows beyond
        the calendar are left to that.
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
    declared: Input
    timezone: str
    nominal: Timeline
    feed: Timeline

    def missing(
        self, nominal: datetime, available: Collection[datetime] | Callable[[datetime], bool]
    ) -> Sequence[datetime | str]:
        """A text for ``latest`` and ``future`` windows that lack instances."""
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
        """Where the window starts and ends (excluded), from the nominal time; None: it varies, or is on a calendar."""
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
