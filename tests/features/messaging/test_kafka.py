"""Transitions are published to Kafka: librdkafka's own mock of a cluster, which speaks its protocol on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

import dagster as dg
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.messaging.broker import NotPublishedError, broker_of
from falcon_assets.features.messaging.cloud_events import CloudEvent, cloud_event
from falcon_assets.features.messaging.kafka_broker import waves
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.model.cluster import MessagingInterface
from falcon_assets.model.event_kind import EventKind
from falcon_assets.settings import Settings
from tests.features.messaging.world import START, World, first_by_instance, recorded_by_instance, run_facts
from tests.ledger.histories import hour
from tests.processes import free_port


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """Host and port of a mock of three brokers, which lives as long as this client."""
    client = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 3, "log_level": 0})
    found = client.list_topics(timeout=20).brokers.values()
    yield ",".join(f"{one.host}:{one.port}" for one in found)


def consumed(brokers: str, topic: str, number: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "test", "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, one) for one in partitions])  # a group would take seconds to form
    try:
        found: list[Message] = []
        while len(found) < number:
            (message,) = consumer.consume(1, timeout=60)
            assert message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def event(name: str, at: datetime = START, kind: EventKind = EventKind.LANDED, source: str = "1") -> CloudEvent:
    happening = InstanceEvent(kind, "feed", name, "primary", at, at, f"{kind.value} {name} {at} {source}")
    return cloud_event(Notice("messaging of primary", "feed", name, happening))


def test_each_instance_is_in_one_partition_in_the_order_of_what_happened(
    settings: Settings, instance: dg.DagsterInstance, brokers: str
) -> None:
    world = World(settings, instance, primary={"endpoint": f"kafka://{brokers}/transitions"})
    world.happens(*(fact for number in (1, 2) for nominal in range(20) for fact in run_facts(nominal, number)))
    world.tick()
    messages = consumed(brokers, "transitions", 120)
    assert first_by_instance([one.value() or b"" for one in messages]) == recorded_by_instance(world)
    partitions = {(one.key(), one.partition()) for one in messages}
    assert len(partitions) == len({key for key, _ in partitions}) == 40
    assert {str(one.headers()) for one in messages} == {
        "[('content-type', b'application/cloudevents+json; charset=utf-8')]"
    }


def test_a_broker_that_is_away_keeps_events_waiting_and_delays_no_other(
    settings: Settings, instance: dg.DagsterInstance, brokers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falcon_assets.features.messaging.kafka_broker.SECONDS", 1.0)
    there, away = f"kafka://{brokers}/later", f"kafka://127.0.0.1:{free_port()}/later"
    world = World(settings, instance, primary={"endpoint": away}, other={"endpoint": there})
    for cluster in ("primary", "other"):
        world.runs(1, cluster=cluster)
    problems = {one.receiver: one.problem for one in world.tick()}
    assert problems.pop("messaging of other") == ""
    assert problems.pop("messaging of primary").startswith("it does not answer, or refuses: _MSG_TIMED_OUT, ")
    world.runs(1, 2)
    world.declare(primary={"endpoint": there}, other={"endpoint": there})
    world.tick(hours=1)
    bodies = [one.value() or b"" for one in consumed(brokers, "later", 9)]
    assert first_by_instance(bodies) == recorded_by_instance(world)


def test_a_probe_finds_out_whether_the_cluster_answers(brokers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falcon_assets.features.messaging.kafka_broker.SECONDS", 2.0)
    broker_of(MessagingInterface(endpoint=f"kafka://{brokers}/transitions"), {}).probe()
    with pytest.raises(NotPublishedError, match="it does not answer, or refuses: _TRANSPORT"):
        broker_of(MessagingInterface(endpoint=f"kafka://127.0.0.1:{free_port()}/transitions"), {}).probe()


def test_options_that_librdkafka_refuses_are_not_quoted(brokers: str) -> None:
    options = {"sasl.mechanism": {"env": "HUSH"}, "no.such": "hushhush"}
    messaging = MessagingInterface.model_validate({"endpoint": f"kafka://{brokers}/transitions", "options": options})
    with pytest.raises(NotPublishedError) as raised:
        broker_of(messaging, {"HUSH": "hushhush"}).probe()
    assert str(raised.value) == "librdkafka refuses the options: _INVALID_ARG"


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), max_size=30))
def test_no_wave_has_two_events_of_an_instance_and_all_waves_together_are_all_in_order(
    said: list[tuple[str, int]],
) -> None:
    events = [event(name, hour(at), source=str(number)) for number, (name, at) in enumerate(said)]
    found = waves(events)
    assert all(len({one.key for one in wave}) == len(wave) > 0 for wave in found)

    def by_instance(them: list[CloudEvent]) -> dict[str, list[str]]:
        in_order = sorted(them, key=lambda one: one.key)  # which is stable
        return {key: [one.id for one in own] for key, own in groupby(in_order, lambda one: one.key)}

    assert by_instance([one for wave in found for one in wave]) == by_instance(events)
