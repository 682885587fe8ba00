"""The ledger of this installation: its database, up to date with Dagster's history."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import dagster as dg
import sqlalchemy

from falcon_assets.ledger.fold import fold, rebuild
from falcon_assets.ledger.upgrade import upgrade
from falcon_assets.orchestration.history import DagsterHistory
from falcon_assets.orchestration.postgres import database_url
from falcon_assets.orchestration.reconnecting import wait_out_restarts
from falcon_assets.settings import Settings


@dataclass(frozen=True)
class Ledger:
    """The ledger beside the history of a Dagster instance.

    Attributes:
        engine: The database.
        instance: Whose history is folded.
    """

    engine: sqlalchemy.Engine
    instance: dg.DagsterInstance

    def catch_up(self) -> int:
        """Folds in what happened since the last time; the number of facts."""
        return fold(self.engine, DagsterHistory(self.instance))

    def rebuild(self) -> int:
        """Makes the projection anew from all of history; the number of facts."""
        return rebuild(self.engine, DagsterHistory(self.instance))

    def behind(self, event_id: int) -> int:
        """How many events of the history would be looked at, had it been folded up to that event."""
        with self.engine.connect() as connection:
            return DagsterHistory(self.instance).behind(connection, event_id)


def open_ledger(settings: Settings, instance: dg.DagsterInstance) -> Ledger:
    """The ledger, its tables up to date."""
    return Ledger(ledger_engine(settings), instance)


def ledger_engine(settings: Settings) -> sqlalchemy.Engine:
    """The database with the ledger's tables, for whoever only reads them."""
    return _engine(database_url(settings))


@lru_cache(maxsize=4)
def _engine(url: str) -> sqlalchemy.Engine:
    engine = sqlalchemy.create_engine(
        url, pool_size=2, max_overflow=8, pool_pre_ping=True, connect_args={"options": "-c timezone=utc"}
    )
    upgrade(engine)
    return wait_out_restarts(engine)
