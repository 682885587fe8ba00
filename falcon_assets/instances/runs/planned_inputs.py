"""Inputs of a process instance: which are available, and corrections of the ledger where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from falcon_assets.errors import FalconError, MissingInputsError, StorageError
from falcon_assets.history import queries
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.events.feed_instances import FeedInstanceWithdrawn
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.store.known_instances import Recorded, all_recorded
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.input_windows import latest_instances
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.process_instance import InputPlan, ProcessInstance
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.available_instances import AvailableInstances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.snapshots import is_there, is_there_repaired, snapshot_listing, why_not_there

Evicted: TypeAlias = Callable[[str, Sequence[datetime]], Mapping[datetime, datetime]]
"""Returns the evicted instances among some of a feed, with times."""
Available: TypeAlias = tuple[tuple[datetime, str], ...]


def nothing_evicted(feed: str, instances: Sequence[datetime]) -> Mapping[datetime, datetime]:
    """For callers without a ledger."""
    return {}


@dataclass(frozen=True)
class PlannedInputs:
    """``clock`` is :meth:`falcon_assets.catalog.store.EntityStore.landing_clock`."""

    store_of: StoresOf
    clock: Callable[[Feed], Clock | None]
    recorded: Recorded = all_recorded

    def instances(self, feed: Feed) -> AvailableInstances:
        return AvailableInstances(
            kind_of(self.store_of(feed)), feed, self.clock(feed), lambda one: one in self.recorded(feed, [one])
        )

    def is_there(self, feed: Feed, instance: datetime) -> bool:
        store = self.store_of(feed)
        path = InstancePaths(feed, store.cluster).data(instance)
        return is_there_repaired(kind_of(store), feed, instance, path, self.clock(feed))

    def require(self, plan: ProcessInstance, subject: str, evicted: Evicted) -> dict[str, Available]:
        """The available instances by input; raises MissingInputsError, and StorageError where a store is down."""
        available = {one.name: tuple(self._available(one)) for one in plan.inputs}
        missing, gone, may_come = list[str](), list[str](), list[tuple[str, datetime]]()
        for one in plan.inputs:
            lacking = {} if one.optional else self._missing(one, available[one.name])
            dates = evicted(one.feed.name, list(lacking)) if lacking else {}
            may_come += ((one.feed.name, instance) for instance in lacking if instance not in dates)
            if one.short and not one.optional:
                missing.append(f"{one.name}: {one.feed.name} has not enough instances for {one.short}")
            missing += (line for instance, line in lacking.items() if instance not in dates)
            gone += (f"{lacking[instance]}, evicted on {format_instant(at)}" for instance, at in sorted(dates.items()))
        if missing or gone:
            raise MissingInputsError(subject, missing, gone, may_come)
        return available

    def consumed(self, one: InputPlan, available: Available, read: Sequence[ReadableInstance]) -> Iterator[Consumption]:
        """Instances that are not there have no version."""
        versions = {instance: was.version.version for (instance, _), was in zip(available, read, strict=True)}
        root = self.store_of(one.feed).root or ""
        for instance, path in zip(one.instances, one.paths, strict=True):
            yield Consumption(one.feed.name, instance, versions.get(instance), path=f"{root}{path}")

    def snapshots(self, plan: ProcessInstance) -> dict[str, str]:
        """Signatures of the snapshot feeds, which may be replaced at any time."""
        read = [(one.feed, path) for one in plan.inputs if one.feed.snapshot for path in one.paths]
        found = {feed.name: snapshot_listing(kind_of(self.store_of(feed)), feed, path) for feed, path in read}
        return {name: listing.signature for name, listing in found.items() if listing}

    def require_unchanged(self, plan: ProcessInstance, subject: str, snapshots: Mapping[str, str]) -> None:
        """Raises StorageError where a snapshot feed was refreshed since."""
        now = self.snapshots(plan)
        if changed := sorted(name for name in {**snapshots, **now} if snapshots.get(name) != now.get(name)):
            rule = f"feed {', '.join(changed)} was refreshed while it was read: nothing is published, try it again"
            raise StorageError(f"{subject}: {rule}")

    def _available(self, one: InputPlan) -> list[tuple[datetime, str]]:
        kind, clock = kind_of(self.store_of(one.feed)), self.clock(one.feed)
        recorded = self.recorded(one.feed, one.instances)
        known = [(at, path) for at, path in zip(one.instances, one.paths, strict=True) if at in recorded]
        asked = kind.asked_together(known)
        return [(instance, path) for instance, path in asked if is_there(kind, one.feed, instance, path, clock)]

    def _missing(self, one: InputPlan, available: Available) -> dict[datetime, str]:
        there, store = {instance for instance, _ in available}, self.store_of(one.feed)
        lacking = {at: path for at, path in zip(one.instances, one.paths, strict=True) if at not in there}
        said = {
            instance: f"{one.name}: {one.feed.name} {format_instant(instance)} at {store.shown(path)}"
            for instance, path in lacking.items()
        }
        if one.feed.snapshot:
            kind, clock = kind_of(store), self.clock(one.feed)
            for instance, path in lacking.items():
                said[instance] += f" ({why_not_there(kind, one.feed, instance, path, clock)[1]})"
        return said


FeedInstance: TypeAlias = "tuple[str, datetime]"
_CORRECTED_AT_ONCE = 1000
"""Missing instances corrected per window; the next run finds more."""


@dataclass(frozen=True)
class Withdrawals:
    """Corrects the ledger where instances that a workload reads do not exist any more."""

    ledger: Ledger
    workload: Workload
    is_there: Callable[[str, datetime], bool]

    def record(self, nominal: datetime, lacking: Sequence[FeedInstance], at: datetime) -> bool:
        """Records missing instances that the ledger has as available, so that they are waited and searched for.

        ``lacking`` empty: a window of ``latest`` or ``future`` lacks instances. Returns whether the ledger knows now
        that the instance lacks something; else it would be launched, and fail, for ever.
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
        instances: dict[str, list[datetime]] = {}
        for name, instance in lacking:
            instances.setdefault(name, []).append(instance)
        cluster = self.workload.reads_on
        spans = {(cluster, name): (min(own), max(own)) for name, own in instances.items()}
        with self.ledger.engine.connect() as connection:
            there = queries.available(connection, spans)
        known = [(name, instance) for name, instance in lacking if instance in there.get((cluster, name), ())]
        return [one for one in known if not self.is_there(*one)]

    def _behind_windows(self, nominal: datetime) -> list[FeedInstance] | None:
        """Missing instances that the ledger would use for required windows; None: none is missing."""
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
        """The missing instances of a window, and whether the ledger has enough without them."""
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
