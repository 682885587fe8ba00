"""The database of Dagster's history: the PostgreSQL of FALCON_DATABASE_URL, else an embedded one under FALCON_HOME."""

from __future__ import annotations

import subprocess
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from psycopg2.errors import DiskFull, ReadOnlySqlTransaction
from sqlalchemy import URL, Engine, ExceptionContext, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from falcon_assets.base.home import require_space
from falcon_assets.errors import LockedError, ReadOnlyError, SettingsError
from falcon_assets.settings import Settings, forget_other_servers, libpq_options

SERVER_USER = "pgserver"

_used: list[Any] = []


def database_url(settings: Settings) -> str:
    """Returns the SQLAlchemy URL of the database; starts the embedded server if it is used and not running.

    Raises:
        SettingsError: the embedded server cannot be started, or FALCON_DATABASE_URL is malformed.
    """
    if settings.database_url:
        return _checked(settings.database_url)
    forget_other_servers()
    runtime = settings.environ.get("XDG_RUNTIME_DIR")
    return _embedded_url(settings.home, Path(runtime) if runtime else None)


def in_utc(url: str) -> dict[str, str]:
    """Returns arguments for connections with times in UTC; other options of the URL, or of ``PGOPTIONS``, are kept."""
    said = make_url(url).normalized_query.get("options") or (libpq_options(),)
    return {"options": " ".join([*filter(None, said), "-c timezone=utc"])}


def has_embedded(home: Path) -> bool:
    """Whether ``home`` has data of an embedded server; else nothing has been recorded there yet."""
    return (home / "postgres" / "PG_VERSION").is_file()


def _checked(url: str) -> str:
    """The URL; the error text contains no part of it, since that may be of the password."""
    try:
        host = make_url(url).host or ""
    except (ArgumentError, ValueError):
        host = "@"
    if "@" in host:
        raise SettingsError(
            "FALCON_DATABASE_URL is not a URL: postgresql://user:password@host:port/database, with a port in digits, "
            "and @ : / ? # % in user and password as %40 %3A %2F %3F %23 %25"
        ) from None
    return url


def unreachable(url: str, error: BaseException) -> SettingsError:
    """Returns the error of a database that does not answer or is full: its URL without password, and the reason."""
    named = make_url(url).difference_update_query(("password", "sslpassword"))
    where = named.render_as_string(hide_password=True)
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, DBAPIError):
        cause = cause.__cause__
    origin = cause.orig if cause else error
    reason = str(origin).strip().partition("\n")[0] or "it does not answer"
    if isinstance(origin, DiskFull):
        return SettingsError(f"the disk of the database {where} is full: {reason}; free some space")
    return SettingsError(f"the database {where} cannot be reached: {reason}")


def refusing_in_words(engine: Engine) -> Engine:
    """Statements that its database refuses because it can only be read, or is full, raise ReadOnlyError."""
    named = engine.url.difference_update_query(("password", "sslpassword")).render_as_string(hide_password=True)

    @event.listens_for(engine, "handle_error")
    def explain(context: ExceptionContext) -> None:
        error = context.original_exception
        if isinstance(error, ReadOnlySqlTransaction):
            raise _only_read(engine.url) from error
        if isinstance(error, DiskFull):
            raise ReadOnlyError(
                f"the disk of the database {named} is full: nothing can be changed until some space is free"
            ) from error

    return engine


def require_writable(engine: Engine) -> None:
    """Raises ReadOnlyError where the database can only be read."""
    with engine.connect() as connection:
        if connection.exec_driver_sql("SHOW transaction_read_only").scalar_one() == "on":
            raise _only_read(engine.url)


def _only_read(url: URL) -> ReadOnlyError:
    named = url.difference_update_query(("password", "sslpassword")).render_as_string(hide_password=True)
    return ReadOnlyError(
        f"the database {named} can only be read now, as a standby: nothing can be changed until it can be written "
        "again, or FALCON_DATABASE_URL names the primary server"
    )


@lru_cache(maxsize=8)
def _embedded_url(home: Path, runtime: Path | None) -> str:
    require_space(home)
    data = home.resolve() / "postgres"
    with warnings.catch_warnings():
        # It warns that XDG_RUNTIME_DIR is not set, which is so in every container and changes nothing here.
        warnings.simplefilter("ignore")
        # Imported here: with FALCON_DATABASE_URL set nothing of the embedded server is needed.
        from falcon_assets.history.platform.embedded_server import EmbeddedServer  # noqa: PLC0415 - said above
    try:
        server = EmbeddedServer(data, runtime)
        server.start()
        _used.append(server)
        return server.url()
    except (OSError, RuntimeError, KeyError, subprocess.SubprocessError, LockedError) as error:
        raise SettingsError(
            f"the embedded PostgreSQL in {data} does not start: {error}; its log is {data / 'log'}, and "
            "FALCON_DATABASE_URL can name another server"
        ) from error


def revive_embedded(engine_url: URL) -> None:
    """Starts the embedded server again if it was killed and has that URL; no other process would."""
    for server in _servers(engine_url):
        if not server.is_alive():
            # Why it does not start is in its log; whoever waits for it says that it is away.
            with suppress(OSError, RuntimeError, SettingsError, LockedError):
                server.revive()


def is_embedded(engine_url: URL) -> bool:
    return bool(_servers(engine_url))


def _servers(engine_url: URL) -> list[Any]:
    return [one for one in list(_used) if engine_url.query.get("host") == str(one.get_postmaster_info().socket_dir)]


def leave_embedded() -> None:
    """Stops the embedded server, unless another process uses it; for a process that skips the exit handlers."""
    for server in list(_used):
        _used.remove(server)
        server.leave()
