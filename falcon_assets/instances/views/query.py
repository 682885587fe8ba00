"""Which instances are asked for, which part of them, and what is answered."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from falcon_assets.errors import QueryError
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.paging import known_field, require_part
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState

State: TypeAlias = "InstanceState | FeedState"
Value: TypeAlias = datetime | int
"""What some orders go by."""

FIELDS = dict.fromkeys(("entity", "kind", "cluster", "state"))
"""What lists of instances can be filtered by."""
KINDS = {"process": ("process", "replication"), "feed": ("feed",)}
"""The kinds that a list of each type has."""
ORDERS = dict.fromkeys(("entity", "instance", "started", "attempt"))
"""What they can be sorted by; those of feeds by the first two."""
VALUES = ("started", "attempt")
"""The orders that are columns of rows, and no part of what names an instance."""
_NEVER = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
"""For what never was started, in ascending and descending order: it is last."""


@dataclass(frozen=True)
class InstanceQuery:
    """Which instances are wanted; without anything all that are due.

    Attributes:
        name: Of a process, of a feed (its replications), or of a replication as lists call it; None: all.
        type: ``process``: of processes and replications; ``feed``: of feeds.
        text: Only of entities that have it in their name.
        start: The first; alone it is the only one, and need not be due yet.
        end: The last; it is included.
        cluster: Only there.
        colo: Only on clusters of it.
        filters: Field and value; of several with one field any may fit, of different fields all must.
        sort: ``entity`` (then cluster and time), ``instance``, ``started`` or ``attempt``; with a '-' in front the
            other way round. What never was started is last.
        after: What :attr:`InstancePage.next` of the part before said.
        limit: How many at most.
    """

    name: str | None = None
    type: Literal["process", "feed"] = "process"
    text: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    cluster: str | None = None
    colo: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    sort: str = "entity"
    after: str | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        """Checks it.

        Raises:
            QueryError: there is no such order, or no such part.
        """
        known_field(self.sort.removeprefix("-"), ORDERS)
        require_part(0, self.limit, least=1)

    @property
    def alone(self) -> bool:
        """Whether one instance is asked for."""
        return self.start is not None and self.end is None

    @property
    def last(self) -> datetime | None:
        """The last instance; None: there is no limit."""
        return self.end or self.start

    @property
    def by_time(self) -> bool:
        """Whether the nominal time counts first."""
        return self.sort.removeprefix("-") == "instance"

    @property
    def by_value(self) -> str | None:
        """The column whose value counts first; None: what names the instance does.

        Raises:
            QueryError: instances of feeds have no such value.
        """
        field = self.sort.removeprefix("-")
        if field not in VALUES:
            return None
        if self.type == "feed":
            raise QueryError(f"instances of feeds have no {field}: sort them by entity or instance")
        return field

    @property
    def descending(self) -> bool:
        """Whether the greatest comes first."""
        return self.sort.startswith("-")

    @property
    def states(self) -> frozenset[State] | None:
        """The states that are wanted; None: all.

        Raises:
            QueryError: there is no such state.
        """
        states = FeedState if self.type == "feed" else InstanceState
        wanted = [value for field, value in self.filters if field == "state"]
        try:
            return frozenset(states(value.upper()) for value in wanted) if wanted else None
        except ValueError as error:
            known = ", ".join(state.value for state in states)
            raise QueryError(f"there is no state {', '.join(wanted)}; there is: {known}") from error

    def fits(self, field: str, *values: str) -> bool:
        """Whether something with these values in the field is wanted."""
        wanted = {value.casefold() for known, value in self.filters if known == field}
        return not wanted or any(value.casefold() in wanted for value in values)

    def value(self, record: InstanceRecord | None) -> Value | None:
        """What counts first of an instance, comparable with that of others; None: nothing but what names it does."""
        if self.by_value is None:
            return None
        if self.by_value == "attempt":
            return record.attempt if record else 0
        return (record.started if record else None) or _NEVER[self.descending]

    def token(self, key: Key, record: InstanceRecord | None = None) -> str:
        """What stands for everything after this instance."""
        value = self.value(record) if self.by_value else None
        told = value.isoformat() if isinstance(value, datetime) else value
        said = json.dumps([self.sort, *key[:2], key[2].astimezone(UTC).isoformat(), told])
        return base64.urlsafe_b64encode(said.encode()).decode()

    @property
    def after_key(self) -> Key | None:
        """The instance after which the part begins; None: at the beginning.

        Raises:
            QueryError: it is not what a list with this order said.
        """
        found = self._after
        return found[0] if found else None

    @property
    def after_value(self) -> Value | None:
        """What counted first of that instance; raises likewise."""
        found = self._after
        return found[1] if found else None

    @property
    def _after(self) -> tuple[Key, Value | None] | None:
        if self.after is None:
            return None
        try:
            sort, entity, cluster, nominal, told = json.loads(base64.urlsafe_b64decode(self.after.encode()))
            at = datetime.fromisoformat(nominal)
            value = datetime.fromisoformat(told).astimezone(UTC) if isinstance(told, str) else told
        except (ValueError, TypeError, OverflowError, binascii.Error) as error:
            raise QueryError(f"{self.after!r} is not what a list said as next") from error
        if sort != self.sort or at.tzinfo is None:
            raise QueryError(f"what comes after it was said by a list with --sort {sort}, not --sort {self.sort}")
        if type(told) is not {"started": str, "attempt": int}.get(self.by_value or "", type(None)):
            raise QueryError(f"{self.after!r} is not what a list said as next")
        return (str(entity), str(cluster), at), value


@dataclass(frozen=True)
class InstanceInfo:
    """An instance of a process, a replication or a feed.

    Attributes:
        entity: Its name; replications are called ``FEED from CLUSTER``.
        kind: process, replication or feed.
        cluster: Where it is.
        instance: Its nominal time.
        state: Its state.
        reason: Why, as ``kind``, ``text`` and what it is about; None where there is nothing to say.
        attempt: How many runs were given it.
        run: The run that carries it, or had it last.
        started: When it was started last, on the falcon clock.
        ended: When it ended last.
        definition: The version of its definition that it ran with last, or will run with; None: none is recorded.
    """

    entity: str
    kind: str
    cluster: str
    instance: datetime
    state: State
    reason: dict[str, Any] | None = None
    attempt: int = 0
    run: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    definition: int | None = None

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "entity": self.entity,
            "kind": self.kind,
            "cluster": self.cluster,
            "instance": format_instant(self.instance),
            "state": self.state.value,
            "reason": self.reason,
            "attempt": self.attempt,
            "run": self.run,
            "started": self.started and self.started.isoformat(),
            "ended": self.ended and self.ended.isoformat(),
            "definition": self.definition,
        }


@dataclass(frozen=True)
class InstancePage:
    """A part of a list of instances.

    Attributes:
        items: What is in it.
        total: How many there are in all parts.
        next: Stands for the rest; None: this is the last part.
    """

    items: tuple[InstanceInfo, ...]
    total: int
    next: str | None

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"items": [one.as_data() for one in self.items], "total": self.total, "next": self.next}
