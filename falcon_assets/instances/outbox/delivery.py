"""Delivery of recorded events to their receivers: in order, at least once, side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import TypeAlias

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from falcon_assets.errors import count_of
from falcon_assets.history.database import try_lock, unlock
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.platform.postgres import in_utc
from falcon_assets.hooks import EventReceiver
from falcon_assets.instances.outbox import store as outbox
from falcon_assets.instances.outbox.rules import is_due
from falcon_assets.instances.outbox.store import NotificationState

_THREADS = 4
_BUDGET_SECONDS = 35.0
"""Of the 60 seconds of a tick of Dagster."""


_Queue: TypeAlias = SimpleQueue[tuple[str, EventReceiver]]


@dataclass(frozen=True)
class Delivered:
    """The outcome of a message; ``problem`` is empty where it was sent, ``retry_at`` None: in the next tick."""

    receiver: str
    events: int
    problem: str
    retry_at: datetime | None
    refused: int = 0

    def __str__(self) -> str:
        if not self.problem:
            refused = f", and refused {self.refused} of them" if self.refused else ""
            return f"{self.receiver} was sent {count_of(self.events, 'event')}{refused}"
        again = f"at {self.retry_at.isoformat(timespec='seconds')}" if self.retry_at else "in the next tick"
        return f"{self.receiver}: {self.problem}; {count_of(self.events, 'event')} to send, next try {again}"


class Delivery:
    def __init__(
        self, clusters: Sequence[str], real_now: Callable[[], datetime], receivers: Iterable[EventReceiver]
    ) -> None:
        self._clusters, self._now = clusters, real_now
        self._receivers = {one.name: one for one in receivers}

    def deliver(self, ledger: Ledger) -> list[Delivered]:
        """Sends one message to each receiver that is due; deliveries over the time limit continue in the background."""
        with ledger.engine.begin() as connection:
            lasting = [one.name for one in self._receivers.values() if one.never_gives_up]
            outbox.clean_up(connection, self._clusters, lasting, self._now())
            waiting = outbox.waiting(connection, self._clusters)
        queue, done = _Queue(), SimpleQueue[Delivered]()
        due = 0
        for one in waiting:
            receiver = self._receivers.get(one.receiver) or self._receivers.get("")
            if receiver and is_due(one, self._now(), receiver.pause):
                queue.put((one.receiver, receiver))
                due += 1
        until = time.monotonic() + _BUDGET_SECONDS
        # Daemons: a receiver that never answers must not keep a process from its end.
        threads = [
            threading.Thread(target=self._work, args=(ledger.url, queue, done, until), daemon=True)
            for _ in range(min(_THREADS, due))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return sorted((done.get() for _ in range(done.qsize())), key=lambda one: one.receiver)

    def _work(self, url: str, queue: _Queue, done: SimpleQueue[Delivered], until: float) -> None:
        # One of its own: the connections of others are not held while a receiver thinks.
        engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=in_utc(url))
        while time.monotonic() < until:
            try:
                name, receiver = queue.get_nowait()
            except Empty:
                return
            try:
                found = self._deliver(engine, name, receiver)
            except SQLAlchemyError as error:
                found = Delivered(name, 0, f"the ledger does not answer: {type(error).__name__}", None)
            if found is not None:
                done.put(found)
                if not (receiver.pause or found.problem):
                    queue.put((name, receiver))  # there may be more

    def _deliver(self, engine: sqlalchemy.Engine, name: str, receiver: EventReceiver) -> Delivered | None:
        """Sends one message; None: another process is sending, or nothing waits. A kill before ``end`` repeats it."""
        lock = f"falcon notification to {name}"
        with engine.connect() as connection:
            is_alone = try_lock(connection, lock)
            connection.commit()
            if not is_alone:
                return None
            try:
                with connection.begin():
                    key, notices = outbox.begin(connection, name, self._clusters, receiver.at_once)
                if not notices:
                    return None
                sent = receiver.send(connection, key, notices)
                with connection.begin():
                    outbox.settle(connection, sent.taken, NotificationState.SENT, self._now())
                    outbox.settle(connection, sent.refused, NotificationState.GIVEN_UP, self._now())
                    retry_at = outbox.end(connection, name, key, sent.problem, self._now())
            finally:
                unlock(connection, lock)
        return Delivered(name, len(notices), sent.problem, retry_at, len(sent.refused))
