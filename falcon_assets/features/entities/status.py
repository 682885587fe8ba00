"""Status of feeds and processes, and the commands schedule, suspend and resume."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Command, EntityStatus, apply_command, statuses
from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.entities.results import ANY_KIND, EntityState, OperationResult, Request
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation


def entity_states(installation: Installation, kind: str | None = None) -> list[EntityState]:
    wanted = [one for one in _declared(installation.entities) if kind in (None, one.kind)]
    with installation.tables.begin() as connection:
        found = statuses(connection, wanted, installation.settings.now())
    return [_state(*key, status) for key, status in found.items()]


def schedule_entities(installation: Installation, request: Request) -> OperationResult:
    """Schedules SUBMITTED entities, all of them or none.

    Raises:
        UnknownEntityError: there is none of a name, or there are two and the kind is not given.
        EntityStatusError: a status does not fit; nothing is changed.
        DeniedError: the user may not change one of them.
    """
    return _command(Command.SCHEDULE, installation, request)


def suspend_entities(installation: Installation, request: Request) -> OperationResult:
    """Starts no more instances of RUNNING entities, else as :func:`schedule_entities`."""
    return _command(Command.SUSPEND, installation, request)


def resume_entities(installation: Installation, request: Request) -> OperationResult:
    """Resumes SUSPENDED entities, with the instances of the meantime, else as :func:`schedule_entities`."""
    return _command(Command.RESUME, installation, request)


def named_entities(installation: Installation, keys: Iterable[tuple[str | None, str]]) -> list[Feed | Process]:
    """Returns each entity once."""
    found = [named_entity(installation.entities, name, kind) for kind, name in keys]
    return list({(one.kind, one.name): one for one in found}.values())


def apply_to_all(
    connection: Connection, installation: Installation, asked: Command, entities: Iterable[Feed | Process]
) -> tuple[tuple[EntityState, EntityState], ...]:
    """Applies a command to all entities or, with EntityStatusError, to none, at the end of the caller's transaction."""
    by_key = {(one.kind, one.name): one for one in entities}
    states = {}
    for key in sorted(by_key):  # in one order: two commands must not wait for each other
        outcome = apply_command(connection, by_key[key], asked, installation.settings.now())
        states[key] = (_state(*key, outcome.before), _state(*key, outcome.after))
    return tuple(states[key] for key in by_key)


def _command(asked: Command, installation: Installation, request: Request) -> OperationResult:
    now = installation.settings.now()
    with audited(installation, asked.value, request) as audit:
        audit.about((request.kind or ANY_KIND, name) for name in request.given)
        entities = named_entities(installation, [(request.kind, name) for name in request.given])
        audit.about((one.kind, one.name) for one in entities)
        require_change(audit.principal, asked.value, entities)
        with installation.ledger.engine.connect() as connection:
            states = apply_to_all(connection, installation, asked, entities)
            fields = (asked.value, audit.principal.name, request.reason, now, request.dry_run)
            result = OperationResult(*fields, statuses=states)
            audit.result(result.changed, connection)
            if not request.dry_run:
                connection.commit()
    return result


def named_entity(entities: EntityStore, name: str, kind: str | None = None) -> Feed | Process:
    """Finds a feed or process; UnknownEntityError where there is none, or two and ``kind`` is not given."""
    if kind is not None:
        return entities.feed(name) if kind == "feed" else entities.process(name)
    declared = _declared(entities)
    found = [one for one in declared if one.name == name]
    if len(found) > 1:
        raise UnknownEntityError(f"there is a feed and a process {name!r}: say which one with --kind")
    if not found:
        if other := next((kind for kind, those in entities.by_kind.items() if name in those), None):
            raise UnknownEntityError(f"{name!r} is a {other}: only feeds and processes are scheduled")
        close = nearest(name, [one.name for one in declared])
        raise UnknownEntityError(f"there is no feed or process {name!r}{close}")
    return found[0]


def _declared(entities: EntityStore) -> list[Feed | Process]:
    return [*entities.feeds.values(), *entities.processes.values()]


def _state(kind: str, name: str, status: EntityStatus) -> EntityState:
    return EntityState(kind, name, status.status.value, status.since, status.commanded)
