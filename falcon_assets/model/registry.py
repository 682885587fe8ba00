"""Which endpoints of registries can be used."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HIVE = re.compile(r"thrift://[^\s/:,]+:\d+(,\s*thrift://[^\s/:,]+:\d+)*")
ICEBERG = "iceberg+postgresql"
_LEGAL = f"thrift://host:port (a Hive Metastore) or {ICEBERG}://user@host/database#catalog (Iceberg in a database)"


def registry_problem(endpoint: str) -> str | None:
    """Why no tables can be found by an endpoint of a registry; None: they can."""
    if _HIVE.fullmatch(endpoint):
        return None
    try:
        parts = urlsplit(endpoint)
        password = parts.password
    except ValueError:
        return f"that is no URL: write {_LEGAL}"
    if parts.scheme != ICEBERG:
        return f"{parts.scheme or endpoint!r} is no registry of tables: write {_LEGAL}"
    if password:
        return "a password must not stand here: use PGPASSWORD or the file .pgpass of PostgreSQL"
    return None if parts.path.strip("/") else f"a database is missing: write {_LEGAL}"


def shown_registry(endpoint: str) -> str:
    """The legal endpoint without users, options and whatever else is nobody's business."""
    if endpoint.startswith("thrift://"):
        return endpoint
    parts = urlsplit(endpoint)
    return f"{ICEBERG}://{parts.netloc.rpartition('@')[2]}{parts.path}"
