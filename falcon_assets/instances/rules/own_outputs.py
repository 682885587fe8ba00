"""Instances that need earlier instances of their own workload: order within a run, and waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.model.process import Input, Output
from falcon_assets.planning.input_windows import input_instances, nominal_of_output, output_instance
from falcon_assets.planning.timeline import Timeline, feed_timeline

Available: TypeAlias = Mapping[str, Collection[datetime]]
"""By feed; sets, for speed."""


@dataclass(frozen=True)
class OwnChain:
    readiness: Readiness

    @classmethod
    def of(cls, readiness: Readiness) -> OwnChain | None:
        """None where the workload does not read its own outputs."""
        return cls(readiness) if readiness.workload.own_feeds else None

    def written(self, nominals: Collection[datetime]) -> set[tuple[str, datetime]]:
        """Only of feeds that the workload reads."""
        zone = self.readiness.workload.timezone
        found: set[tuple[str, datetime]] = set()
        for output, feed in self._outputs:
            instances = (output_instance(output, feed, nominal, zone) for nominal in nominals)
            found.update((output.feed, instance) for instance in instances if instance is not None)
        return found

    def may_follow(self, nominal: datetime, written: Collection[tuple[str, datetime]], available: Available) -> bool:
        """Whether all inputs are there once others have written ``written`` in the same run."""

        def there(feed: str) -> Callable[[datetime], bool]:
            known = available.get(feed, ())
            return lambda instance: instance in known or (feed, instance) in written

        return next(self.readiness.missing(nominal, there), None) is None

    def waits_for_own(self, nominal: datetime, available: Available) -> bool:
        """Whether another instance of its workload is to write a missing input."""
        workload = self.readiness.workload
        for feed, instance in self._lacking(nominal, available):
            for output, timeline in self._outputs:
                if output.feed == feed and nominal_of_output(
                    output, workload.timeline, timeline, workload.timezone, instance
                ):
                    return True
        return False

    def _lacking(self, nominal: datetime, available: Available) -> Iterator[tuple[str, datetime]]:
        for declared, feed in self._inputs:
            there = available.get(declared.feed, ())
            for instance in input_instances(declared, feed, nominal, self.readiness.workload.timezone):
                if instance not in there:
                    yield declared.feed, instance

    @cached_property
    def _inputs(self) -> list[tuple[Input, Timeline]]:
        workload = self.readiness.workload
        wanted = (one for one in workload.inputs if one.is_of_times and not one.optional)
        return [(one, self._feed(one.feed)) for one in wanted if one.feed in workload.own_feeds]

    @cached_property
    def _outputs(self) -> list[tuple[Output, Timeline]]:
        workload = self.readiness.workload
        return [(one, self._feed(one.feed)) for one in workload.outputs if one.feed in workload.own_feeds]

    def _feed(self, name: str) -> Timeline:
        return feed_timeline(self.readiness.workload.feeds[name], self.readiness.workload.cluster)
