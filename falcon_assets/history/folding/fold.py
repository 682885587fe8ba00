"""Folds facts into the tables, in transactions that move the cursor along."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, or_, select, update

from falcon_assets.history.database import (
    LEDGER_LOCK,
    among,
    lock_in_transaction,
    of_row,
    parts,
    require_known_revision,
    upsert,
)
from falcon_assets.history.events.event_log import Fact, Logged, records_of_features
from falcon_assets.history.events.feed_instances import (
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
    PartitionPushed,
    PushRefused,
    RowsKept,
)
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged, RunEnded, RunQueued
from falcon_assets.history.folding.kept_versions import load_kept, store_kept
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.folding.subscriptions import keep_wanted
from falcon_assets.history.folding.totals import add_totals, changes, states_in
from falcon_assets.history.folding.version_rows import load_versions, store_versions
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES, PROJECTION, PUSHED
from falcon_assets.history.tables.instances import has_other_rows
from falcon_assets.history.tables.row_values import Consumed, FeedInstanceRow, FeedKey, First, ProcessKey, PushKey
from falcon_assets.hooks import hooks
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, KeyedInstance

History: TypeAlias = Callable[[Connection, int, int], tuple[Sequence[Logged], int | None, bool]]
"""``history(connection, after, limit)``: the facts of the next ``limit`` events after that event id, in order; the id
of the last of these events, None where there are no more; and whether these are all there are now.

Must not pass over events that may still appear before it. Must use the given connection, which holds the ledger's lock:
if it needed another one of a pool, all of them could be taken by others that wait for the lock.
"""

_CHUNK = 1000


def fold(engine: Engine, history: History) -> int:
    """Folds the events that are there; returns the number of facts. Concurrent calls wait for each other.

    What comes meanwhile is left to the next call: a run that says something all the time would never let this one end.

    Raises SettingsError where a newer version has migrated the tables meanwhile: its rows may mean something else.
    """
    count = 0
    while True:
        with engine.begin() as connection:
            lock_in_transaction(connection, LEDGER_LOCK)
            require_known_revision(connection)
            facts, is_all = _fold_next(connection, history)
        count += facts
        if is_all:
            return count


def rebuild(engine: Engine, history: History) -> int:
    """Folds all of history again, in one transaction: readers see the old projection until it commits."""
    count = 0
    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        require_known_revision(connection)
        folded = connection.execute(select(FOLD.c.event_id)).scalar() or 0
        for table in PROJECTION:
            connection.execute(delete(table))
        is_all = False
        while not is_all:
            facts, is_all = _fold_next(connection, history, folded)
            count += facts
    return count


def _fold_next(connection: Connection, history: History, folded: int = 0) -> tuple[int, bool]:
    """Folds the next events; returns the number of facts, and whether these are all.

    Events up to ``folded`` notify no receiver again.
    """
    known = connection.execute(select(FOLD.c.event_id, FOLD.c.fact_id)).one_or_none()
    after, said = known or (0, 0)
    facts, last, is_all = history(connection, after, _CHUNK)
    if last is None:
        return 0, True
    if facts:
        rows = _load(connection, facts)
        before = states_in(rows)
        rows.apply(facts)
        _store(connection, rows)
        add_totals(connection, changes(before, rows))
        happened = [*rows.happened, *_folded_by_features(connection, facts, rows.happened)]
        happened.sort(key=lambda one: one.event_id or 0)
        if new := [one for one in happened if (one.event_id or 0) > folded]:
            keep_wanted(connection, new)
    said = facts[-1].event_id if facts else said
    upsert(connection, FOLD, [{"only": True, "event_id": last, "fact_id": said}])
    return len(facts), is_all


def _folded_by_features(
    connection: Connection, facts: Sequence[Logged], happened: Sequence[InstanceEvent]
) -> Iterator[InstanceEvent]:
    kinds = records_of_features()
    theirs = [one for one in facts if isinstance(one.fact, kinds)]
    if theirs or happened:
        for followed in hooks().fold(connection=connection, facts=theirs, happened=happened):
            yield from followed


def _load(connection: Connection, logged: Sequence[Logged]) -> Rows:
    facts = [one.fact for one in logged]
    of_feeds = FeedInstanceAvailable | FeedInstanceEvicted | FeedInstanceWithdrawn | RowsKept
    about_feeds = [one for one in facts if isinstance(one, of_feeds)]
    feeds = {(one.cluster, one.feed, one.instance) for one in about_feeds}
    processes = {(one.process, one.cluster, one.nominal) for one in facts if isinstance(one, InstanceChanged)}
    queued = [one for one in facts if isinstance(one, RunQueued)]
    too_late = [one for one in facts if isinstance(one, CameTooLate)]
    processes |= {(one.process, one.cluster, nominal) for one in queued for nominal in one.nominals}
    processes |= {
        (one.process, one.cluster, one.nominal)
        for one in facts
        if isinstance(one, FeedInstanceAvailable) and one.process and one.nominal
    }
    runs = {one.run_id for one in logged if isinstance(one.fact, RunEnded)}
    rows = Rows()
    key = (FEED_INSTANCES.c.cluster, FEED_INSTANCES.c.feed, FEED_INSTANCES.c.instance)
    for part in parts(feeds):
        for row in connection.execute(select(FEED_INSTANCES).where(among(key, part))):
            rows.feeds[row.cluster, row.feed, row.instance] = feed_row_of(row)
    own = (PROCESS_INSTANCES.c.process, PROCESS_INSTANCES.c.cluster, PROCESS_INSTANCES.c.nominal)
    wanted: list[ColumnElement[bool]] = [among(own, part) for part in parts(processes)]
    of_run = (PROCESS_INSTANCES.c.queued_run, PROCESS_INSTANCES.c.run_id)
    wanted += [or_(*(column.in_(part) for column in of_run)) for part in parts(runs)]
    for condition in wanted:
        for row in connection.execute(select(PROCESS_INSTANCES).where(condition)):
            process = (row.process, row.cluster, row.nominal)
            rows.processes[process] = record_of(row)
            rows.first[process] = First(row.first_started, row.first_succeeded)
            if row.started_event is not None:
                rows.started[process] = row.started_event
    _load_consumed(connection, rows, {(one.process, one.cluster, one.nominal) for one in too_late})
    _load_pushed(connection, rows, {push for one in facts if (push := _push_of(one))})
    rows.kept = load_kept(connection, facts)
    rows.versions = load_versions(connection, facts, {key: row.version for key, row in rows.feeds.items()})
    return rows


def _load_pushed(connection: Connection, rows: Rows, keys: set[PushKey]) -> None:
    for part in parts(keys):
        for row in connection.execute(select(*_PUSH, PUSHED.c.event_id).where(among(_PUSH, part))):
            rows.pushed[row[0], row[1], row[2]] = row[3]


def _push_of(fact: Fact) -> PushKey | None:
    if isinstance(fact, PartitionPushed | PushRefused):
        return fact.cluster, fact.feed, fact.partition
    if isinstance(fact, FeedInstanceAvailable) and fact.pushed is not None:
        return fact.cluster, fact.feed, fact.pushed
    return None


def _load_consumed(connection: Connection, rows: Rows, keys: set[ProcessKey]) -> None:
    for part in parts(keys):
        for row in connection.execute(select(CONSUMED).where(among(_READER, part))):
            key = (row.process, row.cluster, row.nominal)
            rows.consumed[key] = (*rows.consumed.get(key, ()), of_row(Consumed, row))


def record_of(row: Any) -> InstanceRecord:
    return of_row(InstanceRecord, row, state=InstanceState(row.state))


def instance_of(row: Any) -> KeyedInstance:
    return of_row(KeyedInstance, row, state=InstanceState(row.state))


def feed_row_of(row: Any) -> FeedInstanceRow:
    return of_row(FeedInstanceRow, row, state=FeedState(row.state))


_PUSH = (PUSHED.c.cluster, PUSHED.c.feed, PUSHED.c.partition)
_READER = (CONSUMED.c.process, CONSUMED.c.cluster, CONSUMED.c.nominal)


def _store(connection: Connection, rows: Rows) -> None:
    upsert(connection, FEED_INSTANCES, [_feed_values(key, row) for key, row in rows.feeds.items()])
    changed = [
        {
            **_process_values(key, rows.processes[key], event),
            "started_event": rows.started.get(key),
            "first_started": (first := rows.first.get(key, First())).started,
            "first_succeeded": first.succeeded,
        }
        for key, event in rows.events.items()
    ]
    upsert(connection, PROCESS_INSTANCES, changed)
    for part in parts(rows.consumed):
        connection.execute(delete(CONSUMED).where(among(_READER, part)))
    values = [
        {"process": key[0], "cluster": key[1], "nominal": key[2], **vars(one), "stale": False}
        for key, consumed in rows.consumed.items()
        for one in consumed
    ]
    upsert(connection, CONSUMED, values)
    _mark_stale(connection, rows.feeds, rows.consumed)
    store_versions(connection, rows.versions)
    store_kept(connection, rows.kept)
    waiting = [(key, event) for key, event in rows.pushed.items() if event is not None]
    names = [column.name for column in _PUSH]
    upsert(connection, PUSHED, [{**dict(zip(names, key, strict=True)), "event_id": event} for key, event in waiting])
    for answered in parts({key for key, event in rows.pushed.items() if event is None}):
        connection.execute(delete(PUSHED).where(among(_PUSH, answered)))


def _feed_values(key: FeedKey, row: FeedInstanceRow) -> dict[str, Any]:
    return {"cluster": key[0], "feed": key[1], "instance": key[2], **vars(row), "state": row.state.value}


def _process_values(key: ProcessKey, row: InstanceRecord, event_id: int) -> dict[str, Any]:
    return {"process": key[0], "cluster": key[1], **vars(row), "state": row.state.value, "event_id": event_id}


def _mark_stale(connection: Connection, feeds: Collection[FeedKey], readers: Collection[ProcessKey]) -> None:
    """Updates ``consumed.stale`` for these feed instances and process instances.

    Stale: the available version has other rows than the version read (including none), was seen after the start of
    reading, was not evicted since, and no record says that it came too late. If it was seen before the start, the
    version read is the newer one, which the collector has yet to see.
    """
    read = (CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
    reader = (CONSUMED.c.process, CONSUMED.c.cluster, CONSUMED.c.nominal)
    for part in parts(feeds):
        _mark_where(connection, among(read, part))
    for another in parts(readers):
        _mark_where(connection, among(reader, another))


def _mark_where(connection: Connection, concerned: ColumnElement[bool]) -> None:
    read, there = CONSUMED.c, FEED_INSTANCES.c
    stale = and_(
        there.state == FeedState.AVAILABLE.value,
        has_other_rows(read.version),
        has_other_rows(read.too_late),
        there.version_event > read.read_event,
    )
    same = and_(there.cluster == read.input_cluster, there.feed == read.feed, there.instance == read.instance)
    connection.execute(update(CONSUMED).values(stale=stale).where(same, concerned, read.stale.is_distinct_from(stale)))
