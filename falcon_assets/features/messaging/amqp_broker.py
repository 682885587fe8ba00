"""Publication to an exchange of AMQP 0-9-1, each event confirmed before the next is sent."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import unquote

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ChannelClosedByBroker, ConnectionClosedByBroker

from falcon_assets.features.messaging.broker import SECONDS, NotPublishedError
from falcon_assets.features.messaging.cloud_events import CONTENT_TYPE, CloudEvent
from falcon_assets.model.cluster import MessagingInterface

_PERSISTENT = 2
_PORTS = {True: 5671, False: 5672}


@dataclass(frozen=True)
class AmqpBroker:
    parameters: pika.ConnectionParameters
    exchange: str

    def publish(self, events: Sequence[CloudEvent]) -> Iterator[tuple[CloudEvent, bool]]:
        with self._channel() as channel:
            for event in events:
                about = pika.BasicProperties(
                    content_type=CONTENT_TYPE, delivery_mode=_PERSISTENT, message_id=event.id[:255]
                )
                with _explained():
                    channel.basic_publish(self.exchange, event.topic[:255], event.body, about)
                yield event, True

    def probe(self) -> None:
        with self._channel() as channel, _explained():
            channel.exchange_declare(self.exchange, passive=True)

    @contextmanager
    def _channel(self) -> Iterator[BlockingChannel]:
        with _explained():
            connection = pika.BlockingConnection(self.parameters)
        try:
            with _explained():
                channel = connection.channel()
                channel.confirm_delivery()
            yield channel
        finally:
            with suppress(AMQPError, OSError):
                connection.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (ChannelClosedByBroker, ConnectionClosedByBroker) as error:
        raise NotPublishedError(f"it answered {error.reply_code}: {error.reply_text}") from None
    except (AMQPError, OSError) as error:
        cause = next(iter(error.args), None)  # such as the error of the last address that was tried
        inner = getattr(cause, "exception", None)
        raise NotPublishedError(f"it does not answer, or refuses: {type(inner or error).__name__}") from None


def broker(messaging: MessagingInterface, options: Mapping[str, str]) -> AmqpBroker:
    parts, is_safe = messaging.parts, messaging.endpoint.startswith("amqps:")
    parameters = pika.ConnectionParameters(
        parts["host"],
        int(parts.get("port", _PORTS[is_safe])),
        unquote(parts["vhost"]),
        pika.PlainCredentials(options.get("username", "guest"), options.get("password", "guest")),
        ssl_options=pika.SSLOptions(ssl.create_default_context(), parts["host"]) if is_safe else None,
        socket_timeout=SECONDS,
        stack_timeout=SECONDS,
        blocked_connection_timeout=SECONDS,
        heartbeat=int(SECONDS),
    )
    return AmqpBroker(parameters, unquote(parts["exchange"]))
