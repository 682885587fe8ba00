"""Sessions of PostgreSQL whose program was killed: until the server notices, they keep their locks."""

from __future__ import annotations

import sqlalchemy

from tests.waiting import wait_until

_HOLDING = sqlalchemy.text(
    "SELECT pid, state, query FROM pg_stat_activity AS session "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
    "AND (state <> 'idle' OR EXISTS (SELECT FROM pg_locks AS held WHERE held.pid = session.pid "
    "AND held.locktype = 'advisory'))"
)


def wait_for_dead_sessions(engine: sqlalchemy.Engine) -> None:
    """Waits until no other session of the database is at work, in a transaction, or has an advisory lock."""

    def holding() -> list[str]:
        with engine.connect() as connection:
            return [str(row) for row in connection.execute(_HOLDING)]

    wait_until(lambda: not holding(), what=holding)
