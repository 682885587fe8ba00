"""The columns of versions and what these were made from: once for all versions that were made alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, select

from falcon_assets.ledger.tables import VERSION_COLUMNS
from falcon_assets.ledger.upsert import upsert
from falcon_assets.planning.lineage.usage import OutputColumn

Plans: TypeAlias = dict[str, list[dict[str, Any]]]
"""Columns as JSON, by the hash of them."""


def plan_of(columns: Sequence[OutputColumn], plans: Plans) -> str | None:
    """The hash of columns, which are among ``plans`` afterwards; None: there are none."""
    if not columns:
        return None
    said = [one.as_data() for one in columns]
    plan = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
    plans[plan] = said
    return plan


def store_plans(connection: Connection, plans: Plans) -> None:
    """Stores what is new among them."""
    upsert(connection, VERSION_COLUMNS, [{"plan": plan, "columns": columns} for plan, columns in plans.items()])


def columns_of_plan(connection: Connection, plan: str | None) -> list[OutputColumn] | None:
    """The columns; None: not recorded."""
    asked = select(VERSION_COLUMNS.c.columns).where(VERSION_COLUMNS.c.plan == plan)
    found = connection.execute(asked).scalar()
    return None if found is None else [OutputColumn.of_data(one) for one in found]
