"""The audit: user, time, target and result of operations, however they are requested."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select
from sqlalchemy.exc import OperationalError

from falcon_assets.base.texts import recorded
from falcon_assets.errors import (
    DeniedError,
    FalconError,
    InvalidDefinitionsError,
    ReadOnlyError,
    SettingsError,
    printable,
)
from falcon_assets.history.tables import AUDIT
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.entity import Key
from falcon_assets.model.instant import Instant
from falcon_assets.operations.acting import Owned, acting, require_read, require_role
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Operation, Result
from falcon_assets.operations.paging import ListOperation, Page, Query, known_field
from falcon_assets.operations.request_origin import ORIGIN, Way, requests_from

_LONGEST = 500
_LOG = logging.getLogger(__name__)
Outcome: TypeAlias = Literal["done", "unchanged", "denied", "failed"]
_COLUMNS = {
    "at": AUDIT.c.at,
    "principal": AUDIT.c.principal,
    "user": AUDIT.c.os_user,
    "way": AUDIT.c.way,
    "operation": AUDIT.c.operation,
    "result": AUDIT.c.result,
}
FILTERS = dict.fromkeys((*list(_COLUMNS)[1:], "entity", "kind"))
ORDERS = dict.fromkeys(_COLUMNS)


@dataclass(frozen=True)
class AuditEntry(Result):
    """An entry of the audit; ``at`` is on the falcon clock, ``recorded`` in real time.

    ``os_user`` is the user of the process, who may act for ``principal``. ``instances`` is their number, None: it was
    about entities. ``message``: why it was denied or failed.
    """

    at: datetime
    recorded: datetime
    principal: str
    os_user: str
    way: str
    operation: str
    entities: Sequence[Key]
    instances: int | None
    first: Instant | None
    last: Instant | None
    reason: str
    result: Outcome
    message: str
    keys = (
        *("at", "recorded", "principal", "user=os_user", "way", "operation", "entities=named"),
        *("instances", "first", "last", "reason", "result", "message"),
    )

    @property
    def named(self) -> list[dict[str, str]]:
        return [{"kind": kind, "name": name} for kind, name in self.entities]


def write_audit(connection: Connection, entry: AuditEntry) -> None:
    """Part of the transaction of ``connection``."""
    said = {**vars(entry), "reason": recorded(entry.reason), "message": recorded(entry.message)}
    values = {name: printable(value) if isinstance(value, str) else value for name, value in said.items()}
    entities = [{"kind": printable(kind), "name": printable(name)} for kind, name in entry.entities]
    connection.execute(insert(AUDIT), {**values, "entities": entities})


class AuditedRequest(Protocol):
    @property
    def actor(self) -> str | None: ...

    @property
    def reason(self) -> str: ...

    @property
    def dry_run(self) -> bool:
        """Dry runs are recorded only where they are denied."""


@dataclass
class Audit:
    """An operation in progress; ``instances`` are nominal times, oldest first, None: it is about entities."""

    installation: Installation
    operation: str
    request: AuditedRequest
    principal: Principal
    entities: Sequence[Key] = ()
    instances: Sequence[datetime] | None = None

    def about(self, entities: Iterable[Key], instances: Iterable[datetime] | None = None) -> None:
        self.entities = list(dict.fromkeys(entities))
        self.instances = None if instances is None else sorted(instances)

    def result(self, changed: bool, connection: Connection | None = None) -> None:
        """Records success in the transaction of ``connection``; None: the change is not in the database."""
        self._write("done" if changed else "unchanged", "", connection)

    def refused(self, result: Outcome, message: str) -> None:
        self._write(result, message, None)

    def _write(self, result: Outcome, message: str, connection: Connection | None) -> None:
        if self.request.dry_run and result != "denied":
            return
        settings, instances = self.installation.settings, self.instances
        entry = AuditEntry(
            at=settings.now(),
            recorded=datetime.now(UTC),
            principal=self.principal.name,
            os_user=settings.user,
            way=ORIGIN.get().way,
            operation=self.operation,
            entities=self.entities,
            instances=None if instances is None else len(instances),
            first=instances[0] if instances else None,
            last=instances[-1] if instances else None,
            reason=self.request.reason,
            result=result,
            message=message[:_LONGEST],
        )
        if connection is not None:
            write_audit(connection, entry)
            return
        try:
            with self.installation.database.begin() as own:
                write_audit(own, entry)
        except (SettingsError, OperationalError):
            _LOG.warning("The database cannot be reached: this %s is not audited.", self.operation)
        except ReadOnlyError:
            if result in ("done", "unchanged"):
                raise
            _LOG.warning("The database can only be read: that this %s was refused is not audited.", self.operation)


class PlainRequest(Change):
    """A request of the user of the operating system, without a reason."""


@contextmanager
def audited(
    installation: Installation, operation: str, request: AuditedRequest, *, changes: bool = True
) -> Iterator[Audit]:
    """Records errors on exit, results by :meth:`Audit.result`, which the body must call.

    Raises:
        DeniedError: the user may not request it.
        ReadOnlyError: it ``changes`` something, and the database can only be read: it is not begun then.
    """
    settings = installation.settings
    audit = Audit(installation, operation, request, Principal(settings.user))
    try:
        if (refusal := ORIGIN.get().refusal) is not None:
            raise DeniedError(refusal)
        audit.principal = acting(settings, request.actor)
        if changes and not request.dry_run:
            with suppress(SettingsError, OperationalError):
                installation.require_writable()
        yield audit
    except DeniedError as error:
        audit.refused("denied", str(error))
        raise
    except BaseException as error:
        audit.refused("failed", _message(error))
        raise


def require_readable(installation: Installation, operation: str, entities: Iterable[Owned]) -> None:
    """Raises DeniedError, which is recorded, naming entities that only others may read."""
    found = list(entities)
    with audited(installation, operation, PlainRequest(), changes=False) as audit:
        audit.about((one.kind, one.name) for one in found)
        require_read(audit.principal, found)


def _message(error: BaseException) -> str:
    """Leaves out lines of definitions."""
    if isinstance(error, InvalidDefinitionsError):
        return "; ".join(map(str, error.problems))
    return str(error) if isinstance(error, FalconError) else type(error).__name__


def read_audit(
    connection: Connection, filters: Iterable[tuple[str, str]], sort: str | None, offset: int, limit: int
) -> tuple[list[AuditEntry], int]:
    """A page, and the number of entries in all; of filters with one field any may fit, of different fields all must."""
    wanted: dict[str, list[str]] = {}
    for field, value in filters:
        wanted.setdefault(field, []).append(value)
    fits = [or_(*(_fits(field, value) for value in values)) for field, values in wanted.items()]
    order = [AUDIT.c.id.desc()]
    if sort is not None:
        column = _COLUMNS[sort.removeprefix("-")]
        down = sort.startswith("-")
        order = [column.desc(), AUDIT.c.id.desc()] if down else [column.asc(), AUDIT.c.id.asc()]
    total = connection.execute(select(func.count()).select_from(AUDIT).where(*fits)).scalar_one()
    rows = connection.execute(select(AUDIT).where(*fits).order_by(*order).offset(offset).limit(limit))
    return [_entry(row._mapping) for row in rows], total


def _fits(field: str, value: str) -> ColumnElement[bool]:
    if field in ("entity", "kind"):
        return AUDIT.c.entities.contains([{"name" if field == "entity" else "kind": printable(value)}])
    return func.lower(_COLUMNS[field]) == printable(value).lower()


def _entry(row: Mapping[Any, Any]) -> AuditEntry:
    values = {name: value for name, value in row.items() if name != "id"}
    return AuditEntry(**{**values, "entities": [(one["kind"], one["name"]) for one in row["entities"]]})


_LIMIT = 100


def list_audit(installation: Installation, query: Query | None = None) -> Page[AuditEntry]:
    """Returns a page of the audit, by default the latest 100 entries.

    Raises:
        QueryError: a field is neither in :data:`FILTERS` nor in :data:`ORDERS`.
        SettingsError: the database cannot be reached.
    """
    asked = query or Query()
    for field, _ in asked.filters:
        known_field(field, FILTERS)
    if asked.sort is not None:
        known_field(asked.sort.removeprefix("-"), ORDERS)
    with installation.database.connect() as connection:
        found, total = read_audit(connection, asked.filters, asked.sort, asked.offset, asked.limit or _LIMIT)
    end = asked.offset + len(found)
    return Page(tuple(found), total, end if found and end < total else None)


class ListAudit(ListOperation):
    """List the audit log, the latest first: who did what, when, and the result.

    Filters on one field match any of their values; filters on different fields must all match: --filter entity=raw
    --filter result=denied. The default limit is 100 entries.
    """

    command = "admin audit"
    role = Role.ADMIN
    fields = FILTERS
    orders = ORDERS

    def run(self, installation: Installation) -> Page[AuditEntry]:
        return list_audit(installation, self.query)


def perform_for(
    installation: Installation,
    principal: Principal,
    way: Way,
    asked: Operation,
    colos: tuple[str, ...] = (),
    *,
    only_data: bool = False,
) -> Any:
    """Runs what ``principal`` requests over the network; raises as it, and DeniedError."""
    with requests_from(way, principal=principal, colos=colos, only_data=only_data):
        if not asked.of_owners and not principal.has(asked.role):
            with audited(installation, asked.command, PlainRequest(), changes=False):
                require_role(principal, asked.command, asked.role)
        return (
            asked.run(installation) if installation.performer is None else installation.performer(installation, asked)
        )
