"""Imports of messages of a real Kafka, read again by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.builders import cluster_yaml, feed_yaml, on
from tests.kafka_server import Kafka
from tests.world import MakeWorld, World

pytestmark = pytest.mark.soak
START = datetime(2013, 1, 1, tzinfo=UTC)
DATASOURCE = """---
kind: datasource
name: events
type: kafka
interfaces: {{readonly: {{endpoint: 'kafka://127.0.0.1:{port}'}}}}
"""
MESSAGES = {"source": {"name": "events", "topic": "clicks"}, "extract": "log-offsets"}
SOME = {**MESSAGES, "fields": {"include": ["value", "offset"]}}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    server = Kafka(tmp_path_factory.mktemp("kafka"))
    server.start()
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{server.port}"})
        settings = {"retention.ms": "-1"}  # messages of 2013 stay
        for made in admin.create_topics([NewTopic("clicks", 3, 1, config=settings)]).values():
            made.result(60)
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def world(kafka: Kafka, make_world: MakeWorld) -> World:
    feeds = [
        feed_yaml(name, on("primary", **{"import": declared}), schedule=True)
        for name, declared in (("clicks", MESSAGES), ("values", SOME))
    ]
    return make_world({"all.yaml": "".join([cluster_yaml(), DATASOURCE.format(port=kafka.port), *feeds])})


def send(kafka: Kafka, *minutes: int, value: bytes | None = None) -> None:
    """A message to each of two partitions at each of these minutes."""
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    for minute in minutes:
        at = int((START + timedelta(minutes=minute)).timestamp() * 1000)
        for partition in (0, 1):
            said = value if value is not None else f"{minute}-{partition}".encode()
            producer.produce(
                "clicks", said, b"\x00key", partition=partition, timestamp=at, headers=[("h", b"\xff"), ("n", None)]
            )
    assert producer.flush(60) == 0


def rows(world: World, feed: str, number: int) -> list[dict[str, object]]:
    folder = world.settings.home / f"data/primary/{feed}/2013-01-01/{number:02}"
    return pq.read_table(folder).to_pylist()


def values(world: World, number: int) -> list[bytes]:
    return sorted(row["value"] for row in rows(world, "clicks", number))  # type: ignore[type-var]


def test_every_message_is_in_one_instance(kafka: Kafka, world: World) -> None:
    send(kafka, -5, 10, 20, 59, 61)
    keys = [f"{name} import on primary, 2013-01-01T00:00Z, attempt 1" for name in ("clicks", "values")]
    assert sorted(world.step("01:00")) == keys
    assert values(world, 0) == [b"10-0", b"10-1", b"20-0", b"20-1", b"59-0", b"59-1"]
    one = min(rows(world, "clicks", 0), key=lambda row: (row["partition"], row["offset"]))  # type: ignore[type-var]
    assert one == {
        "key": b"\x00key",
        "value": b"10-0",
        "partition": 0,
        "offset": 1,
        "timestamp": datetime(2013, 1, 1, 0, 10, tzinfo=UTC),
        "headers": [{"key": "h", "value": b"\xff"}, {"key": "n", "value": None}],
    }
    assert [*rows(world, "values", 0)[0]] == ["value", "offset"]
    # One that comes after its hour was imported is in the next hour.
    send(kafka, 30, 70)
    world.step("02:00")
    assert values(world, 1) == [b"30-0", b"30-1", b"61-0", b"61-1", b"70-0", b"70-1"]
    # Nothing was sent in the third hour.
    world.step("03:00")
    assert rows(world, "clicks", 2) == []


def test_a_rerun_of_an_older_instance_reads_the_same(kafka: Kafka, world: World) -> None:
    assert world.run_job("primary__clicks__import_job", "04:00", partition_key="2013-01-01T00:00Z").success
    assert len(values(world, 0)) == 6


def test_messages_that_are_gone_are_an_error(kafka: Kafka, world: World) -> None:
    send(kafka, 190)
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    topic = TopicPartition("clicks", 0)
    last = admin.list_offsets({topic: OffsetSpec.latest()})[topic].result(60).offset
    admin.delete_records([TopicPartition("clicks", 0, last)])[TopicPartition("clicks", 0, last)].result(60)
    world.step("04:00")
    row = world.rows("clicks import")[3]
    assert row["state"] == "FAILED"
    assert "of partition 0 of 'clicks' are not kept any more" in row["reason"]
    assert "auto.offset.reset: earliest" in row["reason"]
