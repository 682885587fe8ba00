"""Passes over the roll-ups of a cluster: what its members bring makes instances complete, or other versions of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.rollups.store import (
    changed_since,
    made_of,
    progress,
    rows_of_instances,
    set_progress,
    with_changed_members,
)
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceWithdrawn
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import available
from falcon_assets.history.tables.row_values import FeedInstanceRow
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.reasons import MembersMissing
from falcon_assets.planning.rollups import (
    ROLLED_UP,
    MemberInstance,
    MemberOf,
    MemberPart,
    has_same_rows,
    members_of,
    version_made,
)
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings

AT_ONCE = 5000
"""Changed instances of members that are looked at in one go."""
_NAMED = 5
_PARTS_AT_ONCE = 50_000
"""Instances of members that are looked up in one query, to say what roll-ups lack."""
_Rows = Mapping[MemberInstance, FeedInstanceRow]
_Key: TypeAlias = tuple[str, str, datetime]
"""Feed, cluster and instance."""


@dataclass(frozen=True)
class RollupPass:
    """Records instances of the roll-ups of a cluster: members first, so that one pass is enough."""

    store: EntityStore
    cluster: str
    settings: Settings

    def record(self, ledger: Ledger) -> int:
        """Returns the number of versions recorded. After a kill it records the rest, and nothing twice."""
        ledger.catch_up()
        rollups = [one for one in self.store.rollups_on(self.cluster) if self.store.includes(self.cluster, one.name)]
        declared = {one.name: _declared(one, self.cluster) for one in rollups}
        members = {one.name: one.rollup.of if one.rollup else () for one in rollups}
        with ledger.engine.connect() as connection:
            known = progress(connection, self.cluster)
            seen = {one.name: known.get((one.name, declared[one.name]), 0) for one in rollups}
            # In one query: usually nothing has changed, or what only a few are made of.
            due = with_changed_members(connection, self.cluster, members, seen)
        recorded = dict[str, int]()
        for one in rollups:
            if one.name in due or any(recorded.get(member) for member in members[one.name]):
                recorded[one.name] = self._record(ledger, one, declared[one.name], seen[one.name])
        return sum(recorded.values())

    def _record(self, ledger: Ledger, feed: Feed, declared: str, since: int) -> int:
        members = members_of(feed, self.cluster)
        by_name = {one.feed.name: one for one in members}
        recorded, is_more = 0, True
        while is_more:
            with ledger.engine.connect() as connection:
                changed = changed_since(connection, self.cluster, by_name, since, AT_ONCE)
                if not changed:
                    break
                found = {at for name, instance, _ in changed for at in by_name[name].membership.rollups(instance)}
                parts = {at: _parts(members, at) for at in sorted(found)}
                keys = {(one.feed, one.instance) for ones in parts.values() for one in ones}
                rows = rows_of_instances(connection, self.cluster, keys | {(feed.name, at) for at in parts})
                own = {at: row.version for at in parts if (row := rows.get((feed.name, at)))}
                earlier = made_of(connection, self.cluster, feed.name, own) if own else {}
            before = recorded
            with Batches(record_outside_runs(ledger.instance)) as events:
                for event in self._events(feed, parts, rows, earlier):
                    events.add(event)
                    recorded += 1
            since, is_more = changed[-1][2], len(changed) == AT_ONCE
            with ledger.engine.begin() as connection:
                set_progress(connection, self.cluster, feed.name, declared, since)
            if recorded > before:
                ledger.catch_up()
        return recorded

    def _events(
        self,
        feed: Feed,
        parts: Mapping[datetime, Sequence[MemberPart]],
        rows: _Rows,
        earlier: Mapping[datetime, Mapping[MemberInstance, str]],
    ) -> Iterator[dg.AssetMaterialization | dg.AssetObservation]:
        now = self.settings.now()
        for instance, unknown in parts.items():
            row = rows.get((feed.name, instance))
            is_recorded = row is not None and row.state is FeedState.AVAILABLE
            known = [_known(one, rows.get((one.feed, one.instance))) for one in unknown]
            version = version_made(known, is_recorded=is_recorded)
            if version is not None and not (row and is_recorded and row.version == version):
                is_same = row is not None and is_recorded and has_same_rows(known, earlier.get(instance, {}))
                same_as = row.version if row is not None and is_same else None
                yield self._available(feed, instance, version, known, rows, now, same_as)
            elif version is None and is_recorded:
                yield self._withdrawn(feed, instance, now)

    def _available(
        self,
        feed: Feed,
        instance: datetime,
        version: str,
        parts: Sequence[MemberPart],
        rows: _Rows,
        now: datetime,
        same_rows_as: str | None,
    ) -> dg.AssetMaterialization:
        present = [one for one in parts if one.was_there]
        stored = [rows[one.feed, one.instance] for one in present]
        inputs: dict[str, tuple[Consumption, ...]] = {}
        for one in present:
            inputs[one.feed] = (*inputs.get(one.feed, ()), Consumption(one.feed, one.instance, one.version))
        landed = FeedInstanceAvailable(
            self.cluster,
            feed.name,
            instance,
            version,
            now,
            _sum([one.bytes for one in stored]),
            _sum([one.records for one in stored]),
            _sum([one.files for one in stored]),
            process=f"{feed.name}{ROLLED_UP}",
            nominal=instance,
            inputs=inputs,
            same_rows_as=same_rows_as,
        )
        said = f"{feed.name} {format_instant(instance)} is complete: {len(present)} of {len(parts)} parts"
        return materialization(
            names.asset_key(self.cluster, feed.name), self._partition(feed, instance), landed, description=said
        )

    def _withdrawn(self, feed: Feed, instance: datetime, now: datetime) -> dg.AssetObservation:
        gone = FeedInstanceWithdrawn(self.cluster, feed.name, instance, "rollup", now)
        said = f"{feed.name} {format_instant(instance)} is not complete any more: a part of it was taken back"
        return observation(
            names.asset_key(self.cluster, feed.name), self._partition(feed, instance), gone, description=said
        )

    def _partition(self, feed: Feed, instance: datetime) -> str:
        return key_of(feed_timeline(feed, self.cluster), instance)


def missing_members(connection: Connection, rollups: Mapping[_Key, Feed]) -> Iterator[tuple[_Key, MembersMissing]]:
    """Yields why instances of roll-ups (name, cluster, instance) are not there, as the ledger has their members."""
    members = {(name, cluster): members_of(feed, cluster) for (name, cluster, _), feed in rollups.items()}
    known = list[tuple[_Key, list[MemberPart]]]()
    pending = 0
    for key in rollups:
        known.append((key, _parts(members[key[:2]], key[2])))
        pending += len(known[-1][1])
        if pending > _PARTS_AT_ONCE:
            yield from _lacking(connection, known)
            known, pending = [], 0
    yield from _lacking(connection, known)


def _lacking(
    connection: Connection, known: Sequence[tuple[_Key, Sequence[MemberPart]]]
) -> Iterator[tuple[_Key, MembersMissing]]:
    spans = dict[tuple[str, str], tuple[datetime, datetime]]()
    for (_, cluster, _), parts in known:
        for one in parts:
            first, last = spans.get((cluster, one.feed), (one.instance, one.instance))
            spans[cluster, one.feed] = min(first, one.instance), max(last, one.instance)
    there = available(connection, spans)
    for key, parts in known:
        required = (one for one in parts if not one.is_optional)
        lacking = [one for one in required if one.instance not in there.get((key[1], one.feed), ())]
        shown = tuple(f"{one.feed} {format_instant(one.instance)}" for one in lacking[:_NAMED])
        yield key, MembersMissing(shown, len(lacking) - len(shown), len(parts))


def _parts(members: Sequence[MemberOf], instance: datetime) -> list[MemberPart]:
    return [
        MemberPart(one.feed.name, at, one.is_optional) for one in members for at in one.membership.members(instance)
    ]


def _known(part: MemberPart, row: FeedInstanceRow | None) -> MemberPart:
    if row is None:
        return part
    others = frozenset((row.same_rows or "").split())
    return MemberPart(part.feed, part.instance, part.is_optional, row.state, row.version, others)


def _sum(numbers: Collection[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [one for one in numbers if one is not None]
    return sum(known) if len(known) == len(numbers) else None


def _declared(feed: Feed, cluster: str) -> str:
    """Changes with what decides about its instances: then its members are looked at from the beginning."""
    lines = [feed_timeline(one, cluster) for one in (feed, *(feed.rollup.feeds if feed.rollup else ()))]
    said = "; ".join(f"{one.frequency} {one.timezone} {one.start.isoformat()} {one.end.isoformat()}" for one in lines)
    return f"{feed.rollup}: {said}"
