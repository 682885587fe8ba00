"""How Dagster's PostgreSQL storages go on where the database is away."""

from __future__ import annotations

from psycopg2 import InterfaceError

NotTriedAgain = InterfaceError
"""Dagster connects up to six times for each question, but where connecting raises this."""
