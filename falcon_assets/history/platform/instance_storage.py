"""The storage class that ``dagster.yaml`` names: Dagster's PostgreSQL storage with our database and a pool.

Frequencies that no cron line expresses (``hours(5)``, ``days(2)``, ``months(5)``) are dynamic partitions in Dagster.
Their keys follow from the definition and the clock and are computed here, not stored: none has to be registered, and
none can be missing. With a simulated clock this holds for all other partitions, too: those of its future do not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import sqlalchemy

import falcon_assets.history.mapping.partition_mappings  # noqa: F401 - the daemon and the UI learn the class here
from falcon_assets.history.dagster_internals.events import AT_ONCE
from falcon_assets.history.dagster_internals.partitions import partitions_exist_by
from falcon_assets.history.dagster_internals.prompt_daemon import act_at_once
from falcon_assets.history.dagster_internals.quiet_daemon import tell_only_news
from falcon_assets.history.dagster_internals.server_threads import make_room
from falcon_assets.history.dagster_internals.storage import PooledStorage, has_tables
from falcon_assets.history.dagster_internals.workspace_refresh import read_only_other_servers
from falcon_assets.history.database import require_clock
from falcon_assets.history.mapping.partitions import instant_of_key, timeline_of_dynamic
from falcon_assets.history.platform.active_daemon import of_active_daemon, work_arguments
from falcon_assets.history.platform.postgres import database_url, refusing_in_words, unreachable
from falcon_assets.history.platform.reconnecting import wait_out_restarts
from falcon_assets.history.tables import SCHEMA
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.timeline import Timeline
from falcon_assets.settings import load_settings, write_events_together

_WITHOUT_USER = """
DO $do$
DECLARE others text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('falcon search_path'));
    SELECT string_agg(one, ', ') INTO others
        FROM regexp_split_to_table(current_setting('search_path'), ' *, *') one WHERE one <> '"$user"';
    EXECUTE format(
        'ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = %s', current_database(), coalesce(others, 'public')
    );
END $do$
"""
"""Sessions of this user in this database, from now on, do not look into the schema of the user's name."""


@dataclass(frozen=True)
class _KeysUpToNow(Collection[str]):
    timeline: Timeline
    now: datetime

    def __iter__(self) -> Iterator[str]:
        return map(format_instant, self.timeline.until(self.now))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        instant = instant_of_key(str(key))
        return instant is not None and self.timeline.contains(instant) and instant <= self.now


def _computed_keys(definition: str) -> Collection[str] | None:
    timeline = timeline_of_dynamic(definition)
    return _KeysUpToNow(timeline, load_settings().now()) if timeline else None


def _keep_apart(connection: sqlalchemy.Connection) -> bool:
    """Keeps the tables of Dagster, which names no schema, out of the ledger's; whether new sessions are needed for it.

    PostgreSQL looks first into the schema of the user's name. For a user ``falcon`` that is the ledger's, where Dagster
    would read our table ``alembic_version`` as its own.
    """
    asked = sqlalchemy.text(
        "SELECT current_user = :ours AND to_regclass(:runs) IS NULL "
        "AND current_setting('search_path') LIKE '%\"$user\"%'"
    )
    if not connection.execute(asked, {"ours": SCHEMA, "runs": f"{SCHEMA}.runs"}).scalar_one():
        return False
    connection.execute(sqlalchemy.text(_WITHOUT_USER))
    return True


class FalconStorage(PooledStorage):
    def __init__(self, url: str, inst_data: Any = None, clock: Clock | None = None) -> None:
        """Opens it; ``clock`` None: the process needs none.

        Raises:
            SettingsError: the database cannot be reached, or has another clock.
        """
        # Dagster's own engine opens a connection per statement, four times slower. Those that are kept open are tested
        # before use, so a restarted server is noticed and survived.
        engine = sqlalchemy.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            pool_size=2,
            max_overflow=18,
            pool_pre_ping=True,
            pool_recycle=3600,
            hide_parameters=True,
            connect_args=work_arguments(),
        )
        wait_out_restarts(refusing_in_words(of_active_daemon(engine)), is_known=False)
        try:
            with engine.connect() as connection:
                make_tables = not has_tables(connection)
                if clock is not None:
                    require_clock(connection, clock)
                needs_others = make_tables and _keep_apart(connection)
            if needs_others:
                engine.dispose()
        except sqlalchemy.exc.DBAPIError as error:
            raise unreachable(url, error) from error
        super().__init__(engine, _computed_keys, inst_data, make_tables=make_tables)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> Self:
        tell_only_news()  # the daemon, too, begins with its storage
        read_only_other_servers()
        act_at_once()
        make_room()
        write_events_together(AT_ONCE)  # what a run is going to make, when it is created
        settings = load_settings()
        clock = settings.clock
        partitions_exist_by(None if clock.origin is None else lambda: clock.at(datetime.now(UTC)))
        return cls(database_url(settings), inst_data, clock)
