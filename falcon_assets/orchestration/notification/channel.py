"""Sends one message to one receiver through apprise, and tells nobody where that is."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from falcon_assets.planning.notification.words import Message

_CONNECT_SECONDS, _READ_SECONDS = 10.0, 20.0
_LOGGERS = ("apprise", "urllib3.connectionpool", "requests")
_CODE = re.compile(r"error=(\d{3})\b")
KEY_HEADER = "Idempotency-Key"
"""The header with the key of the message, of mails and webhooks."""


_CODES: ContextVar[list[str] | None] = ContextVar("codes", default=None)  # apprise passes it on to its threads


class _Quiet(logging.Filter):
    """Lets nothing through that is logged while a message is sent: URLs are secrets. Keeps what a server answered."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is of others."""
        codes = _CODES.get()
        if codes is None:
            return True
        codes.extend(_CODE.findall(record.getMessage()))
        return False


_QUIET = _Quiet()


def send(receiver: str, environ: Mapping[str, str], message: Message) -> str:
    """Sends the message; returns why it did not come through, "" where it did.

    Args:
        receiver: Name of the variable with the URL.
        environ: Where it is looked up.
        message: The message.
    """
    url = environ.get(receiver, "").strip()
    if not url:
        return f"the environment variable {receiver} is not set"
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
        return f"{receiver} does not hold one URL of apprise, or a package for it is missing"
    if is_sent:
        return ""
    return f"the receiver answered {codes[-1]}" if codes else "the receiver does not answer, or refuses"


def has_service(url: str) -> bool:
    """Whether apprise knows a service for the URL, which takes all that is in it; nothing is sent."""
    import apprise  # noqa: PLC0415 - takes a while, and is needed only where somebody is told

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_QUIET)
    token = _CODES.set([])
    try:
        return apprise.Apprise.instantiate(url, suppress_exceptions=True) is not None
    finally:
        _CODES.reset(token)


def _send(url: str, message: Message) -> bool | None:
    """Whether it was sent; None: there is no such service."""
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
