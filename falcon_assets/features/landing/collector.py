"""Collectors: data that landed from outside on a cluster becomes materializations of its external assets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Collection as Names
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.features.landing.circuit_breakers import Breakers
from falcon_assets.features.landing.landing_events import Landings, landings_on
from falcon_assets.features.landing.pushes import Pushes
from falcon_assets.features.landing.rules import horizon_of, missing_windows, watch_window
from falcon_assets.features.landing.store import incomplete, set_incomplete
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.store.foreign_sources import note_served, served, set_source_problems
from falcon_assets.instances.store.newest_instances import newest_recorded
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.retries import timeout_of
from falcon_assets.planning.rollups import ZONES_APART, leaves_of
from falcon_assets.planning.snapshots import unrecorded_windows
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.writers import not_from_outside
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.landing import Collected, collect, collect_snapshot

_Window = tuple[datetime, datetime]


@dataclass(frozen=True)
class Collection:
    """The result of a tick; a refresh of a snapshot feed is 1 recorded instance.

    Attributes:
        left: Feeds left for the next tick by the budget.
        problems: Feed -> why it could not be checked.
        left_out: Why a store is not asked now -> the number of feeds skipped for that.
        unread: Feeds whose present data is not known now.
    """

    recorded: int
    left: int
    problems: dict[str, str]
    left_out: dict[str, int] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Collector:
    """Searches one cluster for instances of feeds that no process of this code location writes there.

    On a cluster of another colo, these are the feeds that are copied from it. They are read through its
    ``interfaces.readonly``, and only where nobody serves the cluster with the same database.
    """

    store: EntityStore
    cluster: Cluster
    settings: Settings
    breakers: Breakers = field(default_factory=Breakers)
    _failed: set[str] = field(default_factory=set, init=False)
    """Feeds that failed in the last tick: they are last once, else they would use up every budget."""

    def collect(
        self,
        ledger: Ledger,
        budget_seconds: float,
        waited_for: Mapping[str, _Window] | None = None,
        only: Names[str] | None = None,
    ) -> Collection:
        """Brings the ledger up to date, records data that landed or changed since the last turn, and answers pushes.

        Feeds take turns, the longest waiting first, those that just failed last; the rest waits for the next tick.
        Nothing is done on a cluster of another colo that is served with the same database.
        Events are written before the turn is recorded: after a kill they may be recorded twice, as the same version,
        without effect.

        ``budget_seconds`` limits the start of further feeds; of a feed in ``waited_for``, every missing instance in
        that window is searched for, however old. ``only`` these feeds are looked at; None: all.
        """
        give_up = time.monotonic() + budget_seconds
        if not self.has_turn(ledger):
            return Collection(0, 0, {})
        ledger.catch_up()
        now = self.settings.now()
        with ledger.engine.connect() as connection:
            last_turns = queries.last_collected(connection, self.cluster.name)
            unfinished = incomplete(connection, self.cluster.name)
        landings, record = self.landings(ledger, now, last_turns), record_outside_runs(ledger.instance)
        recorded = self._pushes.answer(ledger, landings, give_up)
        feeds = sorted(
            (feed for feed in self.feeds.values() if only is None or feed.name in only),
            key=lambda feed: self._turn(feed, last_turns),
        )
        windows = {feed.name: self._windows(feed, now, last_turns.get(feed.name)) for feed in feeds}
        with ledger.engine.connect() as connection:
            newest = self._widen_snapshots(connection, windows, now)
            known = self._known(connection, windows, waited_for or {}, newest)
        done, problems, left_out = dict[str, datetime](), dict[str, str](), dict[str, int]()
        came, went = set[tuple[str, datetime]](), set[tuple[str, datetime]]()
        for feed in feeds:
            before = last_turns.get(feed.name, now)
            seen, landed = set[datetime](), list[datetime]()
            try:
                files = self.files_of(feed)
                if why := self.breakers.open_for(files.endpoint):
                    left_out[why] = left_out.get(why, 0) + 1
                    continue
                kind = kind_of(files)
                sought = (kind, feed, windows[feed.name], known.get(feed.name, {}))
                found = self._found(*sought, (before, now), seen.add, landings.admits(kind, feed))
                with self.breakers.watching(files.endpoint), Batches(record) as events:
                    if known.get(feed.name):
                        kind.require_there()
                    for one in found:
                        events.add(landings.event(files, feed, one))
                        landed.append(one.instance)
                        if time.monotonic() > give_up:
                            break
                    else:
                        done[feed.name] = now
            except FalconError as error:
                problems[feed.name] = str(error)
            else:
                there = unfinished.get(feed.name, set())
                came |= {(feed.name, instance) for instance in seen - there}
                if feed.name in done:
                    went |= {(feed.name, one) for one in there - seen if _is_within(one, windows[feed.name])}
            if landed:
                record([landings.summary(self.cluster.name, feed, landed)])
                recorded += 1 if feed.snapshot else len(landed)
            if time.monotonic() > give_up:
                break
        problems = landings.finish() | problems
        self._remember(ledger, done, (came, went), problems)
        left = len(feeds) - len(done.keys() | problems) - sum(left_out.values())
        return Collection(recorded, left, problems, left_out, frozenset(self.feeds.keys() - done.keys()))

    def _remember(
        self,
        ledger: Ledger,
        done: Mapping[str, datetime],
        incomplete: tuple[set[tuple[str, datetime]], set[tuple[str, datetime]]],
        failed: Mapping[str, str],
    ) -> None:
        with ledger.engine.begin() as connection:
            queries.set_last_collected(connection, self.cluster.name, done)
            set_incomplete(connection, self.cluster.name, *incomplete)
            if self.is_foreign:
                set_source_problems(connection, self.cluster.name, failed, self.settings.now(), done.keys() - failed)
        self._failed.clear()
        self._failed.update(failed)

    def _found(
        self,
        kind: StorageKind,
        feed: Feed,
        windows: list[_Window],
        known: Mapping[datetime, str | None],
        turns: tuple[datetime, datetime],
        seen: Callable[[datetime], None],
        admits: Callable[[datetime, str], bool],
    ) -> Iterator[Collected]:
        before, now = turns
        if feed.snapshot:
            return collect_snapshot(kind, feed, windows, known, self.settings.clock, now)
        cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else None
        # Those whose cut-off passed since the last turn are checked once more.
        return collect(kind, feed, windows, known, min(before, now) - cut_off if cut_off else None, seen, admits)

    @property
    def is_foreign(self) -> bool:
        return self.cluster.name not in self.store.clusters

    def has_turn(self, ledger: Ledger) -> bool:
        """Notes that its own cluster is served; of another colo's, whether that is nobody's work with this database."""
        with ledger.engine.begin() as connection:
            if self.is_foreign:
                return not served(connection, [self.cluster.name])
            note_served(connection, self.cluster.name)
        return True

    def landings(self, ledger: Ledger, now: datetime, last_turns: Mapping[str, datetime]) -> Landings:
        if self.is_foreign:  # what its own installation admits there is not known here
            return Landings(self.settings.clock, now, last_turns)
        return landings_on(ledger, self.store, self.cluster, self.settings, now, last_turns)

    def _turn(self, feed: Feed, last_turns: Mapping[str, datetime | None]) -> tuple[bool, bool, datetime | None]:
        return feed.name in self._failed, feed.name in last_turns, last_turns.get(feed.name)

    @cached_property
    def files_of(self) -> StoresOf:
        settings, readonly = self.settings, self.is_foreign
        return StoresOf(self.cluster, settings.home, settings.environ, roots_of(settings), readonly=readonly)

    @cached_property
    def feeds(self) -> dict[str, Feed]:
        if self.is_foreign:
            return self.store.foreign_sources.get(self.cluster.name, {})
        name, producers = self.cluster.name, self.store.producers
        on_it = (feed for feed in self._included.values() if feed.on(name))
        return {feed.name: feed for feed in on_it if not not_from_outside(feed, name, producers(feed.name, name))}

    @cached_property
    def _included(self) -> dict[str, Feed]:
        if self.is_foreign:
            return self.feeds
        return {name: feed for name, feed in self.store.feeds.items() if self.store.includes(self.cluster.name, name)}

    @cached_property
    def _pushes(self) -> Pushes:
        return Pushes(self._included, self.store.producers, self.cluster, self.files_of, self.breakers)

    @cached_property
    def horizons(self) -> dict[str, timedelta]:
        """Feed -> age up to which every tick searches for its instances."""
        timeouts: dict[str, list[timedelta]] = {name: [] for name in self.feeds}
        for workload in self.store.workloads:
            if workload.kind == "compaction":
                continue  # it waits for weeks, and nobody for it
            longest = timeout_of(workload) + workload.delay
            for one in workload.inputs:
                if one.feed not in self.store.relations.rollups:
                    timeouts.setdefault(one.feed, []).append(longest)
                    continue
                for leaf in leaves_of(self.store.feeds[one.feed], self.store.feeds):
                    timeouts.setdefault(leaf.name, []).append(longest + ZONES_APART)
        return {name: horizon_of(feed, timeouts[name]) for name, feed in self.feeds.items()}

    def _widen_snapshots(
        self, connection: Connection, windows: dict[str, list[_Window]], now: datetime
    ) -> dict[str, dict[datetime, str | None]]:
        """Widens windows of snapshot feeds to all unrecorded instances; returns the newest recorded signatures."""
        names = [name for name in windows if self.feeds[name].snapshot]
        found = newest_recorded(connection, self.cluster.name, names)
        for name in names:
            line, newest = feed_timeline(self.feeds[name], self.cluster.name), found.get(name)
            known = (newest.instance, newest.count) if newest else (None, 0)
            windows[name] = unrecorded_windows(line, now, *known)
        return {name: {newest.instance: newest.signature} for name, newest in found.items()}

    def _windows(self, feed: Feed, now: datetime, last_turn: datetime | None) -> list[_Window]:
        line = feed_timeline(feed, self.cluster.name)
        window = watch_window(line, now, last_turn, self.horizons[feed.name])
        return [window] if window else []

    def _known(
        self,
        connection: Connection,
        windows: dict[str, list[_Window]],
        waited_for: Mapping[str, _Window],
        newest: Mapping[str, dict[datetime, str | None]],
    ) -> dict[str, dict[datetime, str | None]]:
        """Returns feed -> signatures of known instances; adds missing instances that are waited for to the windows."""
        asked = {name: one for name, one in waited_for.items() if name in windows}
        spans = {name: one[0] for name, one in windows.items() if one}
        for name, (first, last) in asked.items():
            spans[name] = (min(first, spans[name][0]), max(last, spans[name][1])) if name in spans else (first, last)
        found = queries.signatures(connection, {(self.cluster.name, name): span for name, span in spans.items()})
        known = {feed: signatures for (_, feed), signatures in found.items()}
        for name, (first, last) in asked.items():
            line = feed_timeline(self.feeds[name], self.cluster.name)
            windows[name] += missing_windows(line, first, last, known.get(name, {}))
        return known | {name: {**known.get(name, {}), **one} for name, one in newest.items()}


def _is_within(instance: datetime, windows: list[_Window]) -> bool:
    return any(first <= instance <= last for first, last in windows)
