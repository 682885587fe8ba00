"""Outputs that are held, in the ledger: from their event until the instance of the process succeeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, select, update

from falcon_assets.features.quality.events import HeldAccepted, OutputHeld
from falcon_assets.features.quality.verdict import QualityResult
from falcon_assets.history.database import among, of_row, parts, upsert
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.tables import QUALITY_HELD
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.operation import Result

_HELD = QUALITY_HELD.c
_KEY = (_HELD.cluster, _HELD.feed, _HELD.instance)
_PROCESS = (_HELD.process, _HELD.cluster, _HELD.nominal)
_ACCEPTED = ("accepted_by", "accepted_at", "accepted_reason")


@dataclass(frozen=True)
class HeldOutput(Result):
    """What a process computed for an instance, and did not publish; ``accepted_by``: who overruled its checks.

    ``event_id`` is that of the event, which has what it was made from.
    """

    cluster: str
    feed: str
    instance: Instant
    place: str
    process: str
    nominal: Instant
    event_id: int
    at: datetime
    records: int | None
    checks: tuple[QualityResult, ...]
    accepted_by: str | None = None
    accepted_at: datetime | None = None
    accepted_reason: str | None = None
    keys = ("place", "process", "nominal", "at", "records", "checks", *_ACCEPTED)

    def __str__(self) -> str:
        return f"{self.feed} {format_instant(self.instance)}"

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.checks if one.is_error)

    @property
    def is_refused(self) -> bool:
        """Whether it is wrong, and nobody has accepted it."""
        return bool(self.failed) and self.accepted_by is None


def fold_held(connection: Connection, event_id: int, fact: OutputHeld | HeldAccepted) -> None:
    key = {"cluster": fact.cluster, "feed": fact.feed, "instance": fact.instance}
    if isinstance(fact, HeldAccepted):
        accepted = dict(zip(_ACCEPTED, (fact.held_accepted_by, fact.at, fact.reason), strict=True))
        connection.execute(update(QUALITY_HELD).values(accepted).filter_by(**key))
        return
    what = {"place": fact.held_at, "process": fact.process, "nominal": fact.nominal, "event_id": event_id}
    found: dict[str, Any] = {"at": fact.at, "records": fact.checked_records}
    checks = [asdict(one) for one in fact.checks]
    upsert(connection, QUALITY_HELD, [{**key, **what, **found, "checks": checks, **dict.fromkeys(_ACCEPTED)}])


def end_held(connection: Connection, happened: Iterable[InstanceEvent]) -> None:
    """Forgets outputs of instances of processes that have succeeded since, however that came about."""
    succeeded = {
        (one.name, one.cluster, one.instance): one.event_id or 0
        for one in happened
        if one.kind == "process" and one.event is EventKind.SUCCEEDED
    }
    if not succeeded or connection.execute(select(_HELD.event_id).limit(1)).first() is None:
        return
    over = list[tuple[Any, ...]]()
    for part in parts(succeeded):
        for row in connection.execute(select(*_KEY, *_PROCESS, _HELD.event_id).where(among(_PROCESS, part))):
            if row.event_id < succeeded[row.process, row.cluster, row.nominal]:
                over.append((row.cluster, row.feed, row.instance))
    for keys in parts(over):
        connection.execute(delete(QUALITY_HELD).where(among(_KEY, keys)))


def held_output(connection: Connection, key: tuple[str, str, datetime]) -> HeldOutput | None:
    cluster, feed, instance = key
    row = connection.execute(select(QUALITY_HELD).filter_by(cluster=cluster, feed=feed, instance=instance)).first()
    return None if row is None else _output(row)


def held_with(connection: Connection, held: HeldOutput) -> list[HeldOutput]:
    """All outputs of that attempt, which are published together, ``held`` among them."""
    own = and_(_HELD.process == held.process, _HELD.cluster == held.cluster, _HELD.nominal == held.nominal)
    rows = connection.execute(select(QUALITY_HELD).where(own, _HELD.at == held.at).order_by(*_KEY))
    return [_output(row) for row in rows]


def _output(row: Row[Any]) -> HeldOutput:
    return of_row(HeldOutput, row, checks=tuple(QualityResult(**one) for one in row.checks))
