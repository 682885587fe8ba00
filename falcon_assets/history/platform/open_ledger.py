"""The ledger of this installation, with its tables and up to date with Dagster's history."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy

from falcon_assets.errors import ReadOnlyError, SettingsError
from falcon_assets.history.dagster_internals.tables import (
    EVENT_LOG,
    has_tables,
    newest_folded_type,
    others_said_something,
    sensors_tick,
)
from falcon_assets.history.database import is_remembered, remember_clock, upgrade
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.overview import folded_up_to
from falcon_assets.history.platform.postgres import database_url, in_utc, refusing_in_words, unreachable
from falcon_assets.history.platform.reconnecting import wait_out_restarts
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings, database_name
from falcon_assets.shared_clock import keep_clock

if TYPE_CHECKING:
    import dagster as dg

    from falcon_assets.history.platform.dagster_history import DagsterHistory


_ALIVE_SECONDS = 60
"""Each part of the daemon has a heartbeat every half minute."""
_PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Ledger:
    engine: sqlalchemy.Engine
    instance: dg.DagsterInstance

    @property
    def url(self) -> str:
        return self.engine.url.render_as_string(hide_password=False)

    def catch_up(self) -> int:
        return fold(self.engine, self._history)

    def catch_up_to_read(self) -> None:
        """As :meth:`catch_up` for what only reads: where the database can only be read, as far as it was folded."""
        with suppress(ReadOnlyError):
            self.catch_up()

    def catch_up_on_others(self, run_id: str) -> None:
        """Folds new events, unless all are this run's own about its instances: that takes longer than the check."""
        with self.engine.connect() as connection:
            is_new = others_said_something(connection, folded_up_to(connection), run_id)
        if is_new:
            self.catch_up()

    def rebuild(self) -> int:
        return rebuild(self.engine, self._history)

    def behind(self, event_id: int) -> int:
        with self.engine.connect() as connection:
            return self._history.behind(connection, event_id)

    @property
    def _history(self) -> DagsterHistory:
        from falcon_assets.history.platform.dagster_history import DagsterHistory  # noqa: PLC0415 - it imports Dagster

        return DagsterHistory(self.instance)


def open_ledger(settings: Settings, instance: dg.DagsterInstance) -> Ledger:
    """Returns the ledger with migrated tables; the first clock it is opened with becomes that of the database."""
    url = database_url(settings)
    with suppress(SettingsError, ReadOnlyError):
        _remembered(url, settings.home, settings.clock, database_name(settings.database_url))
    return Ledger(_engine(url), instance)


def open_tables(settings: Settings) -> sqlalchemy.Engine | None:
    """Returns the tables without loading Dagster; None: not ready, so open the ledger. Raises SettingsError."""
    engine = _engine(database_url(settings))
    with engine.connect() as connection:
        is_open = has_tables(connection) and is_remembered(connection, settings.clock)
    if not (is_open and settings.home.is_dir()):
        return None
    if settings.clock.origin is not None:
        keep_clock(settings.home, settings.clock, database_name(settings.database_url))
    return engine


def is_folded(engine: sqlalchemy.Engine) -> bool:
    """Whether all of Dagster's history until now is in the tables.

    Where sensors tick, they fold new events all the time, and this waits for them shortly: folding here would require
    loading Dagster, which takes longer.
    """
    with engine.connect() as connection:
        if not has_tables(connection):
            return False  # it is kept elsewhere: whoever opens Dagster says so
        newest = newest_folded_type(connection, folded_up_to(connection))
        if newest is None:
            return True
        if not sensors_tick(connection, _ALIVE_SECONDS):
            return False
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < give_up:
            time.sleep(_POLL_SECONDS)
            connection.rollback()
            if folded_up_to(connection) >= newest:
                return True
    return False


def ledger_engine(settings: Settings) -> sqlalchemy.Engine:
    """Returns a new engine for the ledger's migrated tables, without need of Dagster."""
    url = database_url(settings)
    _engine(url)  # its tables are up to date
    return refusing_in_words(sqlalchemy.create_engine(url, pool_size=1, pool_pre_ping=True, hide_parameters=True))


def tables_engine(url: str) -> sqlalchemy.Engine:
    """Returns the engine for the ledger's migrated tables, one for the whole process; raises SettingsError."""
    return _engine(url)


def set_clock(settings: Settings, *, anew: bool) -> None:
    """Makes the clock of the settings that of the database; ``anew``: even if another simulated one ran.

    Raises:
        SettingsError: the database has another clock.
    """
    name = database_name(settings.database_url)
    _remember(database_url(settings), settings.home, settings.clock, name, anew=anew)


@lru_cache(maxsize=64)
def _remembered(url: str, home: Path, clock: Clock, name: str) -> None:
    _remember(url, home, clock, name)


def _remember(url: str, home: Path, clock: Clock, name: str, *, anew: bool = False) -> None:
    with _engine(url).begin() as connection:
        remember_clock(connection, clock, EVENT_LOG, anew=anew)
    if clock.origin is not None:
        keep_clock(home, clock, name)


@lru_cache(maxsize=4)
def _engine(url: str) -> sqlalchemy.Engine:
    # Not bounded: a tick that holds one, with the lock of its pipeline, needs others, and where all that there may be
    # are held so, each waits for the others until it fails. There are no more than two for each thread.
    engine = sqlalchemy.create_engine(
        url, pool_size=2, max_overflow=-1, pool_pre_ping=True, hide_parameters=True, connect_args=in_utc(url)
    )
    try:
        upgrade(refusing_in_words(wait_out_restarts(engine, is_known=False)))
    except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError) as error:
        raise unreachable(url, error) from error
    return engine
