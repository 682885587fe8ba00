"""The type ``kafka``: topics of a Kafka cluster, read by offsets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import (
    Dataset,
    DatasetColumn,
    DatasourceType,
    ReadRequest,
    SourceColumn,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ENDPOINT = re.compile(r"kafka://([^\s/@,:]+:\d+(?:,[^\s/@,:]+:\d+)*)")
_SECONDS = 10
_SILENCE_SECONDS = 60
_GATHER_SECONDS = 0.5
_BATCH = 10_000
_RESET = "auto.offset.reset"
_COLUMNS = (
    SourceColumn("key", "key", "binary", "binary"),
    SourceColumn("value", "value", "binary", "binary"),
    SourceColumn("partition", "partition", "int", "int"),
    SourceColumn("offset", "offset", "bigint", "bigint"),
    SourceColumn("timestamp", "timestamp", "timestamp", "timestamp"),
    SourceColumn(
        "headers",
        "headers",
        "array<struct<key: string, value: binary>>",
        "array<struct<key: string, value: binary>>",
    ),
)
"""As Spark's own source names them."""


class Kafka(DatasourceType):
    """Topics of a Kafka cluster."""

    name = "kafka"
    endpoint = "kafka://host:9092,host:9092"
    package = "falcon-assets[kafka]"
    module = "confluent_kafka"
    reads: ClassVar = ("topic",)

    def endpoint_problem(self, endpoint: str) -> str | None:
        return None if _ENDPOINT.fullmatch(endpoint) else f"write {self.endpoint}"

    def require_reachable(self, access: Access) -> None:
        with _consumer(access) as consumer:
            consumer.list_topics(timeout=_SECONDS)

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        with _consumer(access) as consumer:
            found = consumer.list_topics(timeout=_SECONDS).topics
        if table is not None and table not in found:
            raise DatasourceError(f"datasource {access.name!r}: there is no topic {table!r}")
        columns = tuple(DatasetColumn(one.name, one.source_type, one.spark_type, True) for one in _COLUMNS)
        for name in sorted(found if table is None else [table]):
            if table is not None or not name.startswith("__"):  # Kafka's own
                yield Dataset(name, columns)

    @contextmanager
    def open_reading(self, access: Access, request: ReadRequest) -> Iterator[TopicReading]:
        """Reads each partition from where the instance before ended up to the end of the period.

        Raises DatasourceError where messages in between are gone.
        """
        topic, fields = str(request.declared.source.topic), request.declared.fields
        names = tuple(one.name for one in _COLUMNS)
        columns = tuple(_COLUMNS[names.index(one)] for one in (fields.of(names) if fields else names))
        with _consumer(access) as consumer:
            first, end = _span(consumer, access, topic, request)
        parts = tuple(
            TopicPart(access, topic, number, first[number], end[number], tuple(one.name for one in columns))
            for number in sorted(end)
            if end[number] > first[number]
        )
        yield TopicReading(columns, parts, json.dumps(first), json.dumps(end))


@dataclass(frozen=True)
class TopicReading:
    """Messages of a topic; watermarks are the first offset that is read of each partition, and the next that is not."""

    columns: Sequence[SourceColumn]
    parts: Sequence[TopicPart]
    low: str
    high: str
    behind: None = None


@dataclass(frozen=True)
class TopicPart:
    """The messages of a partition from ``first`` up to ``end``, which is not read."""

    access: Access
    topic: str
    partition: int
    first: int
    end: int
    columns: tuple[str, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - only workers need it
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - of an extra

        from falcon_assets.compute.arrow.spark_types import arrow_type  # noqa: PLC0415 - it imports Arrow

        types = {one.name: arrow_type(one.arrives_as) for one in _COLUMNS}
        schema = pa.schema([(name, types[name]) for name in self.columns])
        with _consumer(self.access) as consumer:
            consumer.assign([TopicPartition(self.topic, self.partition, self.first)])
            at_end, heard = False, time.monotonic()
            while not at_end:
                found = consumer.consume(_BATCH, timeout=_GATHER_SECONDS)  # it waits so long for a whole batch
                if found:
                    heard = time.monotonic()
                elif time.monotonic() - heard > _SILENCE_SECONDS:
                    raise DatasourceError(
                        f"datasource {self.access.name!r}: partition {self.partition} of {self.topic!r} sent nothing "
                        f"for {_SILENCE_SECONDS} seconds, before offset {self.end}"
                    )
                rows = []
                for one in found:
                    if one.error() is not None and one.error().name() != "_PARTITION_EOF":
                        raise DatasourceError(f"datasource {self.access.name!r}: {self.topic!r}: {one.error()}")
                    at_end = at_end or one.offset() >= self.end - (one.error() is None)
                    if one.error() is None and one.offset() < self.end:
                        rows.append(_row(one))
                if rows:
                    yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _row(message: Any) -> dict[str, Any]:
    kind, milliseconds = message.timestamp()
    headers = [{"key": key, "value": value} for key, value in message.headers() or ()]
    return {
        "key": message.key(),
        "value": message.value(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": milliseconds * 1000 if kind else None,
        "headers": headers,
    }


def _span(
    consumer: Any, access: Access, topic: str, request: ReadRequest
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """The first offset of each partition, and the one after the last."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - of an extra

    found = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
    if found.error is not None:
        raise DatasourceError(f"datasource {access.name!r}: the topic {topic!r}: {found.error}")
    kept = {
        one: consumer.get_watermark_offsets(TopicPartition(topic, one), timeout=_SECONDS) for one in found.partitions
    }

    def at(moment: datetime) -> dict[int, int]:
        wanted = [TopicPartition(topic, one, int(moment.timestamp() * 1000)) for one in found.partitions]
        known = consumer.offsets_for_times(wanted, timeout=_SECONDS)
        return {one.partition: one.offset if one.offset >= 0 else kept[one.partition][1] for one in known}

    before = _offsets(request.low)
    first = {**(at(request.start) if before is None else dict.fromkeys(found.partitions, 0)), **(before or {})}
    upto = _offsets(request.upto)
    end = {number: max(offset, first[number]) for number, offset in (at(request.end) if upto is None else upto).items()}
    for number in sorted(end):
        oldest, next_one = kept.get(number, (0, 0))
        if first[number] < oldest and access.driver.get(_RESET) == "earliest":
            first[number], end[number] = oldest, max(oldest, end[number])
        elif first[number] < oldest and before is not None:
            gone = f"{first[number]} to {min(oldest, end[number]) - 1}"
            raise DatasourceError(
                f"datasource {access.name!r}: the messages {gone} of partition {number} of {topic!r} are not kept any "
                "more: they were removed before they were imported; to go on without them, let its datasource have "
                f"the driver option {_RESET}: earliest"
            )
        if next_one < end[number]:
            raise DatasourceError(
                f"datasource {access.name!r}: partition {number} of {topic!r} ends at {next_one}, not {end[number]}, "
                "where an import ended: the topic was made anew"
            )
    return first, end


def _offsets(watermark: str | None) -> dict[int, int] | None:
    return None if watermark is None else {int(number): offset for number, offset in json.loads(watermark).items()}


@contextmanager
def _consumer(access: Access) -> Iterator[Any]:
    """Raises DatasourceError in place of what the driver raises."""
    try:
        from confluent_kafka import Consumer, KafkaException  # noqa: PLC0415 - of an extra
    except ImportError:
        needs = f"pip install '{Kafka.package}'"
        raise DatasourceError(f"datasource {access.name!r} needs a package: {needs}") from None
    brokers = access.endpoint.partition("://")[2]
    login = {"sasl.username": access.user, "sasl.password": access.password} if access.user else {}
    settings = {
        **access.driver,
        **login,
        "bootstrap.servers": brokers,
        "group.id": "falcon-imports",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "log_level": 0,
    }
    close: Callable[[], object] = lambda: None  # noqa: E731 - until it is made
    try:
        consumer = Consumer(settings)
        close = consumer.close
        yield consumer
    except KafkaException as error:
        said = error.args[0] if error.args else error
        raise DatasourceError(f"datasource {access.name!r} ({brokers}): {said}") from None
    finally:
        close()
