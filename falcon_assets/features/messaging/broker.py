"""The interface of brokers, and the choice of one by the endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from falcon_assets.catalog.references import value_of
from falcon_assets.errors import SecretError
from falcon_assets.features.messaging.cloud_events import CloudEvent
from falcon_assets.model.cluster import MessagingInterface
from falcon_assets.model.reference import Reference

SECONDS = 10.0
"""How long a broker may take to connect, or to take an event."""
_CLIENTS = {"kafka": ("confluent_kafka", "kafka"), "amqp": ("pika", "amqp"), "amqps": ("pika", "amqp")}
"""Scheme -> the module of its client, and the extra that brings it."""


class NotPublishedError(Exception):
    """The broker did not take an event; a later try may succeed. Its text contains no secrets."""


class Broker(Protocol):
    def publish(self, events: Sequence[CloudEvent]) -> Iterator[tuple[CloudEvent, bool]]:
        """Publishes events, those of one instance in their order, and yields each that the broker has confirmed.

        Yields False with those that the broker will never take.

        Raises:
            NotPublishedError: the next one was not confirmed, and later ones of its instance were not sent.
        """

    def probe(self) -> None:
        """Connects, and publishes nothing; raises NotPublishedError."""


def scheme_of(messaging: MessagingInterface) -> str:
    return messaging.endpoint.partition(":")[0]


def missing_extra(messaging: MessagingInterface) -> str:
    """The extra of the package that has to be installed; empty: nothing is missing."""
    module, extra = _CLIENTS.get(scheme_of(messaging), ("", ""))
    return extra if module and find_spec(module) is None else ""


def broker_of(messaging: MessagingInterface, environ: Mapping[str, str]) -> Broker:
    """Raises NotPublishedError where a secret is not available or the client is not installed."""
    if extra := missing_extra(messaging):
        raise NotPublishedError(f"its client is missing: pip install 'falcon-assets[{extra}]'")
    options = {name: _value(option, environ) for name, option in messaging.options.items()}
    name = scheme_of(messaging).removesuffix("s")
    made: Broker = import_module(f"falcon_assets.features.messaging.{name}_broker").broker(messaging, options)
    return made


def _value(option: object, environ: Mapping[str, str]) -> str:
    if isinstance(option, Reference):
        try:
            if value := value_of(option, environ):
                return value
        except SecretError as error:
            raise NotPublishedError(str(error)) from error
        raise NotPublishedError(f"{option} is not set")
    return str(option).lower() if isinstance(option, bool) else str(option)
