"""What became of an instance, for those who are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import EventKind


@dataclass(frozen=True)
class InstanceEvent:
    """Something that became of an instance.

    Attributes:
        event: What.
        kind: ``process``: of a process or replication; ``feed``: of a feed.
        name: Of the workload or feed.
        cluster: Where.
        instance: Its nominal time.
        at: When, on the falcon clock.
        source: What tells it from another of the same instance: the event in Dagster's log, the attempt, the level.
        reason: Why, in plain words.
        attempt: FAILED, TIMED_OUT: how many runs it was given by then.
        failures: FAILED, TIMED_OUT: how many in a row.
        event_id: Of the event in Dagster's log; None: it stands in no event.
        run: The run of the instance, or that removed it, as JSON; None: there is none.
    """

    event: EventKind
    kind: str
    name: str
    cluster: str
    instance: datetime
    at: datetime
    source: str
    reason: str = ""
    attempt: int = 0
    failures: int = 0
    event_id: int | None = None
    run: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """The same for the same event, however often it is found."""
        about = f"{self.kind} {self.name} {self.cluster} {format_instant(self.instance)}"
        return f"{self.event.value} {about} {self.source}"


@dataclass(frozen=True)
class Notice:
    """An event that one receiver is to be told.

    Attributes:
        receiver: Name of the environment variable with the receiver's URL.
        kind: ``feed`` or ``process``.
        entity: Its name.
        happening: The event.
    """

    receiver: str
    kind: str
    entity: str
    happening: InstanceEvent


@dataclass(frozen=True)
class Sent:
    """What became of what was to be sent.

    Attributes:
        problem: Why not all of it was; empty: all was.
        taken: What the receiver took.
        refused: What it will never take.
    """

    problem: str = ""
    taken: list[Notice] = field(default_factory=list)
    refused: list[Notice] = field(default_factory=list)
