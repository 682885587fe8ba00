"""Loops of Dagster's daemon that go on at once when this process knows that they have something to do.

The queue of runs is looked at every second, and sensors every five. What makes a look worth it mostly happens in the
daemon's own process: a tick queues a run, a run's process ends and leaves its place, and a tick that waited ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster._core.events import DagsterEvent
    from dagster._core.scheduler.instigation import InstigatorTick

_QUEUE = "dagster._daemon.run_coordinator.queued_run_coordinator_daemon"
_SENSORS = "dagster._daemon.daemon"
_SLICE_SECONDS = 0.5
"""How long the end of the daemon, or its heartbeat, may wait."""
_LONG_SECONDS = 4.0
"""Of a tick that has waited for something: others end soon after the look that began them."""
_AFTER_TICK_SECONDS = 1.0
"""From the end of a tick to the next one: its thread ends, and the least time between two ticks passes."""
_queue_changed = threading.Event()
_tick_ended = threading.Event()


def look_at_queue() -> None:
    _queue_changed.set()


def note_event(event: DagsterEvent) -> None:
    if event.event_type_value == "PIPELINE_ENQUEUED":
        look_at_queue()


def note_tick(tick: InstigatorTick) -> None:
    if tick.status.value != "STARTED" and (tick.run_ids or time.time() - tick.timestamp > _LONG_SECONDS):
        _tick_ended.set()


def act_at_once() -> None:
    """Has an effect in the daemon's process only; idempotent."""
    queue = (_QUEUE, "QueuedRunCoordinatorDaemon", _prompt_queue)
    for module, name, prompt in (queue, (_SENSORS, "SensorDaemon", _prompt_sensors)):
        daemon = getattr(sys.modules.get(module), name, None)
        if daemon is not None and not hasattr(daemon.core_loop, "__wrapped__"):
            daemon.core_loop = prompt(daemon.core_loop)


def _prompt_queue(core_loop: Any) -> Any:
    @wraps(core_loop)
    def loop(self: Any, context: Any, shutdown_event: threading.Event) -> Iterator[Any]:
        seconds = self.__dict__.setdefault("_falcon_seconds", self.interval_seconds)
        self.interval_seconds = 0  # it does not pause itself
        _queue_changed.clear()
        for said in core_loop(self, context, shutdown_event):
            yield said
            if getattr(said, "name", None) != "END_SPAN":
                continue
            give_up = time.monotonic() + seconds
            while not shutdown_event.is_set() and (left := give_up - time.monotonic()) > 0:
                if _queue_changed.wait(min(_SLICE_SECONDS, left)):
                    break
                yield None
            _queue_changed.clear()

    return loop


def _prompt_sensors(core_loop: Any) -> Any:
    @wraps(core_loop)
    def loop(self: Any, context: Any, shutdown_event: threading.Event) -> Iterator[Any]:
        yield from core_loop(self, context, _UntilTickEnds(shutdown_event))

    return loop


class _UntilTickEnds(threading.Event):
    """The event of the daemon's end, for which the loop waits between two looks; here that is shorter at times."""

    def __init__(self, shutdown: threading.Event) -> None:
        super().__init__()
        self._shutdown = shutdown

    def is_set(self) -> bool:
        return self._shutdown.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """As that of the event, but returns a second after the end of a tick as well."""
        give_up = time.monotonic() + (timeout or 0.0)
        while not self.is_set() and (left := give_up - time.monotonic()) > 0:
            if _tick_ended.wait(min(_SLICE_SECONDS, left)):
                _tick_ended.clear()
                self._shutdown.wait(min(_AFTER_TICK_SECONDS, max(0.0, give_up - time.monotonic())))
                break
        return self.is_set()
