"""The projection, to be compared with what a rebuild makes of it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES


def projection(ledger: Ledger) -> dict[str, list[Any]]:
    """All rows of all tables that are folded from history."""
    with ledger.engine.connect() as connection:
        return {
            table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
            for table in (PROCESS_INSTANCES, FEED_INSTANCES, CONSUMED, FOLD)
        }
