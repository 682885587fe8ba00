"""Retries of Dagster's PostgreSQL storages when the database is unreachable."""

from __future__ import annotations

from psycopg2 import InterfaceError

NotTriedAgain = InterfaceError
"""Dagster connects up to six times per query, except where connecting raises this."""
