"""Messages to the receivers that entities declare, through apprise, without revealing their URLs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.references import value_of
from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import SecretError
from falcon_assets.features.notification.rules import Message, message_of, receivers
from falcon_assets.history.events.instance_event import EXECUTOR, InstanceEvent, Notice, Sent
from falcon_assets.history.folding.subscriptions import Subject
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.event_kind import OF_EXECUTORS, OF_FEEDS, EventKind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.model.reference import EnvironmentValue, Reference
from falcon_assets.settings import Settings

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


class NotificationSending:
    """Notifies the receivers that entities declare, as an :class:`.EventReceiver`."""

    name = ""
    at_once = 10_000
    pause = timedelta(minutes=5)
    never_gives_up = False

    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self.wanted = dict(self._wanted())
        entities: list[Feed | Process | Cluster] = [*store.feeds.values(), *store.processes.values()]
        entities += store.clusters.values()
        urls = [receiver.url for one in entities if one.notification for receiver in one.notification.to]
        self._declared = {url.label: url for url in urls if not isinstance(url, EnvironmentValue)}

    def _wanted(self) -> Iterator[tuple[Subject, set[EventKind]]]:
        for workload in self._store.active_workloads:
            if events := self._events(workload.entity):
                yield ("process", workload.name, workload.cluster), events
        for feed in self._store.feeds.values():
            for on, _ in self._store.feed_clusters(feed):
                if self._store.includes(on.name, feed.name) and (events := self._events(feed) & OF_FEEDS):
                    yield ("feed", feed.name, on.name), events
        for cluster in self._store.clusters.values():
            if cluster.executors and (events := self._events(cluster) & OF_EXECUTORS):
                yield (EXECUTOR, cluster.name, cluster.name), events

    def _events(self, entity: Feed | Process | Cluster) -> set[EventKind]:
        notification = entity.notification or self._settings.notification
        return set(notification.on) if notification else set()

    def names_for(self, event: InstanceEvent, entity: Feed | Process | Cluster, is_retried: bool) -> Sequence[str]:
        return () if is_retried else receivers(event.event, entity.notification, self._settings.notification)

    def send(self, _connection: Connection, key: str, notices: Sequence[Notice]) -> Sent:
        label = notices[0].receiver
        url = self._declared.get(label) or EnvironmentValue(env=label)
        return Sent(send(url, self._settings.environ, message_of(key, notices)))
