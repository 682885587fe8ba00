"""Events that may be told, and whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import Notification, Told
from falcon_assets.planning.sla.deadlines import SlaLevel


@dataclass(frozen=True)
class Happening:
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

    event: Told
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
    happening: Happening


def receivers(event: Told, declared: Notification | None, default: Notification | None) -> Sequence[str]:
    """Who is told such an event, each once, by the name of the variable: as the entity says, else the location."""
    notification = declared or default
    if notification is None or event not in notification.on:
        return ()
    return tuple(dict.fromkeys(receiver.url.env for receiver in notification.to))


def sla_happening(
    kind: str,
    entity: str,
    cluster: str,
    instance: datetime,
    level: SlaLevel,
    deadline: datetime,
    state: str,
    cleared_at: datetime | None,
) -> Happening | None:
    """What is told of a breach that is OPEN or MET; nothing of one that nobody expects to be met any more."""
    until = deadline.isoformat(timespec="minutes")
    if state == "OPEN":
        reason = f"{'missed' if level.is_missed else 'in danger'}: {level.value} was over at {until}"
    elif state == "MET" and cleared_at is not None:
        reason = f"met at {cleared_at.isoformat(timespec='minutes')}: {level.value} was over at {until}"
    else:
        return None
    return Happening(
        Told.SLA, kind, entity, cluster, instance, cleared_at or deadline, f"{level.value} {state}", reason
    )
