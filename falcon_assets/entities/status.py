"""Status of entities: from their definitions unless a command changed it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sqlalchemy import ColumnElement, Connection, delete, false, select, tuple_

from falcon_assets.errors import EntityStatusError, ReadOnlyError
from falcon_assets.history.database import upsert
from falcon_assets.history.tables import ENTITY_STATUS
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


class Status(str, Enum):
    """Source: Apache Falcon."""

    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"


_FEW = 100
"""Up to so many entities are asked for by name; for more, all are read."""


@dataclass(frozen=True)
class EntityStatus:
    """``since`` is on the falcon clock; ``commanded`` False: by ``schedule:`` in the definition."""

    status: Status
    since: datetime
    commanded: bool
    scheduled_since: datetime | None = None


def statuses(
    connection: Connection, entities: Iterable[Feed | Process], now: datetime
) -> Mapping[tuple[str, str], EntityStatus]:
    """By (kind, name); records new entities and changes of ``schedule:`` as of ``now``."""
    entities = list(entities)
    asked = select(ENTITY_STATUS)
    if len(entities) <= _FEW:
        asked = asked.where(ENTITY_STATUS.c.name.in_([one.name for one in entities]))
    known = {
        (row.kind, row.name): EntityStatus(Status(row.status), row.since, row.commanded, row.scheduled_since)
        for row in connection.execute(asked)
    }
    found: dict[tuple[str, str], EntityStatus] = {}
    changed: dict[tuple[str, str], EntityStatus] = {}
    for entity in entities:
        key = (entity.kind, entity.name)
        declared = Status.RUNNING if entity.schedule else Status.SUBMITTED
        before = known.get(key)
        if before is None or not (before.commanded or before.status is declared):
            first = before and before.scheduled_since
            before = changed[key] = EntityStatus(declared, now, False, first or _scheduled(declared, now))
        found[key] = before
    # A command may have come after the query above: it wins.
    if changed:
        with suppress(ReadOnlyError), connection.begin_nested():  # what only reads goes on, and the next one writes it
            _write(connection, changed, where=ENTITY_STATUS.c.commanded == false())
    return found


def command(connection: Connection, entity: Feed | Process, status: Status, now: datetime) -> EntityStatus:
    """Sets a status that the definition no longer changes."""
    before = statuses(connection, [entity], now)[entity.kind, entity.name]
    since = before.since if before.status is status else now
    after = EntityStatus(status, since, True, before.scheduled_since or _scheduled(status, now))
    _write(connection, {(entity.kind, entity.name): after})
    return after


def scheduled_since(
    connection: Connection, entities: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], datetime]:
    table = ENTITY_STATUS.c
    wanted = (tuple_(table.kind, table.name).in_(list(entities)), table.scheduled_since.is_not(None))
    found = connection.execute(select(table.kind, table.name, table.scheduled_since).where(*wanted))
    return {(row.kind, row.name): row.scheduled_since for row in found}


def forget(connection: Connection, kind: str, name: str) -> None:
    """A new entity of that name starts with its declared status."""
    connection.execute(delete(ENTITY_STATUS).where(ENTITY_STATUS.c.kind == kind, ENTITY_STATUS.c.name == name))


def _scheduled(status: Status, now: datetime) -> datetime | None:
    return None if status is Status.SUBMITTED else now


def _write(
    connection: Connection,
    changed: Mapping[tuple[str, str], EntityStatus],
    where: ColumnElement[bool] | None = None,
) -> None:
    rows = [
        {"kind": kind, "name": name, **vars(one), "status": one.status.value}
        for (kind, name), one in sorted(changed.items())
    ]
    upsert(connection, ENTITY_STATUS, rows, where)


class Command(str, Enum):
    SCHEDULE = "schedule"
    SUSPEND = "suspend"
    RESUME = "resume"


_TRANSITIONS = {
    Command.SCHEDULE: (Status.SUBMITTED, Status.RUNNING),
    Command.SUSPEND: (Status.RUNNING, Status.SUSPENDED),
    Command.RESUME: (Status.SUSPENDED, Status.RUNNING),
}
_PARTICIPLES = {Command.SCHEDULE: "scheduled", Command.SUSPEND: "suspended", Command.RESUME: "resumed"}


@dataclass(frozen=True)
class StatusChange:
    """``before`` and ``after`` are equal where nothing was to be done."""

    before: EntityStatus
    after: EntityStatus


def transition(status: Status, asked: Command) -> Status:
    """The same status where the entity has it already; raises EntityStatusError where the command does not fit."""
    needed, result = _TRANSITIONS[asked]
    if status not in (needed, result):
        fitting = [one.value for one, (first, last) in _TRANSITIONS.items() if (first, last) == (status, result)]
        hint = f" (use {fitting[0]})" if fitting else ""
        raise EntityStatusError(f"what is {status.value} cannot be {_PARTICIPLES[asked]}{hint}")
    return result


def apply_command(connection: Connection, entity: Feed | Process, asked: Command, now: datetime) -> StatusChange:
    """Locks the entity until the transaction ends; raises EntityStatusError where the command does not fit."""
    statuses(connection, [entity], now)  # afterwards there is a row to lock
    own = (ENTITY_STATUS.c.kind == entity.kind, ENTITY_STATUS.c.name == entity.name)
    row = connection.execute(select(ENTITY_STATUS).where(*own).with_for_update()).one()
    before = EntityStatus(Status(row.status), row.since, row.commanded, row.scheduled_since)
    try:
        status = transition(before.status, asked)
    except EntityStatusError as error:
        raise EntityStatusError(f"{entity.kind} {entity.name!r}: {error}") from None
    if status is before.status:
        return StatusChange(before, before)
    return StatusChange(before, command(connection, entity, status, now))
