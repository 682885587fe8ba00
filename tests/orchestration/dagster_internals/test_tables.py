"""Dagster's tables, as the ledger reads them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
import sqlalchemy
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._utils.error import SerializableErrorInfo
from sqlalchemy import Connection, inspect, select, text

from falcon_assets.history.dagster_internals import tables

DATA = {
    InstigatorType.SENSOR: SensorInstigatorData(),
    InstigatorType.SCHEDULE: ScheduleInstigatorData("* * * * *"),
}
MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION.value


@pytest.fixture
def connection(instance: dg.DagsterInstance, database: str) -> Iterator[Connection]:
    with sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool).connect() as opened:
        yield opened


@dg.op
def nothing() -> None:
    """Makes a run of a job."""


@dg.job
def does_nothing() -> None:
    nothing()


@pytest.mark.parametrize(
    "column", [*tables.EVENT_LOG.c, *tables.RUNS.c, *tables.INSTIGATORS.c, *tables.TICKS.c], ids=str
)
def test_columns_are_there(connection: Connection, column: sqlalchemy.Column[object]) -> None:
    table = column.table.name
    assert inspect(connection).has_table(table), f"Dagster has no table {table} any more: the ledger reads it"
    found = {one["name"]: one["type"] for one in inspect(connection).get_columns(table)}
    assert column.name in found, f"Dagster's table {table} has no column {column.name} any more: the ledger reads it"
    assert found[column.name].python_type is column.type.python_type, (
        f"Dagster's column {table}.{column.name} is a {found[column.name]} now: the ledger reads another type"
    )


def test_events_are_numbered_in_their_order_and_read_back(instance: dg.DagsterInstance, connection: Connection) -> None:
    before = tables.newest_event(connection)
    for partition in ("a", "b"):
        instance.report_runless_asset_event(dg.AssetMaterialization(["east", "said"], partition=partition))
    newest = tables.newest_event(connection)
    assert newest >= before + 2, "Dagster's ids of events do not rise any more: the ledger folds events by them"
    assert tables.count_events(connection, before, [MATERIALIZED]) == 2, (
        f"Dagster's event_logs.dagster_event_type says {MATERIALIZED} in another way: the ledger looks for it"
    )
    read = tables.events_between(connection, before, newest, [MATERIALIZED], 10)
    said = [(one.asset_materialization.partition, one.run_id) for _, one in read if one.asset_materialization]
    assert said == [("a", ""), ("b", "")], "Dagster keeps events in event_logs.event in another form: see EventLogEntry"
    assert tables.events_between(connection, before, newest, [MATERIALIZED], 1) == read[:1]
    assert tables.events_between(connection, read[0][0], newest, [MATERIALIZED], 10) == read[1:]


def test_times_of_events_are_in_utc(instance: dg.DagsterInstance, connection: Connection) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization("timed"))
    log = tables.EVENT_LOG.c
    written = connection.execute(select(log.timestamp).order_by(log.id.desc()).limit(1)).scalar_one()
    assert written.tzinfo is None, "Dagster's event_logs.timestamp has a zone now: the ledger takes it for UTC"
    apart = abs(datetime.now(UTC) - written.replace(tzinfo=UTC))
    assert apart < timedelta(minutes=20), (
        "Dagster's event_logs.timestamp is not in UTC any more: the ledger compares it"
    )


def test_who_inserts_events_is_seen_until_it_commits(connection: Connection, database: str) -> None:
    assert tables.event_writers(connection) == set()
    connection.rollback()
    columns = "run_id, event, timestamp"
    with sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool).connect() as other:
        other.execute(text(f"INSERT INTO event_logs ({columns}) VALUES ('', '', now())"))
        assert len(tables.event_writers(connection)) == 1, (
            "whoever inserts into Dagster's event_logs does not lock it any more: events would be passed over"
        )
        other.rollback()
    connection.rollback()
    assert tables.event_writers(connection) == set()


@pytest.mark.parametrize("kind", [InstigatorType.SENSOR, InstigatorType.SCHEDULE], ids=lambda one: one.name)
def test_the_last_tick_that_is_over(instance: dg.DagsterInstance, connection: Connection, kind: InstigatorType) -> None:
    place, name = GrpcServerCodeLocationOrigin("localhost", 4000, location_name="falcon"), f"one_{kind.name}"
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(place, "__repository__"), name)
    selector = origin.get_selector().get_id()
    instance.add_instigator_state(InstigatorState(origin, kind, InstigatorStatus.RUNNING, DATA[kind]))

    def tick(status: TickStatus, began: float, ended: float | None) -> None:
        given = (origin.get_id(), name, kind, status, began, [])
        error = SerializableErrorInfo("no", [], None) if status is TickStatus.FAILURE else None
        instance.create_tick(TickData(*given, error=error, selector_id=selector, end_timestamp=ended))

    tick(TickStatus.FAILURE, 1000.0, 1001.0)
    tick(TickStatus.SKIPPED, 2000.5, 2002.0)
    tick(TickStatus.STARTED, 3000.0, None)
    found = [one for one in tables.last_ticks(connection) if one.name == name]
    assert found == [tables.Tick("falcon", kind.name.lower(), name, 2000.5, 2002.0, True)], (
        "Dagster keeps sensors and ticks in another form: metrics read job_ticks.tick_body and instigators"
    )
    connection.rollback()
    tick(TickStatus.FAILURE, 4000.0, None)
    (failed,) = [one for one in tables.last_ticks(connection) if one.name == name]
    assert (failed.began, failed.ended, failed.succeeded) == (4000.0, None, False)


def test_a_deleted_run_is_gone_with_its_events(instance: dg.DagsterInstance, connection: Connection) -> None:
    run_id = does_nothing.execute_in_process(instance=instance).run_id
    ids = select(tables.RUNS.c.run_id)
    assert run_id in connection.execute(ids).scalars().all(), "Dagster's table runs names runs otherwise"
    instance.delete_run(run_id)
    assert run_id not in connection.execute(ids).scalars().all(), (
        "Dagster keeps deleted runs in its table: instances in flight in them would wait for ever"
    )


def test_where_events_are_kept_is_seen(instance: dg.DagsterInstance) -> None:
    assert tables.is_there(instance), "Dagster's storages on PostgreSQL have no postgres_url any more"
    with dg.DagsterInstance.ephemeral() as other:
        assert not tables.is_there(other)
