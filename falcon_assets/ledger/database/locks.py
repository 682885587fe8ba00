"""PostgreSQL's advisory locks: they belong to a connection and end with it, whatever happens to its process."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from sqlalchemy import Connection, text

LEDGER_LOCK = "falcon ledger"
"""The lock of whoever writes the projection or its tables."""


def lock_in_transaction(connection: Connection, name: str) -> None:
    """Waits for the lock of that name and keeps it to the end of the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(name)})


def try_lock(connection: Connection, name: str) -> bool:
    """Takes the lock of that name for as long as the connection lives, if nobody else has it."""
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)}).scalar_one())


def unlock(connection: Connection, name: str) -> None:
    """Gives the lock of :func:`try_lock` back."""
    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})


def locked(connection: Connection, names: Collection[str]) -> set[str]:
    """Those of the locks that some connection to this database has."""
    keys = {_key(name): name for name in names}
    # PostgreSQL shows the two halves of the key, as unsigned numbers.
    found = connection.execute(
        text(
            "SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' "
            "AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = "
            "current_database()) AND ((classid::bigint << 32) | objid::bigint) = ANY(:keys)"
        ),
        {"keys": list(keys)},
    )
    return {keys[key] for key in found.scalars()}


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
