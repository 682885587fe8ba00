"""Brings the schema ``falcon`` of a database up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, func, select, text

from falcon_assets.ledger.database.locks import LEDGER_LOCK, lock_in_transaction
from falcon_assets.ledger.tables import SCHEMA

_MIGRATIONS = Path(__file__).parent.parent / "migrations"


def upgrade(engine: Engine) -> None:
    """Creates the schema and its tables, or migrates them to what this version of the package needs.

    Safe to call from several processes at once; nothing happens where all is up to date. Either all of it happens or
    nothing.
    """
    with engine.connect() as connection:
        if revision(connection) == newest_revision():
            return
    from alembic import command  # noqa: PLC0415 - takes a while, and is needed once for a version
    from alembic.config import Config  # noqa: PLC0415 - as above

    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision(connection: Connection) -> str | None:
    """The revision of the ledger's tables; None: there are none."""
    table = f"{SCHEMA}.alembic_version"
    if connection.execute(select(func.to_regclass(table))).scalar_one() is None:
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar_one_or_none()  # noqa: S608 - a constant


def newest_revision() -> str:
    """The revision that this version of the package needs: the number in front of the last file."""
    return max(file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py"))
