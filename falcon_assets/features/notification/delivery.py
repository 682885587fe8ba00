"""Delivery of messages to receivers through apprise, without revealing their URLs."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from falcon_assets.catalog.references import value_of
from falcon_assets.errors import SecretError, count_of
from falcon_assets.features.notification import store as notifications
from falcon_assets.features.notification.rules import INTERVAL, Message, is_due, message_of
from falcon_assets.features.notification.store import NotificationState
from falcon_assets.history.database import try_lock, unlock
from falcon_assets.history.events.instance_event import Sent
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.platform.postgres import in_utc
from falcon_assets.hooks import EventReceiver
from falcon_assets.model.reference import EncryptedValue, EnvironmentValue, Reference

_CONNECT_SECONDS, _READ_SECONDS = 10.0, 20.0
_LOGGERS = ("apprise", "urllib3.connectionpool", "requests")
_CODE = re.compile(r"error=(\d{3})\b")
KEY_HEADER = "Idempotency-Key"


_CODES: ContextVar[list[str] | None] = ContextVar("codes", default=None)  # apprise passes it on to its threads


class _Quiet(logging.Filter):
    """Drops records logged while a message is sent, as URLs in them are secrets; keeps codes of answers."""

    def filter(self, record: logging.LogRecord) -> bool:
        codes = _CODES.get()
        if codes is None:
            return True
        codes.extend(_CODE.findall(record.getMessage()))
        return False


_QUIET = _Quiet()


def send(receiver: Reference, environ: Mapping[str, str], message: Message) -> str:
    """Sends a message; returns why it failed, "" where it did not. ``receiver`` refers to the URL."""
    try:
        url = (value_of(receiver, environ) or "").strip()
    except SecretError as error:
        return str(error)
    if not url:
        return f"{receiver} is not set"
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_QUIET)  # once, however often
    codes = list[str]()
    token = _CODES.set(codes)
    try:
        is_sent = _send(url, message)
    except Exception as error:  # services raise anything, and may quote the URL
        return f"it cannot be sent: {type(error).__name__}"
    finally:
        _CODES.reset(token)
    if is_sent is None:
        return f"{receiver.label} does not hold one URL of apprise, or a package for it is missing"
    if is_sent:
        return ""
    return f"the receiver answered {codes[-1]}" if codes else "the receiver does not answer, or refuses"


def has_service(url: str) -> bool:
    """Returns whether apprise can parse the URL for one of its services; sends nothing."""
    import apprise  # noqa: PLC0415 - takes a while, and is needed only for sending

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_QUIET)
    token = _CODES.set([])
    try:
        return apprise.Apprise.instantiate(url, suppress_exceptions=True) is not None
    finally:
        _CODES.reset(token)


def _send(url: str, message: Message) -> bool | None:
    import apprise  # noqa: PLC0415 - takes a while, and is needed only where something is sent

    # In this thread: those of apprise are few, and one that it waits for no longer may still send.
    asset = apprise.AppriseAsset(async_mode=False, service_timeout=0)
    plugin: Any = apprise.Apprise.instantiate(url, asset=asset)
    if plugin is None:
        return None
    plugin.socket_connect_timeout = _CONNECT_SECONDS
    plugin.socket_read_timeout = _READ_SECONDS
    plugin.overflow_mode = apprise.OverflowMode.TRUNCATE  # a part is better than nothing, and than many parts
    if isinstance(getattr(plugin, "headers", None), dict):
        plugin.headers[KEY_HEADER] = message.key
    sender = apprise.Apprise()
    sender.add(plugin)
    return bool(sender.notify(message.body, message.title, body_format=apprise.NotifyFormat.TEXT))


_AT_ONCE = 10_000
"""Events in one message; the next has the others."""
_THREADS = 4
_BUDGET_SECONDS = 35.0
"""Of the 60 seconds of a tick of Dagster."""


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
        self,
        clusters: Sequence[str],
        environ: Mapping[str, str],
        real_now: Callable[[], datetime],
        programs: Iterable[EventReceiver],
        encrypted: Mapping[str, EncryptedValue] | None = None,
    ) -> None:
        """Takes URLs from ``environ``, or from ``encrypted`` by label; ``programs`` have their own protocol."""
        self._clusters, self._environ, self._now = clusters, environ, real_now
        self._encrypted = encrypted or {}
        self._programs = {one.name: one for one in programs}

    def deliver(self, ledger: Ledger) -> list[Delivered]:
        """Sends one message to each receiver that is due; deliveries over the time limit continue in the background."""
        with ledger.engine.begin() as connection:
            lasting = [one.name for one in self._programs.values() if one.never_gives_up]
            notifications.clean_up(connection, self._clusters, lasting, self._now())
            waiting = notifications.waiting(connection, self._clusters)
            due = [one for one in waiting if is_due(one, self._now(), self._interval(one.receiver))]
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
                if receiver in self._programs and not found.problem:
                    queue.put(receiver)  # there may be more

    def _deliver(self, engine: sqlalchemy.Engine, receiver: str) -> Delivered | None:
        """Sends one message; None: another process is sending, or nothing waits. A kill before ``end`` repeats it."""
        lock = f"falcon notification to {receiver}"
        with engine.connect() as connection:
            is_alone = try_lock(connection, lock)
            connection.commit()
            if not is_alone:
                return None
            try:
                with connection.begin():
                    key, notices = notifications.begin(connection, receiver, self._clusters, self._at_once(receiver))
                if not notices:
                    return None
                if program := self._programs.get(receiver):
                    sent = program.send(connection, notices)
                else:
                    url = self._encrypted.get(receiver) or EnvironmentValue(env=receiver)
                    sent = Sent(send(url, self._environ, message_of(key, notices)))
                problem = sent.problem
                with connection.begin():
                    notifications.settle(connection, sent.taken, NotificationState.SENT, self._now())
                    notifications.settle(connection, sent.refused, NotificationState.GIVEN_UP, self._now())
                    retry_at = notifications.end(connection, receiver, key, problem, self._now())
            finally:
                unlock(connection, lock)
        return Delivered(receiver, len(notices), problem, retry_at, len(sent.refused))

    def _at_once(self, receiver: str) -> int:
        return self._programs[receiver].at_once if receiver in self._programs else _AT_ONCE

    def _interval(self, receiver: str) -> timedelta:
        """Returns the pause between messages: people want few of them, programs want them soon."""
        return timedelta() if receiver in self._programs else INTERVAL
