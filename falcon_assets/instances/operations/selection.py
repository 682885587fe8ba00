"""Requests for commands on instances, the selection of these, and the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import EntityVersions, versions_for
from falcon_assets.errors import QueryError, UnknownInstanceError
from falcon_assets.instances.operations.questions import WhichInstances
from falcon_assets.instances.rules.applicable_states import InstanceCommand
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import Asked, without_rows
from falcon_assets.instances.views.listing import process_info, to_run_again
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.entity import Key as Entity
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import Audit
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Result
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reasons import RerunRequested
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class InstanceRequest:
    """A request for a command on instances.

    Attributes:
        query: Its page (``after``, ``limit``) is ignored.
        actor: None: the user of the operating system.
        dry_run: Only report what would change.
    """

    query: InstanceQuery
    actor: str | None = None
    reason: str = ""
    dry_run: bool = False


def _state(text: str) -> str:
    if (state := text.upper()) not in (known := [one.value for one in InstanceState]):
        raise QueryError(f"there is no state {text}; there is: {', '.join(known)}")
    return state


class InstanceChange(Change, WhichInstances):
    """Fields of commands on instances."""

    name: Annotated[str, Given("NAME")] = Field(
        description="A process; or a feed: then its replications, imports and exports."
    )
    status: tuple[Annotated[InstanceState, BeforeValidator(_state)], ...] = Field(
        (), description="Only instances in this state; may be repeated."
    )
    needs = "name"

    @model_validator(mode="after")
    def _say_which(self) -> Self:
        if not (self.status or self.start or self.end):
            raise QueryError("Say which instances: give --start, --start and --end, or --status.")
        return self

    @property
    def request(self) -> InstanceRequest:
        states = tuple(("state", state.value) for state in self.status)
        return InstanceRequest(replace(self.query, filters=states), self.actor, self.reason, self.dry_run)


@dataclass(frozen=True)
class Outcome:
    instance: InstanceInfo
    changed: bool

    def as_data(self) -> dict[str, Any]:
        return {**self.instance.as_data(), "changed": self.changed}


@dataclass(frozen=True)
class CommandResult(Result):
    """The result of a command; ``at`` is on the falcon clock, ``items`` are by entity, cluster and time."""

    operation: str
    actor: str
    reason: str
    at: datetime
    dry_run: bool
    items: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    next = None
    keys = ("operation", "actor", "reason", "at", "dry_run", "changed", "items", "total", "next", "notes")

    @property
    def changed(self) -> int:
        return sum(one.changed for one in self.items)

    @property
    def total(self) -> int:
        return len(self.items)


_CHUNK = 5_000


@dataclass(frozen=True)
class Selected:
    """``request`` is the one that the instance waits for; None: it waits for none."""

    workload: Workload
    record: InstanceRecord
    request: RerunRequest | None
    versions: Mapping[Entity, EntityVersions]

    @property
    def nominal(self) -> datetime:
        return self.record.nominal

    @property
    def key(self) -> Key:
        return self.workload.name, self.workload.cluster, self.nominal

    def info(self, again: RerunRequest | None = None) -> InstanceInfo:
        """``again``: a request that is its reason to wait; None: the present one, and the reason is as recorded."""
        reason = RerunRequested(again.by, again.reason, None).as_data() if again else None
        return process_info(self.workload, self.key, self.record, self.versions, reason, again=again or self.request)


def select_instances(
    installation: Installation, connection: Connection, query: InstanceQuery, now: datetime
) -> list[Selected]:
    """By entity, cluster and time; the ledger must be up to date.

    Raises:
        UnknownInstanceError: the query is for a single instance, which does not exist.
        UnknownEntityError: the query names an unknown entity.
        QueryError: an unknown state, or no restriction at all.
    """
    if query.start is None and query.end is None and query.states is None:
        raise QueryError("say which instances: give --start, --end or --status")
    store = store_of(installation, query)
    asked = asked_for(connection, store, query, now)
    workloads = {one.key: workload for one in asked if (workload := store.workload(*one.key))}
    versions = versions_for(connection, (workloads[one.key] for one in asked))
    found = [instance for one in asked for instance in _of(connection, one, query, workloads[one.key], versions)]
    if query.alone and query.start and not found and query.states is None:
        raise UnknownInstanceError(f"{query.name} has no instance {format_instant(query.start)}")
    return sorted(found, key=lambda one: one.key)


def operation_name(command: InstanceCommand) -> str:
    return f"instance {command.value}"


def require_instances(
    audit: Audit, command: InstanceCommand, chosen: Iterable[Selected], changes: Iterable[Selected]
) -> None:
    """Raises DeniedError where entities belong to others; passes entities and instances to the audit."""
    entities = {(one.kind, one.name): one for one in (each.workload.entity for each in chosen)}
    audit.about(entities, (one.nominal for one in changes))
    require_change(audit.principal, f"{command.value} instances of", entities.values(), Role.LAUNCHER)


def store_of(installation: Installation, query: InstanceQuery) -> EntityStore:
    return installation.all_entities.in_colo(query.colo) if query.colo else installation.entities


def _of(
    connection: Connection,
    asked: Asked,
    query: InstanceQuery,
    workload: Workload,
    versions: Mapping[Entity, EntityVersions],
) -> Iterator[Selected]:
    states = query.states
    rest: Asked | None = asked
    while rest:
        found = PROCESS_ROWS.first(connection, [rest.span], states, _CHUNK, by_time=False, descending=False)  # type: ignore[arg-type]
        again = to_run_again(connection, found)
        yield from (Selected(workload, record, again.get(key), versions) for key, record in found)
        last = found[-1][0] if len(found) == _CHUNK else None
        rest = asked.cut(last, by_time=False, descending=False) if last else None
    if states is None or InstanceState.WAITING in states:
        for key, _ in without_rows(connection, PROCESS_ROWS, asked, {}, descending=False):
            yield Selected(workload, InstanceRecord(key[2], InstanceState.WAITING), None, versions)
