"""Queries for instances, and their pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias

from falcon_assets.errors import QueryError
from falcon_assets.history.tables.row_values import FeedInstanceRow
from falcon_assets.instances.rules import waiting as rules
from falcon_assets.instances.rules.executors import (
    ExecutorsBusy,
    ExecutorsOffline,
    ExecutorsStarting,
    ExecutorsUnable,
)
from falcon_assets.instances.rules.queues import QueueForbidden, QueueFull, QueueUnknown
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.model.instant import Instant
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import known_field, require_part, require_values
from falcon_assets.planning import reasons
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState

State: TypeAlias = InstanceState | FeedState
Value: TypeAlias = datetime | int

FIELDS = dict.fromkeys(("entity", "kind", "cluster", "state"))
KINDS = {"process": ("process", "replication", "compaction", "import", "export"), "feed": ("feed",)}
ORDERS = dict.fromkeys(("entity", "instance", "started", "attempt"))
"""Orders of lists; feeds have the first two only."""
VALUES = ("started", "attempt")
"""Orders by columns of rows that are not part of an instance's key."""
_OF_QUEUES = (QueueFull, QueueUnknown, QueueForbidden)
_OF_EXECUTORS = (ExecutorsBusy, ExecutorsStarting, ExecutorsOffline, ExecutorsUnable)
_WAITING = (
    *(*rules.TAKEN, *rules.NOT_READY, rules.SourceMissing, rules.NoFreeSlot, *_OF_QUEUES, *_OF_EXECUTORS),
    *(reasons.LaunchPending, reasons.NotScheduled),
)
_OF_RUNS = (
    reasons.HeldBack,
    reasons.NewerIsWritten,
    reasons.NewerIsDelivered,
    rules.NewerIsReady,
    rules.InputSkipped,
    *rules.GIVEN_UP,
)
_COMMANDED = (reasons.RerunRequested, reasons.Killed, reasons.Suspended, reasons.Resumed)
_OF_FEEDS = (reasons.NotLanded, reasons.NotComplete, reasons.RecordsMissing, reasons.NotRefreshedSince)
_NOT_MADE = (reasons.NotWritten, reasons.NotCopied, reasons.MembersMissing)
_GONE = (reasons.RemovedByRetention, reasons.TakenBack)
_OF_BOTH = (reasons.TimePending, reasons.OffTimeline, reasons.Undecidable)
_IN_VAIN = (InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.SKIPPED)


def _codes(*several: type[reasons.Reason]) -> tuple[str, ...]:
    return tuple(one.kind for one in several)


REASONS: Mapping[str, Collection[str]] = {
    "process": (*_codes(*_WAITING, *_OF_RUNS, *_COMMANDED, *_OF_BOTH), *(one.value.lower() for one in _IN_VAIN)),
    "feed": _codes(*_OF_FEEDS, *_NOT_MADE, *_GONE, *_OF_BOTH),
}
"""The codes of the reasons that instances in lists have; one without data is named after its state."""
CODES = tuple(sorted({code for codes in REASONS.values() for code in codes}))
_NEVER = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
"""Sorts instances never started last, ascending and descending."""


@dataclass(frozen=True)
class InstanceQuery:
    """Selects instances; by default all that are due.

    Attributes:
        name: Of a process, of a feed (its replications), or of a replication as lists call it; None: all.
        type: ``process`` includes replications.
        text: A part of the entity's name.
        start: Without ``end``, the only instance, which need not be due yet.
        end: Included.
        filters: Field and value; of several with one field any may fit, of different fields all must.
        reasons: Codes of :data:`REASONS`, of which any may fit.
        sort: ``entity`` (then cluster and time), ``instance``, ``started`` or ``attempt``; '-' in front reverses it.
            Instances never started are last.
        after: :attr:`InstancePage.next` of the page before.
        uncounted: Without the number of all instances, which takes longer than the page where there are millions.
    """

    name: str | None = None
    type: Literal["process", "feed"] = "process"
    text: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    cluster: str | None = None
    colo: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    reasons: tuple[str, ...] = ()
    sort: str = "entity"
    after: str | None = None
    limit: int = 100
    uncounted: bool = False

    def __post_init__(self) -> None:
        """Raises QueryError for an unknown order or reason, or a limit below 1."""
        known_field(self.sort.removeprefix("-"), ORDERS)
        require_values((("reason", one) for one in self.reasons), {"reason": REASONS[self.type]})
        require_part(0, self.limit, least=1)

    @property
    def alone(self) -> bool:
        return self.start is not None and self.end is None

    @property
    def last(self) -> datetime | None:
        return self.end or self.start

    @property
    def by_time(self) -> bool:
        return self.sort.removeprefix("-") == "instance"

    @property
    def by_value(self) -> str | None:
        """None: the key counts first. Raises QueryError for instances of feeds."""
        field = self.sort.removeprefix("-")
        if field not in VALUES:
            return None
        if self.type == "feed":
            raise QueryError(f"instances of feeds have no {field}: sort them by entity or instance")
        return field

    @property
    def descending(self) -> bool:
        return self.sort.startswith("-")

    @property
    def states(self) -> frozenset[State] | None:
        """None: all. Raises QueryError for unknown states."""
        states = FeedState if self.type == "feed" else InstanceState
        wanted = [value for field, value in self.filters if field == "state"]
        try:
            return frozenset(states(value.upper()) for value in wanted) if wanted else None
        except ValueError as error:
            known = ", ".join(state.value for state in states)
            raise QueryError(f"there is no state {', '.join(wanted)}; there is: {known}") from error

    def fits(self, field: str, *values: str) -> bool:
        wanted = {value.casefold() for known, value in self.filters if known == field}
        return not wanted or any(value.casefold() in wanted for value in values)

    def value(self, record: InstanceRecord | InstanceInfo | None) -> Value | None:
        """The sort value of an instance; None: only the key counts."""
        if self.by_value is None:
            return None
        if self.by_value == "attempt":
            return record.attempt if record else 0
        return (record.started if record else None) or _NEVER[self.descending]

    def token(self, key: Key, record: InstanceRecord | InstanceInfo | None = None) -> str:
        """Stands for everything after this instance."""
        value = self.value(record) if self.by_value else None
        stored = value.isoformat() if isinstance(value, datetime) else value
        said = json.dumps([self.sort, *key[:2], key[2].astimezone(UTC).isoformat(), stored])
        return base64.urlsafe_b64encode(said.encode()).decode()

    @property
    def after_key(self) -> Key | None:
        """None: at the beginning. Raises QueryError for a token that no list of this order returned."""
        found = self._after
        return found[0] if found else None

    @property
    def after_value(self) -> Value | None:
        found = self._after
        return found[1] if found else None

    @property
    def _after(self) -> tuple[Key, Value | None] | None:
        if self.after is None:
            return None
        try:
            sort, entity, cluster, nominal, stored = json.loads(base64.urlsafe_b64decode(self.after.encode()))
            at = datetime.fromisoformat(nominal)
            value = datetime.fromisoformat(stored).astimezone(UTC) if isinstance(stored, str) else stored
        except (ValueError, TypeError, OverflowError, binascii.Error) as error:
            raise QueryError(f"{self.after!r} is not the `next` of a list") from error
        if sort != self.sort or at.tzinfo is None:
            raise QueryError(f"it is the `next` of a list with --sort {sort}, not --sort {self.sort}")
        if type(stored) is not {"started": str, "attempt": int}.get(self.by_value or "", type(None)):
            raise QueryError(f"{self.after!r} is not the `next` of a list")
        return (str(entity), str(cluster), at), value


@dataclass(frozen=True)
class InstanceInfo(Result):
    """An instance of a process, a replication or a feed.

    Attributes:
        entity: Replications are called ``FEED from CLUSTER``.
        reason: ``kind``, ``text`` and details; None: there is none.
        run: The present or the last run.
        started: On the falcon clock, of the last attempt; likewise ``ended``.
        definition: The version that it ran with last, or will run with; None: not recorded.
        executor: The executor that it ran on last; None: its cluster has none to choose from, or it did not run.
    """

    entity: str
    kind: str
    cluster: str
    instance: Instant
    state: State
    reason: dict[str, Any] | None = None
    attempt: int = 0
    run: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    definition: int | None = None
    executor: str | None = None

    keys: ClassVar[tuple[str, ...]] = (
        *("entity", "kind", "cluster", "instance", "state", "reason"),
        *("attempt", "run", "started", "ended", "definition", "executor"),
    )


@dataclass(frozen=True)
class ReplicatedInstance(Result):
    """``version`` is the version of the source that was copied last; None: none was."""

    source: str
    target: str
    state: InstanceState
    version: str | None


@dataclass(frozen=True)
class FeedInstanceInfo(InstanceInfo):
    """An instance of a feed on a cluster.

    Attributes:
        path: On the cluster, or a URL; a table: its URI. None: the definition leaves it open.
        stored: Its row; None: it has never been available.
        details: What features know of it, by name: data for JSON, with a ``text`` for tables.
        expires: The first pass of retention that finds it older than its limit; None: no pass does, or it is evicted.
    """

    path: str | None = None
    stored: FeedInstanceRow | None = None
    expires: datetime | None = None
    replications: tuple[ReplicatedInstance, ...] = ()
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    keys = tuple(one for one in InstanceInfo.keys if one != "executor")

    def as_data(self) -> dict[str, Any]:
        row = self.stored
        seen = row if row and row.version else None
        feed = {
            "path": self.path,
            "version": seen and seen.version,
            "bytes": row and row.bytes,
            "files": row and row.files,
            "records": row and row.records,
            "landed_at": _said(seen.landed_at if seen else None),
            "seen_at": _said(seen.seen_at if seen else None),
            "evicted_at": _said(row.evicted_at if row else None),
            "expires_at": _said(self.expires),
            "replications": [one.as_data() for one in self.replications],
        }
        return {**super().as_data(), "feed": {**feed, **self.details}}


def _said(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


@dataclass(frozen=True)
class InstancePage(Result):
    """A page.

    Attributes:
        total: Counts all pages; None: the query leaves it out.
        next: For :attr:`InstanceQuery.after`; None: this is the last page.
    """

    items: tuple[InstanceInfo | FeedInstanceInfo, ...]
    total: int | None
    next: str | None
