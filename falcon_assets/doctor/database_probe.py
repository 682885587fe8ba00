"""Examines the database, without changing it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError

from falcon_assets.doctor.database_facts import DatabaseFacts
from falcon_assets.errors import SettingsError
from falcon_assets.history.dagster_internals.daemon import daemon_parts
from falcon_assets.history.dagster_internals.tables import EVENT_LOG, has_tables
from falcon_assets.history.database import newest_revision, require_clock, revision
from falcon_assets.history.platform.active_daemon import candidates
from falcon_assets.history.platform.postgres import database_url, has_embedded, in_utc, unreachable
from falcon_assets.settings import Settings

CONNECT_SECONDS = 5
_ROUNDS = 5
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def database_facts(settings: Settings) -> DatabaseFacts | None:
    """Examines the database; starts the embedded one. None: the embedded one does not exist yet.

    Raises:
        SettingsError: it cannot be reached.
    """
    if settings.database_url is None and not has_embedded(settings.home):
        return None
    url = database_url(settings)
    arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "falcon doctor"}
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=arguments)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            return _facts(connection, engine, settings, url)
    except DBAPIError as error:
        raise unreachable(url, error) from error


def _facts(connection: Connection, engine: sqlalchemy.Engine, settings: Settings, url: str) -> DatabaseFacts:
    before = datetime.now(UTC)
    its_time = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    mine = before + (datetime.now(UTC) - before) / 2
    has_dagster = has_tables(connection)
    return DatabaseFacts(
        url=url,
        version=int(connection.execute(text("SHOW server_version_num")).scalar_one()),
        is_read_only=connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on",
        is_pooled=_backend(connection) != connection.connection.dbapi_connection.info.backend_pid,  # type: ignore[union-attr]
        loses_sessions=_loses_sessions(connection, engine),
        refuses_options=_refusal(url),
        ledger=revision(connection),
        ledger_head=newest_revision(),
        has_dagster=has_dagster,
        daemons=daemon_parts(connection) if has_dagster else (),
        candidates=candidates(connection),
        ahead=its_time - mine,
        newest_event=_newest_event(connection) if has_dagster else None,
        other_clock=_other_clock(connection, settings),
        data=_data(connection, engine, settings),
    )


def _loses_sessions(mine: Connection, engine: sqlalchemy.Engine) -> bool:
    """Whether one process serves two open sessions, or several serve one in turn.

    Session locks and LISTEN would then belong to other clients after a statement.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as other:
        first = _backend(mine)
        for _ in range(_ROUNDS):
            others = _backend(other)
            if others == first or _backend(mine) != first:
                return True
        # A pool with several connections may give each its own, until another one is busy.
        with engine.connect() as busy:
            _backend(busy)
            return _backend(mine) != first or _backend(other) != others


def _backend(connection: Connection) -> int:
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _refusal(url: str) -> str:
    arguments = {"connect_timeout": CONNECT_SECONDS, **in_utc(url)}
    try:
        sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=arguments).connect().close()
    except DBAPIError as error:
        return str(error.orig).strip().rpartition("\n")[2]
    return ""


def _newest_event(connection: Connection) -> datetime | None:
    newest = select(EVENT_LOG.c.timestamp).order_by(EVENT_LOG.c.id.desc()).limit(1)
    found: datetime | None = connection.execute(newest).scalar_one_or_none()
    return found.replace(tzinfo=UTC) if found else None


def _other_clock(connection: Connection, settings: Settings) -> str:
    try:
        require_clock(connection, settings.clock)
    except SettingsError as error:
        return str(error)
    return ""


def _data(connection: Connection, engine: sqlalchemy.Engine, settings: Settings) -> Path | None:
    host = engine.url.host or str(engine.url.query.get("host", ""))
    if settings.database_url is not None and host not in _LOCAL and not host.startswith("/"):
        return None
    try:
        found = Path(connection.execute(text("SHOW data_directory")).scalar_one())
    except DBAPIError:  # for superusers and pg_read_all_settings
        return None
    return found if found.is_dir() else None
