"""Expected records by the offsets of a real Kafka: its mock clusters know no times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from sqlalchemy import create_engine

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import StorageError
from falcon_assets.features.completeness.expected import ExpectedCounts, Slot
from falcon_assets.model.completeness import Expected
from falcon_assets.settings import load_settings
from tests.catalog.definition_files import FILES, write
from tests.kafka_server import Kafka
from tests.processes import free_port

pytestmark = pytest.mark.soak
HOUR = timedelta(hours=1)
START = datetime(2026, 1, 1, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = Kafka(tmp_path_factory.mktemp("kafka"))
    server.start()
    try:
        brokers = f"127.0.0.1:{server.port}"
        admin = AdminClient({"bootstrap.servers": brokers})
        for made in admin.create_topics([NewTopic("clicks", 3, 1), NewTopic("empty", 2, 1)]).values():
            made.result(60)
        producer = Producer({"bootstrap.servers": brokers})
        for minute in range(0, 150, 10):  # from an hour before until after the end
            for partition in (0, 1):
                at = START - HOUR + timedelta(minutes=minute)
                producer.produce("clicks", b"x", partition=partition, timestamp=int(at.timestamp() * 1000))
        producer.flush(60)
        yield brokers
    finally:
        server.kill()


def asked(tmp_path: Path, brokers: str, topic: str, start: datetime) -> dict[tuple[str, str], int] | None:
    store = load_entities(write(tmp_path, FILES))
    counts = ExpectedCounts(store, store.cluster("primary"), load_settings({"FALCON_HOME": str(tmp_path)}))
    expected = Expected.model_validate({"kafka": {"brokers": brokers, "topic": topic}})
    with create_engine("sqlite://").connect() as connection:
        found = counts.of(expected, Slot(start, start + HOUR), connection)
    return None if found is None else dict(found)


def test_the_records_between_two_times_count(kafka: str, tmp_path: Path) -> None:
    by_partition = asked(tmp_path, kafka, "clicks", START)
    assert by_partition == {("clicks", "0"): 6, ("clicks", "1"): 6, ("clicks", "2"): 0}
    # The end of the next hour is after the last record.
    assert asked(tmp_path, kafka, "clicks", START + HOUR) == {**by_partition, ("clicks", "0"): 3, ("clicks", "1"): 3}
    assert asked(tmp_path, kafka, "empty", START) == {("empty", "0"): 0, ("empty", "1"): 0}


def test_a_broker_that_is_away_is_a_sentence(kafka: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"the topic 'clicks' of 127.0.0.1:\d+ cannot be asked: "):
        asked(tmp_path, f"127.0.0.1:{free_port()}", "clicks", START)
    with pytest.raises(StorageError, match="the topic 'none' of"):
        asked(tmp_path, kafka, "none", START)
