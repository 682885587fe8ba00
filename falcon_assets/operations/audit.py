"""The audit: user, time, target and result of operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select

from falcon_assets.base.texts import recorded
from falcon_assets.errors import printable
from falcon_assets.history.tables import AUDIT
from falcon_assets.model.entity import Key
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import ListOperation, Page, Query, known_field

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
    fields = FILTERS
    orders = ORDERS

    def run(self, installation: Installation) -> Page[AuditEntry]:
        return list_audit(installation, self.query)
