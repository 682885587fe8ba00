"""Effects of facts on the rows of the ledger; pure: folding the same history always gives the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any, TypeAlias

from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.feed_instances import (
    FeedArchiveExpired,
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
    FeedVersionEvicted,
    PartitionPushed,
    PushRefused,
    RowsKept,
)
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged, RunEnded, RunQueued
from falcon_assets.history.folding.instance_changes import OVER, commanded, dropped, over, pending, taken, was_stopped
from falcon_assets.history.folding.kept_versions import KeptRows, after_publication
from falcon_assets.history.folding.version_rows import VersionRows
from falcon_assets.history.tables.row_values import (
    COPIED_BYTES,
    EVICTED_BYTES,
    Consumed,
    FeedInstanceRow,
    FeedKey,
    First,
    ProcessKey,
    PushKey,
    TotalKey,
)
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState

_Gone: TypeAlias = FeedInstanceEvicted | FeedInstanceWithdrawn | FeedVersionEvicted | FeedArchiveExpired
_FeedFact: TypeAlias = FeedInstanceAvailable | FeedInstanceEvicted | FeedInstanceWithdrawn
_FAILING = (InstanceState.FAILED, InstanceState.TIMED_OUT)
_TRANSITIONS = {
    InstanceState.RUNNING: EventKind.STARTED,
    InstanceState.FAILED: EventKind.FAILED,
    InstanceState.TIMED_OUT: EventKind.TIMED_OUT,
    InstanceState.SUCCEEDED: EventKind.SUCCEEDED,
    InstanceState.KILLED: EventKind.KILLED,
    InstanceState.SKIPPED: EventKind.SKIPPED,
    InstanceState.SUSPENDED: EventKind.SUSPENDED,
}
_TO_WAITING = {InstanceState.SUSPENDED: EventKind.RESUMED, InstanceState.RUNNING: EventKind.INTERRUPTED}
"""State before -> the transition to WAITING; from other states it is none."""


@dataclass
class Rows:
    """The rows that some facts are about, and the changes of instances.

    Attributes:
        consumed: Only of process instances that succeeded, or for which something came too late, in these facts.
        pushed: The event of the last push of a partition; None: it is answered.
        moved: Bytes copied and evicted in these facts.
    """

    feeds: dict[FeedKey, FeedInstanceRow] = field(default_factory=dict)
    processes: dict[ProcessKey, InstanceRecord] = field(default_factory=dict)
    consumed: dict[ProcessKey, tuple[Consumed, ...]] = field(default_factory=dict)
    events: dict[ProcessKey, int] = field(default_factory=dict)
    started: dict[ProcessKey, int] = field(default_factory=dict)
    first: dict[ProcessKey, First] = field(default_factory=dict)
    pushed: dict[PushKey, int | None] = field(default_factory=dict)
    versions: VersionRows = field(default_factory=VersionRows)
    moved: Counter[TotalKey] = field(default_factory=Counter)
    happened: list[InstanceEvent] = field(default_factory=list)
    kept: dict[FeedKey, KeptRows] = field(default_factory=dict)

    def apply(self, facts: Iterable[Logged]) -> None:
        """Applies the facts, which are in the order of history."""
        for logged in facts:
            fact, event_id, run_id = logged.fact, logged.event_id, logged.run_id
            if isinstance(fact, FeedInstanceAvailable):
                self._available(fact, event_id, run_id if fact.process else None)
                if fact.pushed is not None and fact.push_event is not None:
                    self._answered((fact.cluster, fact.feed, fact.pushed), fact.push_event)
            elif isinstance(fact, PartitionPushed):
                self.pushed[fact.cluster, fact.feed, fact.partition] = event_id
            elif isinstance(fact, PushRefused):
                self._answered((fact.cluster, fact.feed, fact.partition), fact.push_event)
            elif isinstance(fact, RowsKept):
                self._rows_kept(fact)
            elif isinstance(fact, _Gone):
                self._went(fact, event_id, run_id)
            elif isinstance(fact, InstanceChanged):
                self._changed(fact, event_id, run_id)
            elif isinstance(fact, CameTooLate):
                self._came_too_late(fact, event_id)
            elif run_id is not None and isinstance(fact, RunQueued):
                self._queued(fact, event_id, run_id)
            elif run_id is not None and isinstance(fact, RunEnded):
                self._ended(fact, event_id, run_id)

    def _available(self, fact: FeedInstanceAvailable, event_id: int, run_id: str | None) -> None:
        key = (fact.cluster, fact.feed, fact.instance)
        row = self.feeds.get(key)
        is_evicted = row is not None and row.state is FeedState.EVICTED
        if row is not None and is_evicted and run_id is None and _was_seen_before(row, fact):
            return
        if key in self.kept or fact.kept_versions:
            self.kept[key] = after_publication(self.kept.get(key, {}), fact)
        was_away = row is not None and row.state is not FeedState.AVAILABLE
        before = row.version if row is not None else None
        self.versions.available(fact, event_id, run_id, self._attempt(fact, run_id), before)
        if fact.restored_by is not None:
            self._restored(fact, event_id)
        if row is not None and not row.version:
            row = None  # nobody had seen it before it was evicted
        new = FeedInstanceRow(
            version=fact.version,
            landed_at=fact.seen_at if row is None else row.landed_at,
            seen_at=fact.seen_at,
            event_id=event_id,
            bytes=fact.bytes,
            records=fact.records,
            files=fact.files,
            signature=fact.signature,
            run_id=run_id,
            version_event=event_id,
            late=bool(fact.late),
            looked_before=fact.looked_before,
        )
        if row is not None and row.version == fact.version:
            new = replace(
                new,
                previous_version=row.previous_version,
                changes=row.changes,
                late=row.late,
                # What came back after it was evicted or taken back is new, although it is the same.
                seen_at=fact.seen_at if was_away else row.seen_at,
                looked_before=fact.looked_before if was_away else row.looked_before,
                version_event=event_id if was_away else row.version_event,
                same_rows=_same_rows(row, fact.version, fact.same_rows_as),
            )
        elif row is not None:
            new = replace(new, previous_version=row.version, changes=row.changes + 1)
            known = (_same_rows(row, fact.version, fact.same_rows_as) or "").split()
            if not was_away and fact.version in known:
                # Nothing new came: readers of the one have read the other.
                came = {name: getattr(row, name) for name in _CAME}
                new = replace(new, **came, same_rows=" ".join(sorted({*known, row.version} - {fact.version})))
        if fact.restored_by is None and new.version_event == event_id:
            kind = EventKind.LANDED if fact.source_versions is None else EventKind.REPLICATED
            made = {"process": fact.process, "records": fact.records, "bytes": fact.bytes, "files": fact.files}
            run = {"id": run_id, "version": fact.version, "previous_version": before or None, **made}
            self._feed_event(kind, fact, fact.seen_at, event_id, run)
        self.feeds[key] = new

    def _rows_kept(self, fact: RowsKept) -> None:
        key = (fact.cluster, fact.feed, fact.instance)
        row = self.feeds.get(key)
        if row is not None:
            self.feeds[key] = replace(row, same_rows=_same_rows(row, fact.compacted, fact.same_rows_as))

    def _restored(self, fact: FeedInstanceAvailable, event_id: int) -> None:
        at = self.versions.known[fact.cluster, fact.feed, fact.instance, fact.version].seen_at or fact.seen_at
        run = {"id": None, "version": fact.version, "restored_by": fact.restored_by}
        said = f"version {fact.version} by {fact.restored_by}"
        self._feed_event(EventKind.RESTORED, fact, at, event_id, run, said)

    def _feed_event(
        self, kind: EventKind, fact: _FeedFact, at: datetime, event_id: int, run: dict[str, Any], reason: str = ""
    ) -> None:
        what = (kind, "feed", fact.feed, fact.cluster, fact.instance, at, str(event_id), reason)
        self.happened.append(InstanceEvent(*what, event_id=event_id, run=run))

    def _attempt(self, fact: FeedInstanceAvailable, run_id: str | None) -> int | None:
        if fact.process is None or fact.nominal is None:
            return None
        row = self.processes.get((fact.process, fact.cluster, fact.nominal))
        return row.attempt if row is not None and row.run_id == run_id else None

    def _answered(self, key: PushKey, pushed: int) -> None:
        last = self.pushed.get(key)
        if last is not None and last <= pushed:  # what was pushed again meanwhile is checked again
            self.pushed[key] = None

    def _went(self, fact: _Gone, event_id: int, run_id: str | None) -> None:
        key = (fact.cluster, fact.feed, fact.instance)
        row = self.feeds.get(key)
        if isinstance(fact, FeedInstanceEvicted):
            self._evicted(fact, event_id, run_id)
        elif isinstance(fact, FeedArchiveExpired):
            if self.versions.expired(fact) or not fact.version:
                self.moved[EVICTED_BYTES, fact.feed, fact.cluster, "archived"] += fact.bytes or 0
        elif isinstance(fact, FeedVersionEvicted):
            if fact.version_evicted in self.kept.get(key, {}):  # else a pass that was killed has recorded it
                self.moved[EVICTED_BYTES, fact.feed, fact.cluster, "version"] += fact.bytes or 0
                rest = self.kept[key].items()
                self.kept[key] = {version: one for version, one in rest if version != fact.version_evicted}
        elif row is not None and row.state is FeedState.AVAILABLE:
            self.feeds[key] = replace(row, state=FeedState.MISSING, event_id=event_id)
            run = {"id": run_id, "version": row.version}
            self._feed_event(EventKind.WITHDRAWN, fact, fact.at, event_id, run, fact.withdrawn)

    def _evicted(self, fact: FeedInstanceEvicted, event_id: int, run_id: str | None) -> None:
        key = (fact.cluster, fact.feed, fact.instance)
        row = self.feeds.get(key) or FeedInstanceRow("", landed_at=fact.at, seen_at=fact.at, event_id=event_id)
        if row.state is FeedState.EVICTED:
            return  # a pass that was killed has recorded it
        self.versions.evicted(fact, run_id, row.version)
        self.moved[EVICTED_BYTES, fact.feed, fact.cluster, fact.evicted] += fact.bytes or 0
        self.feeds[key] = replace(
            row,
            state=FeedState.EVICTED,
            evicted_at=fact.at,
            evicted_by=run_id,
            evicted_bytes=fact.bytes,
            event_id=event_id,
        )
        run = {"id": run_id, "version": row.version, "archived_to": fact.archived_to}
        self._feed_event(EventKind.EVICTED, fact, fact.at, event_id, run, fact.reason)

    def _changed(self, fact: InstanceChanged, event_id: int, run_id: str | None) -> None:
        key = (fact.process, fact.cluster, fact.nominal)
        row = self.processes.get(key) or pending(fact.nominal)
        if fact.before is not None:
            if (now := commanded(row, fact)) is not None:
                self._put(key, now, event_id)
            return
        if run_id is not None:
            if was_stopped(row, run_id) and fact.state is not InstanceState.SUCCEEDED:
                return
            row = taken(row, run_id)
        first = self.first.get(key, First())
        # Copying a row costs more than all else here: it is done once.
        said: dict[str, Any] = {"state": fact.state, "reason": fact.reason, "reason_data": fact.reason_data}
        if fact.state is InstanceState.RUNNING:
            said |= {"started": fact.at, "ended": None, "executor": fact.executor}
            self.started[key] = event_id
            self.first[key] = First(first.started or fact.at, first.succeeded)
        else:
            said["ended"] = fact.at
        if fact.state is InstanceState.SUCCEEDED or fact.state in _FAILING:
            said["deaths"] = 0
        if fact.state is InstanceState.SUCCEEDED:
            self.moved[COPIED_BYTES, fact.process, fact.cluster, ""] += fact.bytes_copied or 0
            self.first[key] = First(first.started or fact.at, first.succeeded or fact.at)
            said["failures"] = 0
            # What a run reads, it reads after it said that it starts.
            read = self.started.get(key, 0)
            consumed = {
                (name, one.feed, one.instance): Consumed(
                    name, one.feed, one.instance, one.version, read, one.cluster or fact.cluster
                )
                for name, instances in (fact.inputs or {}).items()
                for one in instances
            }
            self.consumed[key] = tuple(consumed.values())
        elif fact.state in _FAILING:
            said["failures"] = row.failures + 1
        elif fact.state is InstanceState.WAITING and run_id is None:
            said["queued_run"] = None  # a coordinator takes it from a run that is not there any more
        if fact.definition is not None:
            said["definition"] = fact.definition
        self._put(key, replace(row, **said), event_id)

    def _queued(self, fact: RunQueued, event_id: int, run_id: str) -> None:
        for nominal, meant in zip_longest(fact.nominals, fact.attempts):
            key = (fact.process, fact.cluster, nominal)
            row = self.processes.get(key) or pending(nominal)
            if meant is not None and row.attempt >= meant:
                continue  # this run said so before, or another run was given the attempt
            if run_id not in (row.queued_run, row.run_id):  # a run says twice that it is there: queued and started
                row = replace(row, queued_run=run_id, attempt=meant or row.attempt + 1)
                if row.state in (*OVER, *_FAILING):  # to be run again: what becomes of the run becomes of the instance
                    row = replace(row, state=InstanceState.WAITING, reason="", reason_data=None)
                self._put(key, row, event_id)

    def _came_too_late(self, fact: CameTooLate, event_id: int) -> None:
        key = (fact.process, fact.cluster, fact.nominal)
        about = (fact.feed, fact.instance)
        if key in self.consumed:
            self.consumed[key] = tuple(
                replace(one, too_late=fact.too_late) if (one.feed, one.instance) == about else one
                for one in self.consumed[key]
            )
            said = f"version {fact.too_late} of {fact.feed} {format_instant(fact.instance)} came after the cut-off"
            what = (EventKind.TOO_LATE, "process", *key, fact.at, str(event_id), said)
            self.happened.append(InstanceEvent(*what, event_id=event_id))

    def _ended(self, fact: RunEnded, event_id: int, run_id: str) -> None:
        began = any(row.run_id == run_id for row in self.processes.values())
        for key, row in list(self.processes.items()):
            if row.queued_run == run_id:
                self._put(key, dropped(row, fact, began), event_id, run_id)
            elif row.run_id == run_id and row.state is InstanceState.RUNNING:
                self._put(key, over(row, fact), event_id)

    def _put(self, key: ProcessKey, row: InstanceRecord, event_id: int, run_id: str | None = None) -> None:
        """``run_id``: the run that ended without starting the instance, if there is one."""
        before = self.processes.get(key)
        kind = _transition(before, row)
        at = row.started if kind is EventKind.STARTED else row.ended
        if kind and at and not (before and _is_repeated(before, row)):
            what = (kind, "process", *key, at, str(event_id), row.reason)
            run = _run(row, run_id or row.run_id)
            self.happened.append(InstanceEvent(*what, row.attempt, row.failures, event_id, run))
        self.processes[key] = row
        self.events[key] = event_id


_CAME = ("seen_at", "looked_before", "version_event", "late")


def _same_rows(row: FeedInstanceRow, version: str, same_rows_as: str | None) -> str | None:
    """The versions with the rows of the present one, itself left out, as a pair that has the same rows shows them."""
    known = {row.version, *(row.same_rows or "").split()}
    if same_rows_as and known & {version, same_rows_as}:
        known |= {version, same_rows_as}
    return " ".join(sorted(known - {row.version})) or None


def _transition(before: InstanceRecord | None, row: InstanceRecord) -> EventKind | None:
    if row.state is InstanceState.WAITING:
        return _TO_WAITING.get(before.state) if before else None
    return _TRANSITIONS.get(row.state)


def _is_repeated(before: InstanceRecord, row: InstanceRecord) -> bool:
    is_another_run = row.state is InstanceState.RUNNING and before.run_id != row.run_id
    return (before.state, before.failures) == (row.state, row.failures) and not is_another_run


def _was_seen_before(row: FeedInstanceRow, fact: FeedInstanceAvailable) -> bool:
    return fact.signature is not None and fact.signature == row.signature


def _run(row: InstanceRecord, run_id: str | None) -> dict[str, str | int | None] | None:
    """The run of an instance, as JSON; None: it had no run when it timed out, was skipped or killed."""
    if run_id is None or row.state in (InstanceState.TIMED_OUT, InstanceState.SKIPPED):
        return None
    if row.state is InstanceState.KILLED and row.started is None:
        return None
    started = row.started.isoformat() if row.started and run_id == row.run_id else None
    run = {"id": run_id, "started": started, "attempt": row.attempt, "definition": row.definition}
    return {**run, "held_back": True} if row.is_held_back else run
