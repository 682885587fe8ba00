"""Commands to entities: schedule, suspend, resume; only those that fit their status (source: Apache Falcon)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sqlalchemy import Connection, select

from falcon_assets.errors import EntityStatusError
from falcon_assets.ledger.entities.status import EntityStatus, Status, command, statuses
from falcon_assets.ledger.tables import ENTITY_STATUS
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


class Command(str, Enum):
    """What can be told to an entity."""

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
    """What became of a command; ``before`` and ``after`` are the same where there was nothing to do."""

    before: EntityStatus
    after: EntityStatus


def transition(status: Status, asked: Command) -> Status:
    """The status after the command; the same where the entity has it already.

    Raises:
        EntityStatusError: the command does not fit that status.
    """
    needed, result = _TRANSITIONS[asked]
    if status not in (needed, result):
        fitting = [one.value for one, (first, last) in _TRANSITIONS.items() if (first, last) == (status, result)]
        hint = f" (use {fitting[0]})" if fitting else ""
        raise EntityStatusError(f"what is {status.value} cannot be {_PARTICIPLES[asked]}{hint}")
    return result


def apply_command(connection: Connection, entity: Feed | Process, asked: Command, now: datetime) -> StatusChange:
    """Gives the entity the status that the command leads to; commands at once follow each other.

    Args:
        connection: In a transaction; the entity is locked until its end.
        entity: As it is declared now.
        asked: The command.
        now: The time on the falcon clock.

    Raises:
        EntityStatusError: the command does not fit the status of the entity; nothing is changed.
    """
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
