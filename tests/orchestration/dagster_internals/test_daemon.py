"""Dagster's heartbeats say when its daemons were seen last, and its ticks what went wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest
import sqlalchemy
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import SerializableErrorInfo

from falcon_assets.history.dagster_internals.daemon import (
    DaemonHealth,
    LastTick,
    SensorState,
    daemon_parts,
    last_tick,
    sensor_states,
)
from falcon_assets.history.dagster_internals.tables import known_runs


@pytest.fixture
def engine(instance: dg.DagsterInstance, database: str) -> sqlalchemy.Engine:
    """Of the database in which the instance has its tables."""
    return sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool)


@dg.job
def a_job() -> None: ...


def test_signs_of_life_of_the_latest_daemon(instance: dg.DagsterInstance, engine: sqlalchemy.Engine) -> None:
    instance.wipe_daemon_heartbeats()
    with engine.connect() as connection:
        assert daemon_parts(connection) == []
    seen = 1_000_000.0
    error = SerializableErrorInfo("it broke", [], None)
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen - 9, "MONITORING", "gone", []))
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen, "SENSOR", "a", []))
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen - 5, "SCHEDULER", "a", [error]))
    then = datetime.fromtimestamp(seen - 5, UTC), datetime.fromtimestamp(seen, UTC)
    with engine.connect() as connection:
        found = daemon_parts(connection)
    assert found == [DaemonHealth("SCHEDULER", then[0], "it broke"), DaemonHealth("SENSOR", then[1])]
    instance.wipe_daemon_heartbeats()


def test_what_dagster_writes_of_sensors_has_these_names(
    instance: dg.DagsterInstance, engine: sqlalchemy.Engine
) -> None:
    repository = RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__")
    origin = RemoteInstigatorOrigin(repository, "a_sensor")
    selector = origin.get_selector().get_id()
    instance.add_instigator_state(
        InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.STOPPED, SensorInstigatorData())
    )
    cause = SerializableErrorInfo("the cause", [], None)
    error = SerializableErrorInfo("the tick", [], None, cause)
    for at, failed in ((5.0, error), (9.0, error), (7.0, None)):
        status = TickStatus.FAILURE if failed else TickStatus.SKIPPED
        ids = origin.get_id(), "a_sensor", InstigatorType.SENSOR
        instance.create_tick(TickData(*ids, status, at, [], error=failed, selector_id=selector))
    with engine.connect() as connection:
        ours = [one for one in sensor_states(connection) if one.name == "a_sensor"]
        assert ours == [SensorState("a_sensor", True, selector)]
        assert last_tick(connection, ours[0]) == LastTick(datetime.fromtimestamp(9, UTC), "the cause")


def test_runs_are_known_with_their_tags(instance: dg.DagsterInstance, engine: sqlalchemy.Engine) -> None:
    run = instance.create_run_for_job(a_job, tags={"falcon/process": "a", ".dagster/falcon_slots": "2"})
    with engine.connect() as connection:
        found = known_runs(connection, [run.run_id, "gone"])
    assert list(found) == [run.run_id]
    kept = instance.get_run_by_id(run.run_id)
    assert kept is not None
    assert (found[run.run_id].status, found[run.run_id].tags) == (run.status.value, dict(kept.tags))
