"""Sends what waits for receivers; one of them that does not answer delays no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from falcon_assets.errors import count_of
from falcon_assets.ledger.database.locks import try_lock, unlock
from falcon_assets.ledger.notification import notifications
from falcon_assets.ledger.notification.notifications import NotificationState
from falcon_assets.orchestration.notification.channel import send
from falcon_assets.orchestration.notification.lineage import LINEAGE_RECEIVER, LineageSending, SentLineage
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.orchestration.platform.postgres import in_utc
from falcon_assets.planning.notification.delivery import INTERVAL, is_due
from falcon_assets.planning.notification.words import message_of

_AT_ONCE = 10_000
"""So many events are told in one message; the next tells the others."""
_RUNS_AT_ONCE = 50
"""Who collects lineage takes one event after the other: so many runs are sent again where one is not taken."""
_THREADS = 4
_BUDGET_SECONDS = 35.0
"""Of the 60 that Dagster gives a tick."""


@dataclass(frozen=True)
class Delivered:
    """What became of a message.

    Attributes:
        receiver: Name of the variable with its URL.
        events: How many events it tells.
        problem: Why it did not come through; empty: it did.
        retry_at: When the next is tried.
        refused: How many of the events the receiver will never take: they are given up.
    """

    receiver: str
    events: int
    problem: str
    retry_at: datetime | None
    refused: int = 0

    def __str__(self) -> str:
        if not self.problem:
            refused = f", and refused {self.refused} of them" if self.refused else ""
            return f"{self.receiver} was told {count_of(self.events, 'event')}{refused}"
        again = f"at {self.retry_at.isoformat(timespec='seconds')}" if self.retry_at else "in the next tick"
        return f"{self.receiver}: {self.problem}; {count_of(self.events, 'event')} to tell, next try {again}"


class Delivery:
    """Sends messages to the receivers of entities on some clusters."""

    def __init__(
        self,
        clusters: Sequence[str],
        environ: Mapping[str, str],
        real_now: Callable[[], datetime],
        lineage: LineageSending,
    ) -> None:
        """``environ`` has the URLs; ``real_now`` says the real time; ``lineage`` sends to who collects that."""
        self._clusters, self._environ, self._now, self._lineage = clusters, environ, real_now, lineage

    def deliver(self, ledger: Ledger) -> list[Delivered]:
        """Sends each receiver that is due one message; what takes too long goes on, and is not waited for.

        Returns what was sent, by receiver.
        """
        with ledger.engine.begin() as connection:
            notifications.clean_up(connection, self._clusters, self._now())
            waiting = notifications.waiting(connection, self._clusters)
            due = [one for one in waiting if is_due(one, self._now(), _interval(one.receiver))]
        queue, done = SimpleQueue[str](), SimpleQueue[Delivered]()
        for one in due:
            queue.put(one.receiver)
        until = time.monotonic() + _BUDGET_SECONDS
        # Daemons: a receiver that never answers must not keep a process from its end.
        threads = [
            threading.Thread(target=self._work, args=(ledger.url, queue, done, until), daemon=True)
            for _ in range(min(_THREADS, len(due)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return sorted((done.get() for _ in range(done.qsize())), key=lambda one: one.receiver)

    def _work(self, url: str, queue: SimpleQueue[str], done: SimpleQueue[Delivered], until: float) -> None:
        # One of its own: the connections of others are not held while a receiver thinks.
        engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=in_utc(url))
        while time.monotonic() < until:
            try:
                receiver = queue.get_nowait()
            except Empty:
                return
            try:
                found = self._deliver(engine, receiver)
            except SQLAlchemyError as error:
                found = Delivered(receiver, 0, f"the ledger does not answer: {type(error).__name__}", None)
            if found is not None:
                done.put(found)
                if found.events == _RUNS_AT_ONCE and receiver == LINEAGE_RECEIVER and not found.problem:
                    queue.put(receiver)  # there may be more

    def _deliver(self, engine: sqlalchemy.Engine, receiver: str) -> Delivered | None:
        """Sends one message; None: somebody else is sending, or nothing waits any more.

        Between ``send`` and ``end`` nobody knows that it was sent: whoever is killed there sends it again.
        """
        lock = f"falcon notification to {receiver}"
        with engine.connect() as connection:
            is_alone = try_lock(connection, lock)
            connection.commit()
            if not is_alone:
                return None
            try:
                with connection.begin():
                    at_once = _RUNS_AT_ONCE if receiver == LINEAGE_RECEIVER else _AT_ONCE
                    key, notices = notifications.begin(connection, receiver, self._clusters, at_once)
                if not notices:
                    return None
                if receiver == LINEAGE_RECEIVER:
                    sent = self._lineage.send(connection, notices)
                else:
                    sent = SentLineage(send(receiver, self._environ, message_of(key, notices)))
                problem = sent.problem
                with connection.begin():
                    notifications.settle(connection, sent.taken, NotificationState.SENT, self._now())
                    notifications.settle(connection, sent.refused, NotificationState.GIVEN_UP, self._now())
                    retry_at = notifications.end(connection, receiver, key, problem, self._now())
            finally:
                unlock(connection, lock)
        return Delivered(receiver, len(notices), problem, retry_at, len(sent.refused))


def _interval(receiver: str) -> timedelta:
    """From one message to the next: people want few, programs want them soon."""
    return timedelta() if receiver == LINEAGE_RECEIVER else INTERVAL
