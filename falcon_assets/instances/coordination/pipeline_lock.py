"""The lock of the one process that starts runs of a pipeline: its sensor, or ``falcon run``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile

import sqlalchemy

from falcon_assets.history.database import try_lock, unlock
from falcon_assets.history.platform.open_ledger import Ledger

_POLL_SECONDS = 0.5


def coordinator_lock(pipeline: str) -> str:
    return f"falcon coordinator {pipeline}"


@contextmanager
def pipelines_held(ledger: Ledger, pipelines: Sequence[str], patience: float = 0) -> Iterator[str | None]:
    """Holds the pipelines' locks; yields the name of one that another process holds for ``patience`` seconds."""
    give_up = time.monotonic() + patience
    with ledger.engine.connect() as connection:
        try:
            busy = next((one for one in pipelines if not _taken(connection, one, give_up)), None)
            connection.commit()
            yield busy
        except BaseException:
            # Closes the session, and frees the locks with it: a silent server would be waited for to unlock them.
            connection.invalidate()
            raise
        try:
            for pipeline in takewhile(lambda one: one != busy, pipelines):
                unlock(connection, coordinator_lock(pipeline))
        except sqlalchemy.exc.DBAPIError:  # the session was lost in between, and the locks with it
            connection.invalidate()


def _taken(connection: sqlalchemy.Connection, pipeline: str, give_up: float) -> bool:
    while not try_lock(connection, coordinator_lock(pipeline)):
        if time.monotonic() >= give_up:
            return False
        # Asked for again and again: a statement that waits for a lock could not be given up in time.
        time.sleep(_POLL_SECONDS)
    return True
