"""Brings the schema ``falcon`` of a database up to date."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, text

from falcon_assets.ledger.locks import LEDGER_LOCK, lock_in_transaction
from falcon_assets.ledger.tables import SCHEMA


def upgrade(engine: Engine) -> None:
    """Creates the schema and its tables, or migrates them to what this version of the package needs.

    Safe to call from several processes at once; nothing happens where all is up to date. Either all of it happens or
    nothing.
    """
    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision(connection: Connection) -> str | None:
    """The revision of the ledger's tables; None: there are none."""
    return MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA}).get_current_revision()
