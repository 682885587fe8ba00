"""Feeds and processes: whether they run by themselves, and commands that change it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.ledger.commands import Command, apply_command
from falcon_assets.ledger.status import EntityStatus, statuses
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.installation import Installation


@dataclass(frozen=True)
class EntityState:
    """Whether an entity runs by itself.

    Attributes:
        kind: ``feed`` or ``process``.
        name: Its name.
        status: SUBMITTED, RUNNING or SUSPENDED.
        since: When it came to that, on the falcon clock.
        commanded: Whether by a command; else by ``schedule:`` in the definition.
    """

    kind: str
    name: str
    status: str
    since: datetime
    commanded: bool


def entity_states(installation: Installation, kind: str | None = None) -> list[EntityState]:
    """The state of every feed and process, or of those of one kind, in the order of the definitions."""
    wanted = [one for one in _declared(installation.entities) if kind in (None, one.kind)]
    with installation.ledger.engine.begin() as connection:
        found = statuses(connection, wanted, installation.settings.now())
    return [_state(*key, status) for key, status in found.items()]


def schedule(installation: Installation, name: str, kind: str | None = None) -> tuple[EntityState, EntityState]:
    """Lets what is SUBMITTED run by itself from now on.

    Args:
        installation: Where.
        name: Of a feed or process.
        kind: Which of them, where both have that name.

    Returns:
        Its state before and after; the same where there was nothing to do.

    Raises:
        UnknownEntityError: there is none of that name, or there are two and ``kind`` is not given.
        EntityStatusError: its status does not fit; nothing is changed.
    """
    return _tell(Command.SCHEDULE, installation, name, kind)


def suspend(installation: Installation, name: str, kind: str | None = None) -> tuple[EntityState, EntityState]:
    """Starts no more instances of what is RUNNING; the rest as :func:`schedule`."""
    return _tell(Command.SUSPEND, installation, name, kind)


def resume(installation: Installation, name: str, kind: str | None = None) -> tuple[EntityState, EntityState]:
    """Lets what is SUSPENDED run again, the instances of the meantime included; the rest as :func:`schedule`."""
    return _tell(Command.RESUME, installation, name, kind)


def _tell(asked: Command, installation: Installation, name: str, kind: str | None) -> tuple[EntityState, EntityState]:
    entity = named_entity(installation.entities, name, kind)
    with installation.ledger.engine.begin() as connection:
        outcome = apply_command(connection, entity, asked, installation.settings.now())
    return _state(entity.kind, name, outcome.before), _state(entity.kind, name, outcome.after)


def named_entity(entities: EntityStore, name: str, kind: str | None = None) -> Feed | Process:
    """The feed or process of that name.

    Raises:
        UnknownEntityError: there is none, or there are two and ``kind`` is not given.
    """
    if kind is not None:
        return entities.feed(name) if kind == "feed" else entities.process(name)
    declared = _declared(entities)
    found = [one for one in declared if one.name == name]
    if len(found) > 1:
        raise UnknownEntityError(f"there is a feed and a process {name!r}: say which one with --kind")
    if not found:
        close = nearest(name, [one.name for one in declared])
        raise UnknownEntityError(f"there is no feed or process {name!r}{close}")
    return found[0]


def _declared(entities: EntityStore) -> list[Feed | Process]:
    return [*entities.feeds.values(), *entities.processes.values()]


def _state(kind: str, name: str, status: EntityStatus) -> EntityState:
    return EntityState(kind, name, status.status.value, status.since, status.commanded)
