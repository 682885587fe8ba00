"""Who did what, when, to what, with what result."""

from __future__ import annotations

from typing import Any

from falcon_assets.ledger.audit import FILTERS, ORDERS, AuditEntry, read_audit
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Page, Query, known_field

_LIMIT = 100


def list_audit(installation: Installation, query: Query | None = None) -> Page[AuditEntry]:
    """A part of the audit, the latest first unless another order is asked for.

    Args:
        installation: Where.
        query: Which part, by ``ledger.audit.FILTERS`` and ``ORDERS``; 100 entries unless it has a limit.

    Raises:
        QueryError: a field is not known.
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


def audit_data(entry: AuditEntry) -> dict[str, Any]:
    """What ``--json`` prints of an entry."""
    return {
        "at": entry.at.isoformat(),
        "recorded": entry.recorded.isoformat(),
        "principal": entry.principal,
        "user": entry.os_user,
        "way": entry.way,
        "operation": entry.operation,
        "entities": [{"kind": kind, "name": name} for kind, name in entry.entities],
        "instances": entry.instances,
        "first": entry.first and format_instant(entry.first),
        "last": entry.last and format_instant(entry.last),
        "reason": entry.reason,
        "result": entry.result,
        "message": entry.message,
    }
