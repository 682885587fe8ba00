"""Publication to a topic of Kafka, with the instance as key: its events are in one partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from falcon_assets.features.messaging.broker import SECONDS, NotPublishedError
from falcon_assets.features.messaging.cloud_events import CONTENT_TYPE, CloudEvent
from falcon_assets.model.cluster import MessagingInterface

_GRACE_SECONDS = 5.0
_REFUSED = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG})


@dataclass
class KafkaBroker:
    topic: str
    options: Mapping[str, Any]
    _last_error: str = field(default="", init=False)

    def publish(self, events: Sequence[CloudEvent]) -> Iterator[tuple[CloudEvent, bool]]:
        producer = self._producer()
        for wave in waves(events):
            outcome = self._send(producer, wave)
            for event in wave:
                error = outcome.get(event.id, KafkaError._TIMED_OUT)
                if error is None or error in _REFUSED:
                    yield event, error is None
            if lost := {error for error in outcome.values() if error is not None and error not in _REFUSED}:
                raise NotPublishedError(self._said(KafkaError(min(lost)).name()))
            if len(outcome) < len(wave):
                raise NotPublishedError(self._said(KafkaError(KafkaError._TIMED_OUT).name()))

    def probe(self) -> None:
        try:
            found = self._producer().list_topics(self.topic, timeout=SECONDS / 2).topics[self.topic]
        except KafkaException as error:
            raise NotPublishedError(self._said(error.args[0].name())) from None
        if found.error is not None:
            raise NotPublishedError(f"topic {self.topic}: {found.error.name()}")

    def _send(self, producer: Producer, wave: Sequence[CloudEvent]) -> dict[str, int | None]:
        """Returns the id of each event -> its error, None: the broker has it; without those whose fate is unknown."""
        outcome: dict[str, int | None] = {}
        for event in wave:

            def on_delivery(error: KafkaError | None, _message: Any, name: str = event.id) -> None:
                outcome[name] = error.code() if error is not None else None

            headers: Any = [("content-type", CONTENT_TYPE)]
            try:
                producer.produce(self.topic, event.body, event.key, on_delivery=on_delivery, headers=headers)
            except KafkaException as error:
                outcome[event.id] = error.args[0].code()
        producer.flush(SECONDS + _GRACE_SECONDS)
        return outcome

    def _producer(self) -> Producer:
        def on_error(error: KafkaError) -> None:
            self._last_error = error.name()

        own = {"message.timeout.ms": int(SECONDS * 1000), "acks": "all", "linger.ms": 5, "log_level": 0}
        try:
            return Producer({**own, **self.options, "error_cb": on_error})
        except KafkaException as error:  # its text may quote the value
            raise NotPublishedError(f"librdkafka refuses the options: {error.args[0].name()}") from None

    def _said(self, name: str) -> str:
        more = f", {self._last_error}" if self._last_error and self._last_error != name else ""
        return f"it does not answer, or refuses: {name}{more}"


def waves(events: Sequence[CloudEvent]) -> list[list[CloudEvent]]:
    """Splits events so that no part has two of one instance: nothing that is sent together has an order to keep."""
    found: list[list[CloudEvent]] = []
    number: dict[str, int] = {}
    for event in events:
        at = number[event.key] = number.get(event.key, -1) + 1
        if at == len(found):
            found.append([])
        found[at].append(event)
    return found


def broker(messaging: MessagingInterface, options: Mapping[str, str]) -> KafkaBroker:
    return KafkaBroker(messaging.parts["topic"], {"bootstrap.servers": messaging.parts["brokers"], **options})
