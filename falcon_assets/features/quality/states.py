"""States of instances by the ledger: verdicts, and what they mean for everything that has to do with the same data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Text, and_, case, cast, func, literal, or_, select, true, union_all

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.features.quality.rules import SEEN_WITHIN, Propagation, QualityState, VersionFacts, Way
from falcon_assets.features.quality.store import (
    Attempts,
    InstanceKey,
    VerdictRow,
    VersionKey,
    attempts_about,
    is_unchecked,
    verdicts_about,
)
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.database import among, rows_of
from falcon_assets.history.tables import DATA_VERSIONS, FEED_INSTANCES, QUALITY_VERDICTS, VERSION_EDGES
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.rollups import ROLLED_UP

Place: TypeAlias = tuple[str, str]
"""Cluster and feed."""

_V, _E, _F, _Q = DATA_VERSIONS.c, VERSION_EDGES.c, FEED_INSTANCES.c, QUALITY_VERDICTS.c
_KEY = ("cluster", "feed", "instance")
_IS_ROLLUP = func.right(_E.process, len(ROLLED_UP)) == ROLLED_UP
_IS_INVALID = and_(_Q.verdict == InstanceVerdict.INVALID.value, _Q.accepted_by.is_(None))
_IS_OF_VERSION = and_(*(_Q[name] == _V[name] for name in (*_KEY, "version")))
_IS_PRESENT = and_(*(_F[name] == _V[name] for name in (*_KEY, "version")), _F.state == FeedState.AVAILABLE.value)


@dataclass(frozen=True)
class KnownState:
    """The state of the present version of an instance, and the version that decides about it.

    Attributes:
        origin: Its own, where its own verdict decides.
        is_replaced: The origin was replaced: what was made from it has to be made again.
        row: INVALID: the verdict about the origin.
        attempts: UNCHECKED and BACKFILLED: failed attempts to check the origin; None: there are none.
    """

    state: QualityState
    way: Way
    origin: VersionKey
    is_replaced: bool = False
    row: VerdictRow | None = None
    attempts: Attempts | None = None

    @property
    def name(self) -> str:
        """The origin, as ``clicks 2013-01-01T15:00Z``."""
        return f"{self.origin[1]} {format_instant(self.origin[2])}"

    @property
    def failed(self) -> tuple[str, str]:
        """The first check that made the origin invalid, and what it found."""
        checks = self.row.checks if self.row else ()
        return next(((one.name, one.said) for one in checks if one.is_error), ("", ""))

    @property
    def origin_data(self) -> dict[str, Any] | None:
        """None: its own verdict decides."""
        if self.way is Way.OWN:
            return None
        cluster, feed, instance, version = self.origin
        about = {"feed": feed, "cluster": cluster, "instance": format_instant(instance), "version": version}
        return {**about, "relation": self.way.value, "rule": self.failed[0] or None, "replaced": self.is_replaced}

    def __str__(self) -> str:
        """``made from invalid clicks 2013-01-01T15:00Z: rule enough``; of its own verdict only ``invalid``."""
        if self.way is Way.OWN:
            return self.state.value.lower()
        since = ", which was replaced since" if self.is_replaced else ""
        rule = f": rule {self.failed[0]}" if self.failed[0] else ""
        return f"{self.way.value} {self.state.value.lower()} {self.name}{since}{rule}"


def awaited_feeds(connection: Connection, store: EntityStore, asked: Iterable[Place], now: datetime) -> list[Place]:
    """Those among feeds, and members of roll-ups, whose new versions are checked by themselves and may be invalid."""
    places = {(cluster, one) for cluster, feed in asked for one in _with_members(store, feed)}
    names = sorted({name for _, name in places if name in store.relations.checked})
    status = statuses(connection, [store.feeds[name] for name in names], now)
    running = [name for name in names if status["feed", name].status is Status.RUNNING]
    return [one for one in sorted(places) if one[1] in running and one[0] in store.clusters and store.includes(*one)]


def _with_members(store: EntityStore, name: str) -> Iterator[str]:
    if name in store.feeds:
        yield name
        rollup = store.feeds[name].rollup
        for member in rollup.of if rollup else ():
            yield from _with_members(store, member)


def known_states(
    connection: Connection,
    store: EntityStore,
    places: Collection[Place],
    now: datetime,
    is_asked: Callable[[InstanceKey], bool],
) -> dict[InstanceKey, KnownState]:
    """Returns the states of present versions of some feeds that are not known to be valid, and concern a verdict.

    Costs grow with what is invalid or unchecked, not with history.
    """
    if not store.relations.checked:
        return {}
    pending = _pending(connection, awaited_feeds(connection, store, places, now), now - SEEN_WITHIN)
    numbers = _concerned(connection, pending)
    if not numbers:
        return {}
    keys, facts = dict[int, VersionKey](), dict[int, VersionFacts]()
    for number, key, known in _versions(connection, numbers):
        keys[number] = key
        facts[number] = VersionFacts(pending[number], is_present=True) if number in pending else known
    found = _propagation(connection, facts).states()
    asked = {
        one: state
        for one, state in found.items()
        if state.state is not QualityState.VALID and facts[one].is_present and is_asked(keys[one][:3])
    }
    origins = {keys[one.origin] for one in asked.values()}
    rows, tried = verdicts_about(connection, origins), attempts_about(connection, origins)
    known_ones = dict[InstanceKey, KnownState]()
    for one, state in asked.items():
        origin = keys[state.origin]
        row = rows.get(origin) if state.state is QualityState.INVALID else None
        is_replaced = state.state is QualityState.INVALID and not facts[state.origin].is_present
        known_ones[keys[one][:3]] = KnownState(state.state, state.way, origin, is_replaced, row, tried.get(origin))
    return known_ones


def _pending(connection: Connection, places: Collection[Place], since: datetime) -> dict[int, QualityState]:
    """Unchecked present versions; backfilled is what replaced an invalid one, the last that has a verdict."""
    if not places:
        return {}
    last = select(_IS_INVALID.label("was_invalid")).where(*(_Q[name] == _F[name] for name in _KEY))
    before = last.order_by(_Q.event_id.desc()).limit(1).lateral("before")
    statement = (
        select(_V.id, before.c.was_invalid)
        .join_from(FEED_INSTANCES, DATA_VERSIONS, _IS_PRESENT)
        .outerjoin(before, true())
        .where(among((_F.cluster, _F.feed), [*places]), _F.seen_at >= since, is_unchecked())
    )
    states = {True: QualityState.BACKFILLED}
    return {row.id: states.get(row.was_invalid, QualityState.UNCHECKED) for row in connection.execute(statement)}


def _concerned(connection: Connection, pending: Collection[int]) -> list[int]:
    """Returns the numbers of versions that what is invalid or pending may concern.

    From what is invalid, everything that was made of it, and the parts of roll-ups; from what is pending, and from what
    only contains something invalid, the way to its parts is not gone.
    """
    made = DATA_VERSIONS.alias("made")
    given = rows_of(DATA_VERSIONS, {"id": [*pending]})
    invalid = select(_V.id, _word("whole")).join_from(QUALITY_VERDICTS, DATA_VERSIONS, _IS_OF_VERSION)
    origins = union_all(invalid.where(_IS_INVALID), select(given.c.id, _word("pending"))).subquery("origins")
    reached = select(origins.c.id, origins.c.how).cte("reached", recursive=True)
    goes_on = case((reached.c.how == "pending", _word("pending")), else_=_word("made")).label("how")
    outputs = (
        select(_E.output.label("id"), goes_on)
        .join_from(VERSION_EDGES, made, made.c.id == _E.output)
        .where(_E.input == reached.c.id, _E.run_id.is_not_distinct_from(made.c.run_id))
        .where(or_(reached.c.how != "pending", _IS_ROLLUP))
        .correlate(reached)
    )
    parts = select(_E.input, _word("whole")).where(_E.output == reached.c.id, reached.c.how == "whole", _IS_ROLLUP)
    near = union_all(outputs, parts.correlate(reached)).lateral("near")
    reached = reached.union(select(near.c.id, near.c.how).select_from(reached).join(near, true()))
    return sorted(connection.execute(select(reached.c.id).distinct()).scalars())


def _word(word: str):  # type: ignore[no-untyped-def]  # a column of it
    return cast(literal(word), Text).label("how")


def _versions(connection: Connection, numbers: Collection[int]) -> Iterator[tuple[int, VersionKey, VersionFacts]]:
    given = rows_of(DATA_VERSIONS, {"id": [*numbers]})
    columns = (_V.id, *(_V[name] for name in (*_KEY, "version")), _Q.verdict, _Q.accepted_by, _F.state)
    statement = (
        select(*columns)
        .join_from(given, DATA_VERSIONS, _V.id == given.c.id)
        .outerjoin(QUALITY_VERDICTS, _IS_OF_VERSION)
        .outerjoin(FEED_INSTANCES, _IS_PRESENT)
    )
    verdicts = {InstanceVerdict.VALID.value: QualityState.VALID, InstanceVerdict.INVALID.value: QualityState.INVALID}
    for number, cluster, feed, instance, version, verdict, accepted_by, state in connection.execute(statement):
        is_accepted = accepted_by is not None
        own = QualityState.VALID if is_accepted else verdicts.get(verdict)
        yield number, (cluster, feed, instance, version), VersionFacts(own, is_accepted, is_present=state is not None)


def _propagation(connection: Connection, facts: dict[int, VersionFacts]) -> Propagation:
    """A version that was made more than once has the sources of the last time."""
    outputs, inputs = (rows_of(DATA_VERSIONS, {"id": [*facts]}).alias(name) for name in ("outputs", "inputs"))
    statement = (
        select(_E.output, _E.input, _IS_ROLLUP)
        .join_from(outputs, VERSION_EDGES, _E.output == outputs.c.id)
        .join(inputs, _E.input == inputs.c.id)
        .join(DATA_VERSIONS, and_(_V.id == _E.output, _V.run_id.is_not_distinct_from(_E.run_id)))
    )
    made_from, rollups = dict[int, list[int]](), set[int]()
    for output, source, is_rollup in connection.execute(statement):
        made_from.setdefault(output, []).append(source)
        if is_rollup:
            rollups.add(output)
    return Propagation(facts, made_from, rollups)
