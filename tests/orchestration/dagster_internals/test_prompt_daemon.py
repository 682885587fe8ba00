"""The daemon looks at its queue and its sensors at once when this process knows that there is something to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorTick, TickData, TickStatus
from dagster._daemon import daemon as dagster_daemon
from dagster._daemon import sensor as dagster_sensor
from dagster._daemon.daemon import SensorDaemon
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from falcon_assets.history.dagster_internals.prompt_daemon import act_at_once, look_at_queue, note_tick
from tests.waiting import wait_until

NEVER = 3600
TICK = TickData("o", "s", InstigatorType.SENSOR, TickStatus.SKIPPED, 0.0, run_ids=[], selector_id="x")


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    for daemon in (QueuedRunCoordinatorDaemon, SensorDaemon):
        original = getattr(daemon.core_loop, "__wrapped__", daemon.core_loop)
        monkeypatch.setattr(daemon, "core_loop", original)
    act_at_once()
    act_at_once()


class Looping:
    """A loop of the daemon in a thread of its own; ``looks`` counts what it did."""

    def __init__(self, daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks, self._daemon, self.end = 0, daemon, threading.Event()

        def look(*args: Any, **kwargs: Any) -> Iterator[None]:
            self.looks += 1
            yield None

        monkeypatch.setattr(QueuedRunCoordinatorDaemon, "run_iteration", look)
        monkeypatch.setattr(dagster_sensor, "execute_sensor_iteration", look)
        monkeypatch.setattr(dagster_sensor, "MIN_INTERVAL_LOOP_TIME", NEVER)

    def __enter__(self) -> Looping:
        self._pool = ThreadPoolExecutor(1)
        self._ended = self._pool.submit(self._loop)
        wait_until(lambda: self.looks == 1, 60)
        return self

    def __exit__(self, *args: object) -> None:
        self.end.set()
        self._ended.result(60)
        self._pool.shutdown()

    def _loop(self) -> None:
        for _ in self._daemon.core_loop(SimpleNamespace(), self.end):
            if self.end.is_set():
                return


def test_a_queued_run_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> None:
    repository = RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__")
    run = dg.DagsterRun(job_name="a", remote_job_origin=RemoteJobOrigin(repository, "a"))
    instance.run_storage.add_run(run)
    queued = dg.DagsterEvent("PIPELINE_ENQUEUED", "a")
    with Looping(QueuedRunCoordinatorDaemon(NEVER), monkeypatch) as loop:
        instance.report_dagster_event(queued, run.run_id)
        wait_until(lambda: loop.looks == 2, 60)
        look_at_queue()  # as a run's process does when it ends
        wait_until(lambda: loop.looks == 3, 60)


def test_a_queue_is_looked_at_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Looping(QueuedRunCoordinatorDaemon(0.01), monkeypatch) as loop:
        wait_until(lambda: loop.looks > 3, 60)


def test_sensors_are_looked_at_when_one_that_waited_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with Looping(SensorDaemon({}), monkeypatch) as loop:
        note_tick(InstigatorTick(1, TICK.with_status(TickStatus.STARTED)))
        note_tick(InstigatorTick(1, TICK.with_status(TickStatus.SKIPPED, timestamp=4e12)))  # ended in no time
        note_tick(InstigatorTick(1, TICK))
        wait_until(lambda: loop.looks == 2, 60)


def test_the_daemon_is_what_it_is_thought_to_be() -> None:
    for daemon in (QueuedRunCoordinatorDaemon, SensorDaemon):
        assert getattr(daemon.core_loop, "__wrapped__").__name__ == "core_loop"  # noqa: B009 - mypy knows no such one
    assert [one.name for one in dagster_daemon.SpanMarker] == ["START_SPAN", "END_SPAN"]
