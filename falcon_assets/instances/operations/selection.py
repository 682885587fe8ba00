"""What commands to instances are told, and what they answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import EntityVersions
from falcon_assets.errors import QueryError, UnknownInstanceError
from falcon_assets.instances.rules.instance_commands import InstanceCommand
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import Asked, without_rows
from falcon_assets.instances.views.instance_definition import versions_for
from falcon_assets.instances.views.listing import process_info, to_run_again
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.entity import Key as Entity
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.auditing import Audit
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class InstanceRequest:
    """What a command to instances is told.

    Attributes:
        query: Which instances; the part that it asks for (``after``, ``limit``) does not matter.
        actor: Who asks; None: the user of the operating system.
        reason: Why, in the words of who asks.
        dry_run: Whether only to say what would change.
    """

    query: InstanceQuery
    actor: str | None = None
    reason: str = ""
    dry_run: bool = False


@dataclass(frozen=True)
class Outcome:
    """An instance after a command, and whether that changed it."""

    instance: InstanceInfo
    changed: bool


@dataclass(frozen=True)
class CommandResult:
    """What came of a command to instances; fit to be recorded.

    Attributes:
        operation: Its name.
        actor: Who asked.
        reason: Why.
        at: When, on the falcon clock.
        dry_run: Whether nothing was done.
        items: The instances after it, by entity, cluster and time.
        notes: What who asked should know besides.
    """

    operation: str
    actor: str
    reason: str
    at: datetime
    dry_run: bool
    items: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """How many instances it changed, or would."""
        return sum(one.changed for one in self.items)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "operation": self.operation,
            "actor": self.actor,
            "reason": self.reason,
            "at": self.at.isoformat(),
            "dry_run": self.dry_run,
            "changed": self.changed,
            "items": [{**one.instance.as_data(), "changed": one.changed} for one in self.items],
            "total": len(self.items),
            "next": None,
            "notes": list(self.notes),
        }


_CHUNK = 5_000


@dataclass(frozen=True)
class Selected:
    """An instance.

    Attributes:
        workload: Of what.
        record: What is known about it.
        request: For which it is to run again and has not been given a run yet; None: it is not.
        versions: Of the definition of the entity, by kind and name.
    """

    workload: Workload
    record: InstanceRecord
    request: RerunRequest | None
    versions: Mapping[Entity, EntityVersions]

    @property
    def nominal(self) -> datetime:
        """Its nominal time."""
        return self.record.nominal

    @property
    def key(self) -> Key:
        """Names it."""
        return self.workload.name, self.workload.cluster, self.nominal

    def info(self, reason: Reason | None = None, *, again: RerunRequest | None = None) -> InstanceInfo:
        """What is said of it.

        Args:
            reason: Why it is where it is; None: as it was recorded.
            again: The rerun that it waits for; None: the one that it waited for before.
        """
        said = reason.as_data() if reason else None
        return process_info(self.workload, self.key, self.record, self.versions, said, again=again or self.request)


def select_instances(
    installation: Installation, connection: Connection, query: InstanceQuery, now: datetime
) -> list[Selected]:
    """The instances that are asked for, by entity, cluster and time; the ledger must be up to date.

    Raises:
        UnknownInstanceError: one instance is asked for, and there is none of that time.
        UnknownEntityError: the query names what is not there.
        QueryError: it asks for a state that there is not, or for everything there is.
    """
    if query.start is None and query.end is None and query.states is None:
        raise QueryError("say which instances: give --start, --end or --status")
    store = store_of(installation, query)
    workloads = {(one.name, one.cluster): one for one in store.workloads}
    asked = asked_for(connection, store, query, now)
    versions = versions_for(connection, (workloads[one.key] for one in asked))
    found = [instance for one in asked for instance in _of(connection, one, query, workloads[one.key], versions)]
    if query.alone and query.start and not found and query.states is None:
        raise UnknownInstanceError(f"{query.name} has no instance {format_instant(query.start)}")
    return sorted(found, key=lambda one: one.key)


def operation_name(command: InstanceCommand) -> str:
    """What the audit calls it."""
    return f"instance {command.value}"


def require_instances(
    audit: Audit, command: InstanceCommand, chosen: Iterable[Selected], changes: Iterable[Selected]
) -> None:
    """Checks that who asks may change what the instances are of, and tells the audit what the command is about.

    Raises:
        DeniedError: it belongs to others.
    """
    entities = {(one.kind, one.name): one for one in (each.workload.entity for each in chosen)}
    audit.about(entities, (one.nominal for one in changes))
    require_change(audit.principal, f"{command.value} instances of", entities.values())


def store_of(installation: Installation, query: InstanceQuery) -> EntityStore:
    """The entities that the query may be about."""
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
