"""Real RabbitMQ and real Kafka, through kills of the sender and of the broker: in order per instance, none lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import pika
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from falcon_assets.features.messaging.broker import NotPublishedError, broker_of
from falcon_assets.model.cluster import MessagingInterface
from falcon_assets.settings import Settings
from tests.dead_sessions import wait_for_dead_sessions
from tests.features.messaging.world import World, first_by_instance, recorded_by_instance, run_facts
from tests.kafka_server import Kafka
from tests.processes import forked
from tests.rabbitmq_server import RabbitMq
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
TOPIC = EXCHANGE = "transitions"


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq]:
    server = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    server.start()
    try:
        connection = pika.BlockingConnection(server.parameters)
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, "topic", durable=True)
        for queue, pattern in (("all", "#"), ("landed", "primary.feed.*.LANDED")):
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, EXCHANGE, pattern)
        connection.close()
        yield server
    finally:
        server.end()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    server = Kafka(tmp_path_factory.mktemp("kafka"))
    server.start()
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{server.port}"})
        for made in admin.create_topics([NewTopic(TOPIC, 4, 1)]).values():
            made.result(60)
        yield server
    finally:
        server.kill()


def of_queue(rabbit: RabbitMq, queue: str) -> list[bytes]:
    connection = pika.BlockingConnection(rabbit.parameters)
    channel = connection.channel()
    found = list[bytes]()
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append(got[2] or b"")
    connection.close()
    return found


def of_topic(kafka: Kafka) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{kafka.port}", "group.id": "test"})
    parts = list(consumer.list_topics(TOPIC, timeout=60).topics[TOPIC].partitions)
    ends = {one: consumer.get_watermark_offsets(TopicPartition(TOPIC, one), timeout=60)[1] for one in parts}
    consumer.assign([TopicPartition(TOPIC, one, 0) for one in parts])
    found = list[bytes]()
    while len(found) < sum(ends.values()):
        found += [one.value() or b"" for one in consumer.consume(100, timeout=10) if one.error() is None]
    consumer.close()
    return found


def lives_through_kills(world: World, server: RabbitMq | Kafka, rounds: int) -> None:
    """Kills senders at some moment of their tick, then the broker while one sends, and starts it again."""
    for number in range(1, rounds + 1):
        world.happens(*(fact for hour in range(20) for fact in run_facts(hour, number)))
        world.passed += timedelta(hours=1)
        sender = forked(lambda: _tick_in_a_new_process(world))
        wait_until(lambda number=number: _sent(world) or number % 2, 60)  # type: ignore[misc]
        if number % 3:
            os.kill(sender, signal.SIGKILL)
        else:
            server.kill()
        os.waitpid(sender, 0)
        wait_for_dead_sessions(world.ledger.engine)
        if server.running is None:
            server.start()

    def all_sent() -> bool:
        world.tick(hours=1)
        return world.states() == {"SENT": rounds * 60}

    wait_until(all_sent, 120, what=lambda: str(world.states()))


def _sent(world: World) -> bool:
    return "SENDING" in world.states()


def _tick_in_a_new_process(world: World) -> None:
    world.ledger.engine.dispose(close=False)  # the connections are the parent's
    world.tick()


def test_rabbitmq(settings: Settings, instance: dg.DagsterInstance, rabbit: RabbitMq) -> None:
    endpoint = f"amqp://127.0.0.1:{rabbit.port}/%2F/{EXCHANGE}"
    world = World(settings, instance, primary={"endpoint": endpoint})
    lives_through_kills(world, rabbit, 6)
    recorded = recorded_by_instance(world)
    assert first_by_instance(of_queue(rabbit, "all")) == recorded
    landed = {key: ids for key, ids in recorded.items() if "/feed/" in key}
    assert first_by_instance(of_queue(rabbit, "landed")) == landed


def test_kafka(settings: Settings, instance: dg.DagsterInstance, kafka: Kafka) -> None:
    world = World(settings, instance, primary={"endpoint": f"kafka://127.0.0.1:{kafka.port}/{TOPIC}"})
    lives_through_kills(world, kafka, 6)
    assert first_by_instance(of_topic(kafka)) == recorded_by_instance(world)


@pytest.mark.parametrize(
    ("options", "exchange", "why"),
    [
        ({}, EXCHANGE, ""),
        ({}, "other", "it answered 404: NOT_FOUND - no exchange 'other' in vhost '/'"),
        ({"username": "guest", "password": "hushhush"}, EXCHANGE, "it does not answer, or refuses: "),
    ],
)
def test_a_probe_of_rabbitmq(rabbit: RabbitMq, options: dict[str, str], exchange: str, why: str) -> None:
    endpoint = f"amqp://127.0.0.1:{rabbit.port}/%2F/{exchange}"
    broker = broker_of(MessagingInterface.model_validate({"endpoint": endpoint, "options": options}), {})
    if not why:
        broker.probe()
        return
    with pytest.raises(NotPublishedError) as raised:
        broker.probe()
    assert str(raised.value).startswith(why)
    assert "hushhush" not in str(raised.value)
