"""Input instances that the ledger has for available, and that are not there when they are to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from falcon_assets.errors import FalconError
from falcon_assets.events.event_log import observation
from falcon_assets.events.feed_instances import FeedInstanceWithdrawn
from falcon_assets.ledger import queries
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.planning.time.timeline import feed_timeline
from falcon_assets.planning.windows.input_windows import latest_instances
from falcon_assets.planning.workloads.workload import Workload

FeedInstance: TypeAlias = "tuple[str, datetime]"
"""The name of a feed, and the instance."""
_CORRECTED_AT_ONCE = 1000
"""So many instances that are gone are found behind one window: the run after this one finds more."""


@dataclass(frozen=True)
class Withdrawals:
    """Corrects what the ledger has of what a workload reads.

    Attributes:
        ledger: The ledger.
        workload: The workload.
        is_there: Says whether an instance of a feed is there now, where the workload reads it.
    """

    ledger: Ledger
    workload: Workload
    is_there: Callable[[str, datetime], bool]

    def record(self, nominal: datetime, lacking: Sequence[FeedInstance], at: datetime) -> bool:
        """Records that what an instance lacks is not there, where the ledger has it for available.

        It is waited for then, and searched for, as what never came. Nobody says it twice.

        Args:
            nominal: The instance.
            lacking: What it lacks; empty: there is not enough for one of its ``latest`` or ``future`` windows.
            at: The time on the falcon clock.

        Returns:
            Whether the ledger knows now that the instance lacks something; else it would run, and lack it, for ever.
        """
        self.ledger.catch_up()
        try:
            gone = self._available(lacking) if lacking else self._behind_windows(nominal)
        except FalconError:  # a store does not answer: nobody knows what is gone
            return False
        for name, instance in gone or ():
            self._say(name, instance, at)
        return gone is not None

    def _available(self, lacking: Sequence[FeedInstance]) -> list[FeedInstance]:
        """Those of the instances that the ledger has."""
        instances: dict[str, list[datetime]] = {}
        for name, instance in lacking:
            instances.setdefault(name, []).append(instance)
        cluster = self.workload.reads_on
        spans = {(cluster, name): (min(own), max(own)) for name, own in instances.items()}
        with self.ledger.engine.connect() as connection:
            there = queries.available(connection, spans)
        return [(name, instance) for name, instance in lacking if instance in there.get((cluster, name), ())]

    def _behind_windows(self, nominal: datetime) -> list[FeedInstance] | None:
        """What the ledger would take for the required windows of what is there, and is not; None: all of it is."""
        found: list[FeedInstance] = []
        is_short = False
        for declared in self.workload.inputs:
            if declared.optional or declared.is_of_times:
                continue
            gone, is_enough = self._behind(declared, nominal)
            found += ((declared.feed, instance) for instance in gone)
            is_short = is_short or not is_enough
        return found if found or is_short else None

    def _behind(self, declared: Input, nominal: datetime) -> tuple[list[datetime], bool]:
        """What of a window is gone, and whether the ledger still has enough for it."""
        workload, cluster = self.workload, self.workload.reads_on
        line = feed_timeline(workload.feeds[declared.feed], cluster)
        key = (cluster, declared.feed)
        with self.ledger.engine.connect() as connection:
            known = queries.available(connection, {key: (line.start, line.end)}).get(key, set())
        gone: list[datetime] = []
        while len(gone) < _CORRECTED_AT_ONCE:
            window = latest_instances(declared, line, nominal, known, workload.timezone)
            if window is None:
                return gone, False
            lost = [one for one in window if one in known and not self.is_there(declared.feed, one)]
            if not lost:
                break
            gone += lost
            known -= set(lost)
        return gone, True

    def _say(self, name: str, instance: datetime, at: datetime) -> None:
        workload, cluster = self.workload, self.workload.reads_on
        gone = FeedInstanceWithdrawn(cluster, name, instance, workload.name, at)
        said = f"{name} {format_instant(instance)} is not there any more: {workload.name} was to read it"
        partition = key_of(feed_timeline(workload.feeds[name], cluster), instance)
        event = observation(names.asset_key(cluster, name), partition, gone, description=said)
        self.ledger.instance.report_runless_asset_event(event)
