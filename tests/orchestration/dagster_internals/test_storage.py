"""Dagster's storages as we put them on another engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import dagster as dg
import pytest
import sqlalchemy
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)

from falcon_assets.history.dagster_internals.storage import PooledStorage, has_tables
from tests.orchestration.dagster_internals.stored import stored

COMPUTED = ["2013-01-01", "2013-01-02", "2013-01-03"]


@pytest.fixture(scope="module")
def engine(database: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(database, isolation_level="AUTOCOMMIT", pool_size=2)


@pytest.fixture(scope="module")
def storage(engine: sqlalchemy.Engine) -> Iterator[PooledStorage]:
    opened = stored(engine, ours=COMPUTED)
    yield opened
    opened.dispose()


def test_dagsters_storages_find_their_tables(engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        assert has_tables(connection), "Dagster makes no tables any more of the names that has_tables looks for"
        nothing = connection.execution_options(schema_translate_map={None: "information_schema"})
        assert not sqlalchemy.inspect(nothing).has_table("runs", "information_schema")


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda one: one.run_storage.get_runs_count(), id="runs"),
        pytest.param(lambda one: one.event_log_storage.get_maximum_record_id(), id="events"),
        pytest.param(lambda one: one.schedule_storage.all_instigator_state(), id="schedules"),
    ],
)
def test_storages_ask_through_our_engine(
    storage: PooledStorage, engine: sqlalchemy.Engine, ask: Callable[[PooledStorage], object]
) -> None:
    asked: list[object] = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    ask(storage)
    assert asked, "Dagster's storage does not ask through its attribute _engine any more: each question would connect"


def test_a_webserver_notices_a_restarted_server(database: str) -> None:
    """Its first requests after a restart would fail otherwise, with the values of statements in what they say."""
    opened = stored(sqlalchemy.create_engine(database, isolation_level="AUTOCOMMIT"))
    opened.run_storage.optimize_for_webserver(15_000, 3_600, 20)
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid"
    before = opened.run_storage.get_runs_count()
    with opened.run_storage.connect() as connection:
        assert connection.execute(sqlalchemy.text("SHOW statement_timeout")).scalar_one() == "15s"
        mine = connection.execute(sqlalchemy.text("SELECT pg_backend_pid()")).scalar_one()
    with sqlalchemy.create_engine(database).connect() as connection:
        assert connection.execute(sqlalchemy.text(others), {"pid": mine}).scalar_one()
    assert opened.run_storage.get_runs_count() == before
    with pytest.raises(sqlalchemy.exc.ProgrammingError) as refused, opened.run_storage.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT :what FROM nowhere"), {"what": "a value"})
    assert "SQL parameters hidden" in str(refused.value)
    opened.dispose()


def test_what_migrations_brought_is_asked_once(engine: sqlalchemy.Engine) -> None:
    """And not for every tick: a daemon would do little else."""
    storage = stored(engine)
    asked: list[str] = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    for _ in range(2):
        assert storage.schedule_storage.all_instigator_state() == []
    tables = [statement for statement in asked if "pg_class" in statement]
    assert len(tables) == 2, (
        "Dagster looks for its tables otherwise: _has_instigators_table is not all that asks"
    )  # two
    migrations = [statement for statement in asked if "FROM secondary_indexes" in statement]
    assert len(migrations) == 1, "Dagster looks for its migrations otherwise: has_built_index is not all that asks"


def test_closing_it_ends_what_watches_runs(engine: sqlalchemy.Engine) -> None:
    """Such as the thread of the webserver that shows the log of a run."""
    before, storage = {*threading.enumerate()}, stored(engine)
    storage.event_log_storage.watch("0", None, lambda *_: None)
    assert {*threading.enumerate()} - before
    storage.dispose()
    assert not {*threading.enumerate()} - before


def test_computed_keys_of_dynamic_partitions_are_what_dagster_finds(storage: PooledStorage) -> None:
    events = storage.event_log_storage
    assert events.get_dynamic_partitions("ours") == COMPUTED
    assert events.has_dynamic_partition("ours", COMPUTED[0])
    assert not events.has_dynamic_partition("ours", "2013")
    assert events.get_existing_dynamic_partitions("ours", ["2013", COMPUTED[1]]) == {COMPUTED[1]}
    events.add_dynamic_partitions("others", ["a"])
    assert events.get_dynamic_partitions("others") == ["a"]
    asking = {name for name in dir(dg.DagsterInstance) if "dynamic_partition" in name}
    known = {
        *("add_dynamic_partitions", "delete_dynamic_partition", "get_dynamic_partitions", "has_dynamic_partition"),
        *("get_dynamic_partitions_definition_id", "get_paginated_dynamic_partitions"),
        "get_existing_dynamic_partitions",
    }
    assert asking <= known, (
        f"Dagster asks for dynamic partitions in new ways, that ours do not answer: {asking - known}"
    )


@pytest.mark.parametrize("ascending", [True, False], ids=["oldest first", "newest first"])
def test_pages_of_computed_keys_are_like_dagsters_own(storage: PooledStorage, ascending: bool) -> None:
    events = storage.event_log_storage
    events.add_dynamic_partitions("stored", COMPUTED)
    pages: dict[str, list[object]] = {"ours": [], "stored": []}
    for name, found in pages.items():
        cursor = None
        while True:
            page = events.get_paginated_dynamic_partitions(name, limit=2, ascending=ascending, cursor=cursor)
            found.append((list(page.results), page.has_more))
            cursor = page.cursor
            if not page.has_more:
                break
    assert pages["ours"] == pages["stored"], "Dagster pages through dynamic partitions otherwise than ours"


def test_another_process_opens_the_storage_from_dagster_yaml(instance: dg.DagsterInstance) -> None:
    with dg.DagsterInstance.from_ref(instance.get_ref()) as opened:
        assert isinstance(opened.event_log_storage, type(instance.event_log_storage)), (
            "Dagster builds the parts of a storage one by one in other processes, and not PooledStorage as a whole"
        )


@pytest.mark.parametrize("kind", [SensorInstigatorData, ScheduleInstigatorData])
def test_times_of_ticks_are_named_alike(kind: type) -> None:
    fields = set(getattr(kind, "_fields", ()))
    assert fields, f"Dagster's {kind.__name__} is no NamedTuple any more: times to come are taken out of it"
    known = {
        *("last_tick_timestamp", "last_tick_start_timestamp", "last_sensor_start_timestamp"),
        *("last_tick_success_timestamp", "start_timestamp", "last_iteration_timestamp"),
        *("last_run_key", "min_interval", "cursor", "sensor_type", "cron_schedule"),
    }
    assert fields <= known, f"Dagster's {kind.__name__} has something new, which may be a time: {fields - known}"


@pytest.mark.parametrize("kind", [InstigatorType.SENSOR, InstigatorType.SCHEDULE], ids=lambda one: one.name)
def test_times_to_come_are_not_there(storage: PooledStorage, kind: InstigatorType) -> None:
    """Dagster's daemon begins no tick before the time of the last one has passed."""
    schedules, hour, now = storage.schedule_storage, 3600.0, time.time()
    repository = RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__")
    data, expected = (
        (ScheduleInstigatorData("* * * * *", now - hour, now + hour), ScheduleInstigatorData("* * * * *", now - hour))
        if kind is InstigatorType.SCHEDULE
        else (
            SensorInstigatorData(now + hour, "key", 4, "cursor", now + hour, now - hour),
            SensorInstigatorData(None, "key", 4, "cursor", None, now - hour),
        )
    )
    origin = RemoteInstigatorOrigin(repository, kind.name)
    schedules.add_instigator_state(InstigatorState(origin, kind, InstigatorStatus.RUNNING, data))
    for ahead in (-hour, hour):
        given = (origin.get_id(), kind.name, kind, TickStatus.SUCCESS, now + ahead, [])
        schedules.create_tick(TickData(*given, selector_id=origin.get_selector().get_id()))
    found = schedules.get_ticks(origin.get_id(), origin.get_selector().get_id(), limit=1)
    assert [tick.timestamp for tick in found] == [now - hour], "Dagster's get_ticks gives ticks that are yet to come"
    one = schedules.get_instigator_state(origin.get_id(), origin.get_selector().get_id())
    assert one is not None
    assert one.instigator_data == expected, "Dagster keeps the times of ticks otherwise: those to come are still there"
    assert one in schedules.all_instigator_state()
    schedules.delete_instigator_state(origin.get_id(), origin.get_selector().get_id())


def test_what_is_known_of_a_partition_may_be_said_again_without_a_run(instance: dg.DagsterInstance) -> None:
    """Dagster itself refuses the second evaluation of a check: once it does not, our override is not needed."""
    key = dg.AssetCheckKey(dg.AssetKey(["primary", "raw"]), "sla")
    for partition, passed in (("1", False), ("2", False), ("1", True), (None, False), (None, True)):
        said = dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=key.name, passed=passed, partition=partition)
        instance.report_runless_asset_event(said)
    found = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
    told = [(one.partition, one.status.value) for one in found]
    assert told == [(None, "SUCCEEDED"), (None, "FAILED"), ("1", "SUCCEEDED"), ("2", "FAILED")]
