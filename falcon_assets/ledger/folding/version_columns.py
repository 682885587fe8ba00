"""The columns of versions and what these were made from: once for all versions that were made alike."""

from __future__ import annotations

import json
from collections.abc import Collection
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, select

from falcon_assets.ledger.database.upsert import rows_of, upsert
from falcon_assets.ledger.tables import VERSION_COLUMNS
from falcon_assets.planning.lineage.columns import OutputColumns

Plans: TypeAlias = dict[str, dict[str, Any]]
"""Columns as JSON, by the hash of them."""


def plan_of(columns: OutputColumns | None, plans: Plans) -> str | None:
    """The hash of columns, which are among ``plans`` afterwards; None: not recorded."""
    if columns is None:
        return None
    said = columns.as_data()
    plan = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
    plans[plan] = said
    return plan


def store_plans(connection: Connection, plans: Plans) -> None:
    """Stores what is new among them."""
    upsert(connection, VERSION_COLUMNS, [{"plan": plan, "rows_opaque": None, **said} for plan, said in plans.items()])


def columns_of_plans(connection: Connection, plans: Collection[str]) -> dict[str, OutputColumns]:
    """Columns by their hashes."""
    given = rows_of(VERSION_COLUMNS, {"plan": sorted(plans)})
    asked = select(VERSION_COLUMNS).join(given, VERSION_COLUMNS.c.plan == given.c.plan)
    return {row.plan: OutputColumns.of_data(dict(row._mapping)) for row in connection.execute(asked)}
