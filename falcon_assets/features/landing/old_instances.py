"""Old instances and late flags: found by passes over all folders, a little in every tick."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection

from falcon_assets.errors import FalconError, StorageError
from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.features.landing.landing_events import Landings
from falcon_assets.features.landing.store import incomplete, known, passes, set_incomplete, set_passes
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import last_collected
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.storage.errors import is_about_path
from falcon_assets.storage.instances.old_folders import AFTER_ALL
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.landing import read

REQUESTS = 100
"""Requests to a store in a round, without those that read what is found."""
SECONDS = 0.25
"""Length of a round without its last request: a twentieth of a tick of five seconds."""
INCOMPLETE_AT_ONCE = 20
"""Instances without their flag that a round checks again."""


@dataclass
class OldInstances:
    """Finds instances of a cluster that are too old for its collector to search for them in every tick."""

    collector: Collector
    _turns: dict[str, int] = field(default_factory=dict, init=False)
    _rounds: int = field(default=0, init=False)
    _asked: int = field(default=0, init=False)
    """Rotates through the incomplete instances."""

    def collect(self, ledger: Ledger, seconds: float = SECONDS, requests: int = REQUESTS) -> Collection:
        """Brings the ledger up to date, continues the passes, and records their findings within the limits."""
        if not (self.collector.feeds and self.collector.has_turn(ledger)):
            return Collection(0, 0, {})
        self._rounds += 1
        ledger.catch_up()  # what the collector has just recorded is not found once more
        round_ = _Round(self.collector, ledger, time.monotonic() + seconds, requests)
        with ledger.engine.connect() as connection:
            stored = passes(connection, round_.cluster)
            round_.incomplete = incomplete(connection, round_.cluster)
            turns = last_collected(connection, round_.cluster)
            round_.landings = self.collector.landings(ledger, round_.time, turns)
            self._ask_again(round_, connection)
            moved = self._go_on(round_, connection, stored)
        round_.problems = round_.landings.finish() | round_.problems
        with ledger.engine.begin() as connection:
            set_passes(connection, round_.cluster, moved)
            set_incomplete(connection, round_.cluster, round_.came, round_.went)
        return Collection(round_.recorded, 0, round_.problems, round_.left_out)

    def _ask_again(self, round_: _Round, connection: Connection) -> None:
        waiting = sorted(
            (name, instance)
            for name, instances in round_.incomplete.items()
            for instance in instances
            if name not in self.collector.feeds or instance < round_.old_before(name)
        )
        for _ in range(min(INCOMPLETE_AT_ONCE, len(waiting))):
            if round_.is_over:
                return
            self._asked = (self._asked + 1) % len(waiting)
            round_.ask_for(*waiting[self._asked], connection)

    def _go_on(self, round_: _Round, connection: Connection, stored: dict[str, FolderPass]) -> dict[str, FolderPass]:
        moved: dict[str, FolderPass] = {}
        feeds = (feed for feed in self.collector.feeds.values() if not feed.snapshot)  # whose path every tick looks at
        for feed in sorted(feeds, key=lambda feed: self._turn(feed, stored.get(feed.name))):
            try:
                paths, store = InstancePaths(feed, self.collector.cluster), self.collector.files_of(feed)
                template, tells = f"{paths.root or ''}{paths.template.text}", kind_of(store).tells_changes
            except FalconError as error:
                round_.problems[feed.name] = str(error)
                continue
            if why := self.collector.breakers.open_for(store.endpoint):
                round_.left_out[why] = round_.left_out.get(why, 0) + 1
                continue
            before = stored.get(feed.name)
            before = before if before and before.template == template else FolderPass(template)
            current = before.next(datetime.now(UTC), tells_changes=tells)
            if current is None:
                continue
            self._turns[feed.name] = self._rounds
            after = round_.go_on(connection, feed, current)
            if after != before:
                moved[feed.name] = after
            if round_.is_over:
                break
        return moved

    def _turn(self, feed: Feed, current: FolderPass | None) -> tuple[int, bool, datetime]:
        never = datetime.min.replace(tzinfo=UTC)
        had = (current.began is None, current.before or never) if current else (True, never)
        return self._turns.get(feed.name, 0), *had


@dataclass
class _Round:
    """The limits and findings of a round."""

    collector: Collector
    ledger: Ledger
    give_up: float
    requests: int
    recorded: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    incomplete: dict[str, set[datetime]] = field(default_factory=dict)
    came: set[tuple[str, datetime]] = field(default_factory=set)
    went: set[tuple[str, datetime]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.time = self.collector.settings.now()
        self.cluster = self.collector.cluster.name
        self.landings = Landings(self.collector.settings.clock, self.time, {})

    @property
    def is_over(self) -> bool:
        return self.requests <= 0 or time.monotonic() > self.give_up

    def old_before(self, feed: str) -> datetime:
        """Returns the nominal time before which the collector does not search in every tick."""
        return self.time - min(self.collector.horizons[feed], self.time - datetime.min.replace(tzinfo=UTC))

    def ask_for(self, name: str, instance: datetime, connection: Connection) -> None:
        feed = self.collector.feeds.get(name)
        if feed is None or known(connection, self.cluster, name, [instance]):
            self.went.add((name, instance))  # lands here no more, or was recorded by somebody else
            return
        try:
            path, files = InstancePaths(feed, self.collector.cluster).data(instance), self.collector.files_of(feed)
            if self.collector.breakers.open_for(files.endpoint):
                return
            self.requests -= 1
            with self.collector.breakers.watching(files.endpoint):
                self._record(feed, [(instance, path)])
                if (name, instance) not in self.went and not kind_of(files).why_unavailable(feed, path)[0]:
                    self.went.add((name, instance))
        except FalconError as error:
            self.problems[name] = str(error)

    def go_on(self, connection: Connection, feed: Feed, current: FolderPass) -> FolderPass:
        files, is_empty = self.collector.files_of(feed), not current.folder
        try:
            with self.collector.breakers.watching(files.endpoint):
                for visit in kind_of(files).visits(feed, self.time, current):
                    self.requests -= visit.asked
                    if visit.problem:
                        self.problems.setdefault(feed.name, str(visit.problem))
                    if not self._record(feed, self._unknown(connection, feed, visit.found)):
                        return current
                    if visit.folder is None:
                        continue  # a round that ended here would begin at the same place the next time
                    is_empty &= visit.folder.endswith(AFTER_ALL)
                    current = current.through(visit.folder)
                    if self.is_over:
                        return current
        except FalconError as error:
            self.problems[feed.name] = str(error)
            return current
        return current.ended(is_empty=is_empty)

    def _unknown(
        self, connection: Connection, feed: Feed, found: Sequence[tuple[datetime, str]]
    ) -> list[tuple[datetime, str]]:
        """Returns old instances that are neither recorded nor seen without their flag."""
        young, asked_for = self.old_before(feed.name), self.incomplete.get(feed.name, ())
        old = [one for one in found if one[0] < young and one[0] not in asked_for]
        there = known(connection, self.cluster, feed.name, [instance for instance, _ in old])
        return [one for one in old if one[0] not in there]

    def _record(self, feed: Feed, found: Sequence[tuple[datetime, str]]) -> bool:
        """Records complete instances, remembers incomplete ones; returns False where time ran out."""
        seen: list[datetime] = []
        try:
            files = self.collector.files_of(feed)
            with Batches(record_outside_runs(self.ledger.instance)) as events:
                kind = kind_of(files)
                for one in read(kind, feed, found, {}, seen.append, self.landings.admits(kind, feed)):
                    events.add(self.landings.event(files, feed, one))
                    self.recorded += 1
                    self.went.add((feed.name, one.instance))
                    if time.monotonic() > self.give_up and one.instance != found[-1][0]:
                        return False
        except StorageError as error:
            if not is_about_path(error):
                raise
            self.problems.setdefault(feed.name, str(error))
        finally:
            self.came |= {(feed.name, instance) for instance in seen}
        return True
