"""The storage class that ``dagster.yaml`` names: Dagster's PostgreSQL storage with our database and a pool.

Frequencies that no cron line can say (``hours(5)``, ``days(2)``, ``months(5)``) are dynamic partitions in Dagster.
Their keys follow from the definition and the clock, so they are computed here instead of being stored: nothing has to
register them, and none can be missing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import sqlalchemy
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from dagster_postgres.utils import DagsterPostgresException

import falcon_assets.orchestration.mapping.input_window_mapping  # noqa: F401 - the daemon and the UI learn the class here
from falcon_assets.ledger.one_clock import require_clock
from falcon_assets.orchestration.dagster_internals.storage import (
    ConfigurableClass,
    ConfigurableClassData,
    DagsterStorage,
    InstigatorState,
    InstigatorTick,
    PaginatedResults,
)
from falcon_assets.orchestration.mapping.partitions import instant_of_key, key_of_instant, timeline_of_dynamic
from falcon_assets.orchestration.platform.postgres import database_url, unreachable
from falcon_assets.orchestration.platform.reconnecting import wait_out_restarts
from falcon_assets.planning.time.clock import APART, Clock
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.settings import load_settings

DATABASE_ERRORS = (sqlalchemy.exc.DBAPIError, DagsterPostgresException)
"""What goes wrong with the database: as SQLAlchemy says it, and as Dagster does after some more tries."""


def pooled_engine(url: str) -> sqlalchemy.Engine:
    """An engine that keeps connections open: Dagster's own opens one per statement, four times slower.

    Connections are tested before use, so a restarted server is noticed and survived.
    """
    return sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", pool_size=2, max_overflow=18, pool_pre_ping=True, pool_recycle=3600
    )


class PooledRunStorage(PostgresRunStorage):
    """Dagster's run storage on a pooled engine."""

    def __init__(self, engine: sqlalchemy.Engine, url: str, *, make_tables: bool) -> None:
        super().__init__(url, should_autocreate_tables=make_tables)
        self._engine = engine

    def dispose(self) -> None:
        """Closes the connections: a code server opens an instance for every tick, and Dagster disposes of it so."""
        super().dispose()
        self._engine.dispose()


class PooledScheduleStorage(PostgresScheduleStorage):
    """Dagster's schedule storage on a pooled engine.

    What migrations have brought stays. Dagster's own storages of runs and events remember it too, but this one asks
    up to eight times a tick, which was a third of what the daemon computed.

    Times that are yet to come, by a clock that was set back since, are not there: Dagster would begin no tick of a
    sensor or a schedule before they have come once more.
    """

    def __init__(self, engine: sqlalchemy.Engine, url: str, *, make_tables: bool) -> None:
        self._migrated: set[str] = set()
        super().__init__(url, should_autocreate_tables=make_tables)
        self._engine = engine

    def has_instigators_table(self) -> bool:
        """Whether the table is there; asked until it is."""
        return "instigators" in self._migrated or super().has_instigators_table()

    def _has_instigators_table(self, conn: sqlalchemy.Connection) -> bool:
        if "instigators" not in self._migrated and super()._has_instigators_table(conn):
            self._migrated.add("instigators")
        return "instigators" in self._migrated

    def has_built_index(self, migration_name: str) -> bool:
        """Whether that migration of data is done; asked until it is."""
        if migration_name not in self._migrated and super().has_built_index(migration_name):
            self._migrated.add(migration_name)
        return migration_name in self._migrated

    def all_instigator_state(self, *args: Any, **kwargs: Any) -> Sequence[InstigatorState]:
        """When each sensor and schedule ticked last, and the like."""
        return [_without_future(state) for state in super().all_instigator_state(*args, **kwargs)]

    def get_instigator_state(self, origin_id: str, selector_id: str) -> InstigatorState | None:
        """The same for one."""
        state = super().get_instigator_state(origin_id, selector_id)
        return _without_future(state) if state else None

    def get_ticks(
        self, origin_id: str, selector_id: str, before: float | None = None, *args: Any, **kwargs: Any
    ) -> Sequence[InstigatorTick]:
        """The latest ticks, up to now."""
        end = _future() if before is None else min(before, _future())
        return super().get_ticks(origin_id, selector_id, end, *args, **kwargs)


def _future() -> float:
    return time.time() + APART.total_seconds()


def _without_future(state: InstigatorState) -> InstigatorState:
    data: Any = state.instigator_data
    known = data._asdict() if data else {}  # of a schedule, or of a sensor: their times are named alike
    end = _future()
    ahead = [name for name, at in known.items() if name.endswith("_timestamp") and at is not None and at > end]
    return state.with_data(data._replace(**dict.fromkeys(ahead))) if data and ahead else state


class PooledEventLogStorage(PostgresEventLogStorage):
    """Dagster's event log storage on a pooled engine, with the computed keys of our dynamic partitions."""

    def __init__(self, engine: sqlalchemy.Engine, url: str, *, make_tables: bool) -> None:
        super().__init__(url, should_autocreate_tables=make_tables)
        self._engine = engine

    def dispose(self) -> None:
        """Closes the connections, as the run storage does: who comes last may have opened one again."""
        super().dispose()
        self._engine.dispose()

    def get_dynamic_partitions(self, partitions_def_name: str) -> Sequence[str]:
        """All keys up to now, oldest first."""
        timeline = timeline_of_dynamic(partitions_def_name)
        if timeline is None:
            return super().get_dynamic_partitions(partitions_def_name)
        return [key_of_instant(instant) for instant in timeline.until(load_settings().now())]

    def get_paginated_dynamic_partitions(
        self, partitions_def_name: str, limit: int, ascending: bool, cursor: str | None = None
    ) -> PaginatedResults[str]:
        """A page of the keys; the cursor is the last key of the page before."""
        if timeline_of_dynamic(partitions_def_name) is None:
            return super().get_paginated_dynamic_partitions(partitions_def_name, limit, ascending, cursor)
        keys = list(self.get_dynamic_partitions(partitions_def_name))
        if not ascending:
            keys.reverse()
        start = keys.index(cursor) + 1 if cursor in keys else 0
        page = keys[start : start + limit]
        return PaginatedResults(
            results=page, cursor=page[-1] if page else cursor or "", has_more=start + limit < len(keys)
        )

    def has_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> bool:
        """Whether the key is an instance that exists by now."""
        timeline = timeline_of_dynamic(partitions_def_name)
        if timeline is None:
            return super().has_dynamic_partition(partitions_def_name, partition_key)
        return _exists(timeline, partition_key)

    def get_existing_dynamic_partitions(
        self, partitions_def_name: str, partition_keys: Sequence[str]
    ) -> AbstractSet[str]:
        """Those of the keys that exist by now."""
        timeline = timeline_of_dynamic(partitions_def_name)
        if timeline is None:
            return super().get_existing_dynamic_partitions(partitions_def_name, partition_keys)
        return {key for key in partition_keys if _exists(timeline, key)}


def _exists(timeline: Timeline, key: str) -> bool:
    instant = instant_of_key(key)
    return instant is not None and timeline.contains(instant) and instant <= load_settings().now()


def _has_tables(connection: sqlalchemy.Connection) -> bool:
    """Whether Dagster's storages would find the tables that they look for, each on a connection of its own.

    A code server opens an instance for every tick: so it opens one connection and not four.
    """
    names = set(sqlalchemy.inspect(connection).get_table_names())
    return names >= {"runs", "instance_info", "event_logs"} and not names.isdisjoint({"schedules", "jobs"})


class FalconStorage(DagsterStorage, ConfigurableClass):
    """Dagster's history on the PostgreSQL of the settings: FALCON_DATABASE_URL, else the embedded server."""

    def __init__(self, url: str, inst_data: ConfigurableClassData | None = None, clock: Clock | None = None) -> None:
        """Opens it.

        Args:
            url: The database.
            inst_data: How ``dagster.yaml`` declared this storage.
            clock: What this process goes by, if it goes by a clock.

        Raises:
            SettingsError: the database cannot be reached, or goes by another clock.
        """
        self._inst_data = inst_data
        engine = pooled_engine(url)
        try:
            with engine.connect() as connection:
                make_tables = not _has_tables(connection)
                if clock is not None:
                    require_clock(connection, clock)
        except sqlalchemy.exc.DBAPIError as error:
            raise unreachable(url, error) from error
        wait_out_restarts(engine)
        self._runs = PooledRunStorage(engine, url, make_tables=make_tables)
        self._events = PooledEventLogStorage(engine, url, make_tables=make_tables)
        self._schedules = PooledScheduleStorage(engine, url, make_tables=make_tables)
        super().__init__()  # type: ignore[no-untyped-call]  # Dagster's class has no annotations here

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """How ``dagster.yaml`` declared this storage."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing to configure in ``dagster.yaml``: the settings come from the environment."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> FalconStorage:
        """Built by Dagster from ``dagster.yaml``."""
        settings = load_settings()
        return cls(database_url(settings), inst_data, settings.clock)

    @property
    def run_storage(self) -> PooledRunStorage:
        """Runs."""
        return self._runs

    @property
    def event_log_storage(self) -> PooledEventLogStorage:
        """Events."""
        return self._events

    @property
    def schedule_storage(self) -> PooledScheduleStorage:
        """Ticks of schedules and sensors."""
        return self._schedules

    # None: other processes rebuild this class as a whole, from dagster.yaml, and never one of its parts.

    @property
    def run_storage_data(self) -> None:
        """No separate declaration."""

    @property
    def event_storage_data(self) -> None:
        """No separate declaration."""

    @property
    def schedule_storage_data(self) -> None:
        """No separate declaration."""

    def dispose(self) -> None:
        """Closes the pooled connections."""
        self._events.dispose()
        self._runs.dispose()
        self._schedules.dispose()
