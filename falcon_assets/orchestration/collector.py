"""Collectors: what landed from outside on a cluster becomes materializations of its external assets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.ledger import queries
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration import event_metadata as meta
from falcon_assets.orchestration import names
from falcon_assets.orchestration.materialization import DATA_VERSION_TAG
from falcon_assets.orchestration.open_ledger import Ledger
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.planning.coordination import timeout_of
from falcon_assets.planning.lateness import came_after
from falcon_assets.planning.replication_process import delay_of
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.watch import horizon_of, watch_windows
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.collecting import Collected, collect


@dataclass(frozen=True)
class Collection:
    """What a look at a cluster found.

    Attributes:
        recorded: How many instances were recorded.
        left: Feeds that the budget left for the next time.
        problems: Feed -> why it could not be looked at.
    """

    recorded: int
    left: int
    problems: dict[str, str]


@dataclass(frozen=True)
class Collector:
    """Looks for instances on one cluster that nobody in this code location produces there."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    _failed: set[str] = field(default_factory=set, init=False)
    """Feeds that could not be looked at the last time: they come last once, or they would have every budget."""

    def collect(self, ledger: Ledger, budget_seconds: float) -> Collection:
        """Records what landed or changed since the last look.

        Feeds take turns, those first whose last look is longest ago, but for those that just failed; what the budget
        does not suffice for is left for the next time. Events are written before the look counts, so that nothing is
        lost in a crash: what is recorded twice is the same version and changes nothing.
        """
        give_up = time.monotonic() + budget_seconds
        ledger.catch_up()
        now = self.settings.now()
        with ledger.engine.connect() as connection:
            looked_at = queries.looks(connection, self.cluster.name)
        feeds = sorted(self._feeds, key=lambda feed: self._turn(feed, looked_at))
        windows = {feed.name: self._windows(feed, now, looked_at.get(feed.name)) for feed in feeds}
        spans = {(self.cluster.name, name): (one[-1][0], one[0][1]) for name, one in windows.items() if one}
        with ledger.engine.connect() as connection:
            known = queries.signatures(connection, spans)
        recorded, done, problems = 0, dict[str, datetime](), dict[str, str]()
        for feed in feeds:
            before = looked_at.get(feed.name, now)
            cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else None
            found = collect(
                self._files,
                feed,
                self.cluster,
                windows[feed.name],
                known.get((self.cluster.name, feed.name), {}),
                # Those whose cut-off passed since the last look are looked at once more.
                min(before, now) - cut_off if cut_off else None,
            )
            try:
                for one in found:
                    ledger.instance.report_runless_asset_event(self._event(feed, one, now, looked_at.get(feed.name)))
                    recorded += 1
                    if time.monotonic() > give_up:
                        break
                else:
                    done[feed.name] = now
            except FalconError as error:
                problems[feed.name] = str(error)
            if time.monotonic() > give_up:
                break
        with ledger.engine.begin() as connection:
            queries.set_looks(connection, self.cluster.name, done)
        self._failed.clear()
        self._failed.update(problems)
        return Collection(recorded, len(feeds) - len(done) - len(problems), problems)

    def _turn(self, feed: Feed, looked_at: Mapping[str, datetime | None]) -> tuple[bool, bool, datetime | None]:
        return feed.name in self._failed, feed.name in looked_at, looked_at.get(feed.name)

    @cached_property
    def _files(self) -> ClusterStore:
        return ClusterStore(self.cluster, self.settings.home, self.settings.environ)

    @cached_property
    def _feeds(self) -> list[Feed]:
        return list(self._external())

    def _external(self) -> Iterator[Feed]:
        for feed in self.store.feeds.values():
            entry = feed.on(self.cluster.name)
            produced = self.store.producers(feed.name, self.cluster.name)
            if entry and entry.type != "target" and not produced and feed.table_on(self.cluster.name) is None:
                yield feed

    @cached_property
    def _horizons(self) -> dict[str, timedelta]:
        timeouts: dict[str, list[timedelta]] = {feed.name: [] for feed in self._feeds}
        for process in self.store.coordinated:
            for one in process.inputs:
                timeouts.setdefault(one.feed, []).append(timeout_of(process) + delay_of(process))
        return {feed.name: horizon_of(feed, timeouts[feed.name]) for feed in self._feeds}

    def _windows(self, feed: Feed, now: datetime, looked_at: datetime | None) -> tuple[tuple[datetime, datetime], ...]:
        return watch_windows(feed_timeline(feed, self.cluster.name), now, looked_at, self._horizons[feed.name])

    def _event(self, feed: Feed, one: Collected, now: datetime, looked_at: datetime | None) -> dg.AssetMaterialization:
        timeline = feed_timeline(feed, self.cluster.name)
        is_real = self.settings.clock.origin is None
        before = came_after(looked_at, one.modified if is_real else None, now)
        looked_before = {meta.LOOKED_BEFORE: before.isoformat(timespec="milliseconds")} if before else {}
        modified = {"modified_at": one.modified.isoformat(timespec="milliseconds")} if one.modified else {}
        return dg.AssetMaterialization(
            asset_key=names.asset_key(self.cluster.name, feed.name),
            partition=key_of(timeline, one.instance),
            description=f"{feed.name} {format_instant(one.instance)} landed",
            metadata={
                meta.INSTANCE: format_instant(one.instance),
                "path": dg.MetadataValue.path(self._files.path(one.path)),
                "data_version": one.version.version,
                "bytes": one.version.bytes,
                "files": one.version.files,
                meta.SIGNATURE: one.signature,
                meta.AT: now.isoformat(timespec="milliseconds"),
                **modified,
                **looked_before,
            },
            tags={DATA_VERSION_TAG: one.version.version},
        )
