"""Connections to PostgreSQL, from an Access."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - it is a class

from falcon_assets.base.texts import hidden
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access

CONNECT_SECONDS = 10
_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""A silent host is noticed after a minute."""
SESSION = (
    ("client_encoding", "UTF8"),
    ("timezone", "UTC"),
    ("datestyle", "ISO"),
    ("intervalstyle", "iso_8601"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "3"),  # floats as they are, from old servers as well
)


def connect(access: Access, *, seconds: float | None = None) -> Connection:
    """Returns a connection that is in no transaction: texts are UTF-8, and times are in UTC and ISO.

    Workers of Spark can use COPY on it. The process of the driver cannot, since psycopg2 waits there in Python, so that
    waiting can be interrupted.

    Args:
        access: Where, and as whom.
        seconds: How long a statement may take; None: any time.

    Raises:
        DatasourceError: it cannot be reached, or refuses the login.
    """
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": f"falcon {access.name}",
        **_ALIVE,
    }
    options |= {**access.driver, "user": access.user, "password": access.password}
    try:
        made: Connection = psycopg2.connect(access.endpoint, **options)
    except psycopg2.Error as error:
        at = f"datasource {access.name!r} cannot be reached at {access.endpoint}"
        raise DatasourceError(f"{at}: {sentence(error)}") from None
    with said_of(access):
        made.autocommit = True  # otherwise a rollback would take the settings back
        with made.cursor() as cursor:
            for name, value in (*SESSION, ("statement_timeout", str(int(1000 * (seconds or 0))))):
                cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        made.autocommit = False
    return made


@contextmanager
def connected(access: Access, *, seconds: float | None = 30) -> Iterator[Connection]:
    """A connection, for statements whose errors become DatasourceError; what is not committed is rolled back."""
    with closing(connect(access, seconds=seconds)) as connection, said_of(access):
        yield connection


@contextmanager
def said_of(access: Access) -> Iterator[None]:
    """Within the block, errors of PostgreSQL become DatasourceError: a sentence without rows and secrets."""
    try:
        yield
    except psycopg2.Error as error:
        raise DatasourceError(f"datasource {access.name!r}: {sentence(error)}") from error


def sentence(error: psycopg2.Error) -> str:
    """The error, without rows and secrets."""
    if error.diag.message_primary:
        return hidden(error.diag.message_primary)
    lines = [line.strip() for line in str(error).splitlines() if line and not line.startswith("\t")]
    return hidden("; ".join(dict.fromkeys(lines)) or type(error).__name__)
