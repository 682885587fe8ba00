"""The revision of Dagster's tables; nothing public tells it without migrating them."""

from __future__ import annotations

import dagster_postgres.run_storage.run_storage as storage
from dagster._core.storage.sql import check_alembic_revision  # what is there, and what Dagster needs
from dagster_postgres.utils import pg_alembic_config  # where the migrations are
from sqlalchemy import Connection


def dagster_revision(connection: Connection) -> tuple[str | None, str]:
    """The revision of Dagster's tables in a database, and the one that the installed Dagster needs."""
    found, needed = check_alembic_revision(pg_alembic_config(storage.__file__), connection)
    return found, str(needed)
