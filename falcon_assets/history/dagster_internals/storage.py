"""Dagster's PostgreSQL storage on another engine; the overridden methods are neither public nor documented.

Separate because it loads Dagster's storages, which code locations do not need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any, TypeAlias

import dagster as dg
import sqlalchemy
from dagster._core.execution.backfill import PartitionBackfill  # what is kept of a backfill
from dagster._core.instance.utils import RUNLESS_RUN_ID  # the run of what no run has said
from dagster._core.scheduler.instigation import InstigatorState, InstigatorTick  # what is kept of sensors and schedules
from dagster._core.storage.asset_check_execution_record import AssetCheckPartitionInfo  # what is known of a partition
from dagster._core.storage.base_storage import DagsterStorage  # what a storage of dagster.yaml derives from
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,  # evaluations of asset checks
    SqlEventLogStorageMetadata,  # the tables of events
)
from dagster._core.storage.runs.schema import RunStorageSqlMetadata  # the tables of runs
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata  # the tables of sensors and schedules
from dagster._core.types.pagination import PaginatedResults  # a page of partition keys
from dagster._record import replace  # of what is no dataclass
from dagster._serdes import ConfigurableClass, ConfigurableClassData  # how dagster.yaml declares a class
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from dagster_postgres.utils import (
    DagsterPostgresException,  # raised when the database does not come back in time
    set_pg_statement_timeout,  # of connections of webservers
)
from psycopg2.errors import ReadOnlySqlTransaction
from sqlalchemy.exc import InternalError

from falcon_assets.errors import ReadOnlyError
from falcon_assets.history.dagster_internals.event_texts import EventTexts
from falcon_assets.history.dagster_internals.prompt_daemon import note_event, note_tick
from falcon_assets.history.dagster_internals.stamps import STAMP, stamped
from falcon_assets.planning.clock import APART

_EVENT_COLUMNS = ("run_id", "event", "dagster_event_type", "timestamp", "step_key", "asset_key", "partition")
_INSERT_EVENTS = sqlalchemy.text(
    "INSERT INTO event_logs (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition) "
    "SELECT run_id, event, kind, timestamp, step_key, asset_key, partition FROM unnest("
    "CAST(:run_id AS text[]), CAST(:event AS text[]), CAST(:dagster_event_type AS text[]), "
    "CAST(:timestamp AS timestamp[]), CAST(:step_key AS text[]), CAST(:asset_key AS text[]), "
    "CAST(:partition AS text[])) "
    "WITH ORDINALITY AS given (run_id, event, kind, timestamp, step_key, asset_key, partition, number) "
    "ORDER BY number RETURNING id"
)
DATABASE_ERRORS = (sqlalchemy.exc.DBAPIError, DagsterPostgresException, ReadOnlyError)
"""Errors of the database: SQLAlchemy's, Dagster's after its own retries, and ours where it can only be read."""
ComputedKeys: TypeAlias = Callable[[str], Collection[str] | None]
"""Returns the keys of the dynamic partitions of that name, oldest first; None where Dagster itself keeps them."""


def has_tables(connection: sqlalchemy.Connection) -> bool:
    """Whether Dagster's storages would find their tables, for which each would open a connection of its own.

    Code servers open an instance for every tick: this way it takes one connection, not four.
    """
    names = set(sqlalchemy.inspect(connection).get_table_names())
    return names >= {"runs", "instance_info", "event_logs"} and not names.isdisjoint({"schedules", "jobs"})


def table_names() -> list[str]:
    """Returns the names of all tables that Dagster's storages may have, with that of their revision."""
    known = (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata)
    return sorted({"alembic_version", *(name for one in known for name in one.tables)})


class _Pooled:
    """A storage on a given engine."""

    def __init__(self, engine: sqlalchemy.Engine, *, make_tables: bool) -> None:
        url = engine.url.render_as_string(hide_password=False)
        super().__init__(url, should_autocreate_tables=make_tables)  # type: ignore[call-arg]  # that of Dagster's class
        self._engine = engine

    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        """An engine of its own, as Dagster makes one: it does not wait for a server that is away.

        Unlike Dagster's, it notices connections that a restarted server has closed, and shows no values in errors.
        """
        options: dict[str, Any] = {"pool_recycle": pool_recycle, "max_overflow": max_overflow, "pool_size": 1}
        options |= {"isolation_level": "AUTOCOMMIT", "pool_pre_ping": True, "hide_parameters": True}
        self._engine = sqlalchemy.create_engine(self._engine.url, **options)

        @sqlalchemy.event.listens_for(self._engine, "connect")
        def limit(connection: Any, _record: Any) -> None:
            set_pg_statement_timeout(connection, statement_timeout)

    def dispose(self) -> None:
        """Closes the connections: code servers open and dispose of an instance for every tick."""
        super().dispose()  # type: ignore[misc]  # as above
        self._engine.dispose()


class _PooledRunStorage(_Pooled, PostgresRunStorage):
    """Dagster's run storage on a pooled engine; new runs and backfills are stamped in requests of the front."""

    def add_run(self, dagster_run: dg.DagsterRun) -> dg.DagsterRun:
        inherited: Mapping[str, str] = {}
        if STAMP.get() is not None and dagster_run.parent_run_id:
            parents = self.get_runs(dg.RunsFilter(run_ids=[dagster_run.parent_run_id]))
            inherited = parents[0].tags if parents else {}
        return super().add_run(dagster_run.with_tags(stamped(dagster_run.tags, inherited)))

    def get_run_storage_id(self) -> str:
        """Dagster's pages ask for it, and it is made when first asked for: on a standby it may be there later."""
        try:
            return super().get_run_storage_id()
        except (ReadOnlyError, InternalError) as error:
            if isinstance(error, ReadOnlyError) or isinstance(error.orig, ReadOnlySqlTransaction):
                return "standby"
            raise

    def handle_run_event(self, run_id: str, event: dg.DagsterEvent, *args: Any, **kwargs: Any) -> None:
        super().handle_run_event(run_id, event, *args, **kwargs)
        note_event(event)

    def add_backfill(self, partition_backfill: PartitionBackfill) -> None:
        super().add_backfill(partition_backfill._replace(tags=stamped(partition_backfill.tags, {})))


class _PooledScheduleStorage(_Pooled, PostgresScheduleStorage):
    """Dagster's schedule storage on a pooled engine.

    Migrations once seen are remembered. Dagster's own storages of runs and events do so, but that of schedules asks up
    to eight times a tick, which was a third of the daemon's CPU time.

    Times in the future, by a clock that was set back since, are hidden: until they are reached again, Dagster would
    begin no tick of that sensor or schedule.
    """

    def __init__(self, engine: sqlalchemy.Engine, *, make_tables: bool) -> None:
        self._migrated: set[str] = set()
        super().__init__(engine, make_tables=make_tables)

    def has_instigators_table(self) -> bool:
        return "instigators" in self._migrated or super().has_instigators_table()

    def _has_instigators_table(self, conn: sqlalchemy.Connection) -> bool:
        if "instigators" not in self._migrated and super()._has_instigators_table(conn):
            self._migrated.add("instigators")
        return "instigators" in self._migrated

    def has_built_index(self, migration_name: str) -> bool:
        if migration_name not in self._migrated and super().has_built_index(migration_name):
            self._migrated.add(migration_name)
        return migration_name in self._migrated

    def all_instigator_state(self, *args: Any, **kwargs: Any) -> Sequence[InstigatorState]:
        return [_without_future(state) for state in super().all_instigator_state(*args, **kwargs)]

    def get_instigator_state(self, origin_id: str, selector_id: str) -> InstigatorState | None:
        state = super().get_instigator_state(origin_id, selector_id)
        return _without_future(state) if state else None

    def update_tick(self, tick: InstigatorTick) -> InstigatorTick:
        updated = super().update_tick(tick)
        note_tick(tick)
        return updated

    def get_ticks(
        self, origin_id: str, selector_id: str, before: float | None = None, *args: Any, **kwargs: Any
    ) -> Sequence[InstigatorTick]:
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


class _PooledEventLogStorage(_Pooled, PostgresEventLogStorage):
    """Dagster's event log storage on a pooled engine, with the computed keys of some dynamic partitions.

    A runless evaluation of an asset check replaces the previous one of that partition: Dagster has a unique row for
    it, and refuses the next. The event log keeps all of them.

    A batch may be about several assets, and have materializations and observations in any order.
    """

    def __init__(self, engine: sqlalchemy.Engine, computed: ComputedKeys, *, make_tables: bool) -> None:
        super().__init__(engine, make_tables=make_tables)
        self._computed = computed

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """In one transaction: Dagster's own compiles a statement for that many events, and serializes each in full."""
        kinds = {one.dagster_event.event_type for one in events if one.dagster_event}
        if not events or not kinds <= {
            dg.DagsterEventType.ASSET_MATERIALIZATION,
            dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
            dg.DagsterEventType.ASSET_OBSERVATION,
        }:
            super().store_event_batch(events)
            return
        texts = EventTexts()
        columns = {name: list[Any]() for name in _EVENT_COLUMNS}
        newest: dict[tuple[str, str], int] = {}
        for at, event in enumerate(events):
            said, when = event.get_dagster_event(), datetime.fromtimestamp(event.timestamp, UTC).replace(tzinfo=None)
            asset = said.asset_key.to_string() if said.asset_key else ""
            newest[asset, said.event_type_value] = at
            row = (event.run_id, texts.of(event), said.event_type_value, when)
            for values, value in zip(columns.values(), (*row, said.step_key, asset, said.partition), strict=True):
                values.append(value)
        with self.index_transaction() as connection:
            ids = sorted(connection.execute(_INSERT_EVENTS, columns).scalars())
            self._store_asset_event_tags(connection, events, ids)
            for _, at in sorted(newest.items(), key=lambda one: (one[0][0], one[1])):  # in one order: no deadlocks
                self._store_asset_event(connection, events[at], ids[at])

    def _store_runless_asset_check_evaluation(self, event: Any, event_id: int | None) -> None:
        said, table = event.dagster_event.event_specific_data, AssetCheckExecutionsTable.c
        if said.partition is not None:
            own = (table.asset_key == said.asset_key.to_string(), table.check_name == said.check_name)
            with self.index_connection() as connection:
                before = AssetCheckExecutionsTable.delete().where(*own, table.partition == said.partition)
                connection.execute(before.where(table.run_id == event.run_id))
        super()._store_runless_asset_check_evaluation(event, event_id)

    def get_asset_check_partition_info(
        self,
        keys: Sequence[dg.AssetCheckKey],
        after_storage_id: int | None = None,
        partition_keys: Sequence[str] | None = None,
    ) -> Sequence[AssetCheckPartitionInfo]:
        """Adds the materialization where an evaluation names none: Dagster would show nothing of that partition.

        A runless evaluation is about the newest one; one made by a run, only if that existed by then.
        """
        found = super().get_asset_check_partition_info(keys, after_storage_id, partition_keys)
        return [replace(one, latest_target_materialization_storage_id=_target(one)) for one in found]

    def get_dynamic_partitions(self, partitions_def_name: str) -> Sequence[str]:
        keys = self._computed(partitions_def_name)
        return super().get_dynamic_partitions(partitions_def_name) if keys is None else list(keys)

    def get_paginated_dynamic_partitions(
        self, partitions_def_name: str, limit: int, ascending: bool, cursor: str | None = None
    ) -> PaginatedResults[str]:
        computed = self._computed(partitions_def_name)
        if computed is None:
            return super().get_paginated_dynamic_partitions(partitions_def_name, limit, ascending, cursor)
        keys = list(computed)
        if not ascending:
            keys.reverse()
        start = keys.index(cursor) + 1 if cursor in keys else 0
        page = keys[start : start + limit]
        return PaginatedResults(
            results=page, cursor=page[-1] if page else cursor or "", has_more=start + limit < len(keys)
        )

    def has_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> bool:
        keys = self._computed(partitions_def_name)
        if keys is None:
            return super().has_dynamic_partition(partitions_def_name, partition_key)
        return partition_key in keys

    def get_existing_dynamic_partitions(
        self, partitions_def_name: str, partition_keys: Sequence[str]
    ) -> AbstractSet[str]:
        keys = self._computed(partitions_def_name)
        if keys is None:
            return super().get_existing_dynamic_partitions(partitions_def_name, partition_keys)
        return {key for key in partition_keys if key in keys}


def _target(one: AssetCheckPartitionInfo) -> int | None:
    target, newest = one.latest_target_materialization_storage_id, one.latest_materialization_storage_id
    if target is not None or newest is None:
        return target
    is_of_no_run = one.latest_planned_run_id == RUNLESS_RUN_ID
    return newest if is_of_no_run or newest < one.latest_check_event_storage_id else None


class PooledStorage(DagsterStorage, ConfigurableClass):
    def __init__(
        self,
        engine: sqlalchemy.Engine,
        computed: ComputedKeys,
        inst_data: ConfigurableClassData | None,
        *,
        make_tables: bool,
    ) -> None:
        """Opens it on an engine whose connections commit each statement by itself.

        ``computed`` are keys of dynamic partitions that are not stored; ``make_tables``: the tables may be missing.
        """
        self._inst_data = inst_data
        self._runs = _PooledRunStorage(engine, make_tables=make_tables)
        self._events = _PooledEventLogStorage(engine, computed, make_tables=make_tables)
        self._schedules = _PooledScheduleStorage(engine, make_tables=make_tables)
        super().__init__()  # type: ignore[no-untyped-call]  # Dagster's class has no annotations here

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @property
    def run_storage(self) -> PostgresRunStorage:
        return self._runs

    @property
    def event_log_storage(self) -> PostgresEventLogStorage:
        return self._events

    @property
    def schedule_storage(self) -> PostgresScheduleStorage:
        return self._schedules

    def dispose(self) -> None:
        self._events.dispose()
        self._runs.dispose()
        self._schedules.dispose()
