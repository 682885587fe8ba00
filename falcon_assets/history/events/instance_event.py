"""Changes of instances, for their receivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant

EXECUTOR = "executor"
"""The kind of events about executors of clusters."""


@dataclass(frozen=True)
class InstanceEvent:
    """A change of an instance, or of an executor; its fields are columns of ``falcon.notification_events``.

    Attributes:
        kind: ``process``: of a process or replication; ``feed``: of a feed; ``executor``: of one, whose ``instance`` is
            the minute of the change.
        source: Such as the event in Dagster's log, the attempt, the level.
        attempt: FAILED, TIMED_OUT: the number of runs until then.
        failures: FAILED, TIMED_OUT: the number of failures in a row.
    """

    event: Annotated[EventKind, "FAILED, TIMED_OUT, LATE, EVICTED or SUCCEEDED"]
    kind: Annotated[str, "as in notified"]
    name: str
    cluster: str
    instance: datetime
    at: Annotated[datetime, "on the falcon clock"]
    source: Annotated[str, "tells it from others of the instance"]
    reason: str = ""
    attempt: int = 0
    failures: int = 0
    event_id: Annotated[int | None, "of Dagster's event; null: there is none"] = None
    run: Annotated[Mapping[str, Any] | None, "the run of the instance, or that removed it; null: not recorded"] = None

    @property
    def key(self) -> str:
        """Identifies the change, however often it is found."""
        about = f"{self.kind} {self.name} {self.cluster} {format_instant(self.instance)}"
        return f"{self.event.value} {about} {self.source}"


@dataclass(frozen=True)
class Notice:
    receiver: str
    kind: str
    entity: str
    happening: InstanceEvent


@dataclass(frozen=True)
class Sent:
    """``problem``: why some notices were not sent; ``refused``: rejected by the receiver for good."""

    problem: str = ""
    taken: list[Notice] = field(default_factory=list)
    refused: list[Notice] = field(default_factory=list)
