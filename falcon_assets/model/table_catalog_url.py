"""Which endpoints of registries can be used."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_HIVE = re.compile(r"thrift://[^\s/:,]+:\d+(,\s*thrift://[^\s/:,]+:\d+)*")
ICEBERG = "iceberg+"
"""The beginning of the URL of an Iceberg catalog; that of its database or REST service follows."""
_IN_DATABASE = f"{ICEBERG}postgresql"
_REST = (f"{ICEBERG}https", f"{ICEBERG}http")
_LEGAL = (
    f"thrift://host:port (a Hive Metastore), {_IN_DATABASE}://user@host/database#catalog (Iceberg in a database) or "
    f"{_REST[0]}://host/path#warehouse (Iceberg's REST service)"
)


def is_rest(endpoint: str) -> bool:
    """Whether the legal endpoint is that of a REST service, which takes options."""
    return endpoint.startswith(_REST)


def is_hive(endpoint: str) -> bool:
    """Whether the legal endpoint is that of a Hive Metastore; else it is an Iceberg catalog's."""
    return endpoint.startswith("thrift://")


def registry_problem(endpoint: str) -> str | None:
    """Why no tables can be found by an endpoint of a registry; None: they can."""
    if _HIVE.fullmatch(endpoint):
        return None
    try:
        parts = urlsplit(endpoint)
        password, _ = parts.password, parts.port
    except ValueError:
        return f"it is not a URL: write {_LEGAL}"
    if parts.scheme in _REST:
        return _rest_problem(parts)
    if parts.scheme != _IN_DATABASE:
        return f"{parts.scheme or endpoint!r} is not a registry of tables: write {_LEGAL}"
    if password:
        return "a password must not stand here: use PGPASSWORD or the file .pgpass of PostgreSQL"
    return None if parts.path.strip("/") else f"a database is missing: write {_LEGAL}"


def _rest_problem(parts: SplitResult) -> str | None:
    if parts.username is not None or parts.query:
        return "credentials must not stand here: name them in storage_options of the registry, as {env: NAME}"
    return None if parts.hostname else f"a host is missing: write {_LEGAL}"


def shown_registry(endpoint: str) -> str:
    """The legal endpoint without users, options and whatever else is nobody's business."""
    if is_hive(endpoint):
        return endpoint
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
