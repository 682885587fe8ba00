"""What Dagster tells PostgreSQL of each event, in the moment in which it is stored.

It says itself that it needs that no more; where it says nothing, and behind a pooler that passes nothing on, whoever
listens looks from time to time.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import psycopg2
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

CHANNEL = "run_events"


class Notices(Protocol):
    def __call__(self, seconds: float) -> bool:
        """Waits until an event is stored, at most so long; returns whether one was.

        Raises:
            OperationalError: SQLAlchemy's, where the session has ended.
        """


@contextmanager
def listening(connection: Connection) -> Iterator[Notices]:
    """``connection`` must be in autocommit, and is of no use to others afterwards."""
    connection.execute(text(f"LISTEN {CHANNEL}"))
    driver = connection.connection.driver_connection
    assert driver is not None

    def wait(seconds: float) -> bool:
        try:
            select.select([driver], [], [], seconds)
            driver.poll()
        except psycopg2.Error as error:  # past SQLAlchemy, which would say it in its own words
            raise OperationalError(f"LISTEN {CHANNEL}", None, error) from error
        heard = bool(driver.notifies)
        driver.notifies.clear()
        return heard

    try:
        yield wait
    finally:
        connection.invalidate()
