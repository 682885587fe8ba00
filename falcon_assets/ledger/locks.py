"""PostgreSQL's advisory locks: held by a connection, gone with it, whatever happens to its process."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, text

LEDGER_LOCK = "falcon ledger"
"""Whoever writes the projection or its tables holds it."""


def lock_in_transaction(connection: Connection, name: str) -> None:
    """Waits for the lock of that name and holds it to the end of the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(name)})


def try_lock(connection: Connection, name: str) -> bool:
    """Takes the lock of that name for as long as the connection lives, if nobody else has it."""
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)}).scalar_one())


def unlock(connection: Connection, name: str) -> None:
    """Gives the lock of :func:`try_lock` back."""
    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
