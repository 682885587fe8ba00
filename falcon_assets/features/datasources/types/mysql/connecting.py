"""Connections to MySQL and MariaDB, from an Access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from falcon_assets.base.texts import hidden
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

_PORT = 3306
_SECONDS = 10
_NUMBERS = frozenset({"connect_timeout", "read_timeout", "write_timeout"})
_SWITCHES = frozenset({"ssl_disabled", "ssl_verify_cert", "ssl_verify_identity"})
_VALUES = re.compile(r"(Duplicate entry|value:?) '.*' for ", re.DOTALL)
"""What messages quote of rows."""


def connect(access: Access, *, seconds: float | None = None) -> Connection[Cursor]:
    """Returns a connection in no transaction: texts are UTF-8, and times are in UTC.

    Args:
        access: Where, and as whom.
        seconds: How long an answer may take; None: any time.

    Raises:
        DatasourceError: it cannot be reached, refuses the login, or its driver is not installed.
    """
    require_driver(access)
    import pymysql  # noqa: PLC0415 - of an extra

    place = urlsplit(access.endpoint)
    options: dict[str, Any] = {"connect_timeout": _SECONDS, "read_timeout": seconds, "write_timeout": seconds}
    options |= {name: _option(access.name, name, text) for name, text in access.driver.items()}
    try:
        return pymysql.connect(
            host=place.hostname or "",
            port=place.port or _PORT,
            user=access.user,
            password=(access.password or "").encode(),  # of a text it sends Latin-1
            database=unquote(place.path.strip("/")),
            charset="utf8mb4",
            init_command="SET time_zone = '+00:00'",
            program_name=f"falcon {access.name}",
            **options,
        )
    except (pymysql.MySQLError, OSError) as error:  # files of keys may not be there
        at = f"datasource {access.name!r} cannot be reached at {access.endpoint}"
        raise DatasourceError(f"{at}: {sentence(error)}") from None


def require_driver(access: Access) -> None:
    """Raises DatasourceError where it is not installed."""
    if find_spec("pymysql") is None:
        why = "needs a package: pip install 'falcon-assets[mysql]'"
        raise DatasourceError(f"datasource {access.name!r} {why}")


@contextmanager
def connected(access: Access, *, seconds: float | None = 30) -> Iterator[Cursor]:
    """A cursor of a connection, for statements whose errors become DatasourceError; nothing is committed."""
    with closing(connect(access, seconds=seconds)) as connection, said_of(access), connection.cursor() as cursor:
        yield cursor


@contextmanager
def said_of(access: Access) -> Iterator[None]:
    """Within the block, errors of the server become DatasourceError: a sentence without rows and secrets."""
    from pymysql import MySQLError  # noqa: PLC0415 - of an extra

    try:
        yield
    except MySQLError as error:
        raise DatasourceError(f"datasource {access.name!r}: {sentence(error)}") from error


def quoted(name: str) -> str:
    """A name in SQL, as it is spelled."""
    return "`" + name.replace("`", "``") + "`"


def _option(name: str, option: str, text: str) -> Any:
    if option in _NUMBERS:
        if not (text.isascii() and text.isdigit() and int(text)):
            raise DatasourceError(f"datasource {name!r}: driver.{option} must be a number of seconds")
        return int(text)
    if option in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise DatasourceError(f"datasource {name!r}: driver.{option} must be true or false")
        return text.lower() == "true"
    return text


def sentence(error: Exception) -> str:
    said = str(error.args[-1]) if error.args and error.args[-1] else str(error) or type(error).__name__
    return hidden(_VALUES.sub(r"\1 for ", " ".join(said.split())))
