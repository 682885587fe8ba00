"""The number of records that were sent, where it is asked for: a feed of counts, a query, the offsets of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import sqlalchemy as sa
from pyarrow.fs import FSSpecHandler, PyFileSystem
from sqlalchemy.engine import make_url

from falcon_assets.catalog.references import value_of
from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import StorageError
from falcon_assets.features.completeness.rules import PartKey
from falcon_assets.history import queries
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.completeness import Expected, KafkaCount, SqlCount
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.errors import explained
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.kinds.kind_of import kind_of

_SECONDS = 10
"""How long a database or a broker may take to answer."""
_PATIENCE = _SECONDS + 1
"""Where its driver has no limit of its own; PostgreSQL, which has one, says more."""
_COLUMNS = ("slot", "count")


@dataclass(frozen=True)
class Slot:
    """The span of an instance: from its nominal time to the next one, which is not part of it."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class ExpectedCounts:
    """Asks for the records that were sent to a cluster."""

    store: EntityStore
    cluster: Cluster
    settings: Settings

    @cached_property
    def files_of(self) -> StoresOf:
        return StoresOf(self.cluster, self.settings.home, self.settings.environ, roots_of(self.settings))

    def of(self, asked: Expected, slot: Slot, connection: sa.Connection) -> Mapping[PartKey, int] | None:
        """Returns the records that were sent, by source and part; None: nobody can say yet.

        Raises FalconError where the source cannot be asked.
        """
        if asked.feed:
            return self._in_feed(self.store.feed(asked.feed), slot, connection)
        if asked.sql:
            return _by_query(asked.sql, slot, self.settings)
        assert asked.kafka
        return _in_topic(asked.kafka, slot)

    def _in_feed(self, feed: Feed, slot: Slot, connection: sa.Connection) -> Mapping[PartKey, int] | None:
        """The sum of its slots, as soon as all its instances that can have them are available."""
        line = feed_timeline(feed, self.cluster.name)
        first = line.instance(line.index_at_or_before(slot.start))
        instances = [one for one in line.between(first, slot.end) if one < slot.end]
        place = (self.cluster.name, feed.name)
        there = queries.available(connection, {place: (first, slot.end)}).get(place, set()) if instances else set()
        if not instances or not there.issuperset(instances):
            return None
        kind, paths = kind_of(self.files_of(feed)), InstancePaths(feed, self.cluster)
        counts = [number for one in instances for at, number in _rows(kind, feed, paths.data(one)) if _is_in(at, slot)]
        return {(feed.name, ""): sum(counts)}


def _is_in(at: datetime, slot: Slot) -> bool:
    return slot.start <= at < slot.end


def _rows(kind: Any, feed: Feed, path: str) -> Iterator[tuple[datetime, int]]:
    """Slot and count of the rows at a path; a time without a zone is UTC."""
    found = kind.source_files(path, feed.availability_flag, is_hidden)
    if found is None:
        return
    form: Any = feed.format
    if form == "csv":
        options = pyarrow.csv.ParseOptions(delimiter=feed.options.get("sep", ","))
        form = ds.CsvFileFormat(options)
    with explained(kind.store.cluster.name, f"read the counts in {path}"):
        files = [found.path(name) for name in found.files]
        try:
            table = ds.dataset(files, format=form, filesystem=PyFileSystem(FSSpecHandler(kind.store.fs))).to_table(
                columns=[*_COLUMNS]
            )
        except (pa.ArrowException, ValueError) as error:
            said = str(error).splitlines()[0]
            raise StorageError(f"feed {feed.name!r}: {path} has no counts, columns slot and count: {said}") from error
    for at, number in zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True):
        try:
            moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
            yield moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment, int(number)
        except (TypeError, ValueError) as error:
            raise StorageError(f"feed {feed.name!r}: {path}: {at!r}, {number!r} is no slot and count") from error


def _by_query(asked: SqlCount, slot: Slot, settings: Settings) -> Mapping[PartKey, int] | None:
    name = asked.url.label
    if not (url := value_of(asked.url, settings.environ)):
        raise StorageError(f"the variable {name}, which has the URL of the database of counts, is not set")

    def rows_of() -> list[sa.Row[Any]]:
        engine = sa.create_engine(_with_driver(url), poolclass=sa.NullPool, connect_args=_limits(url))
        with engine.connect() as connection:
            found = connection.execute(sa.text(asked.query), {"start": slot.start, "end": slot.end})
            return list(found.fetchall())

    try:
        rows = _in_time(rows_of)
    except TimeoutError:
        said = f"did not answer within {_SECONDS} seconds"
        raise StorageError(f"the query of counts (the database in {name}) {said}") from None
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        said = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
        raise StorageError(f"the query of counts (the database in {name}) failed: {said}") from None
    try:
        counts = {tuple(map(str, row[:-1])): int(row[-1]) for row in rows if row[-1] is not None}
        return {_key(key): number for key, number in counts.items()} or None
    except (TypeError, ValueError, IndexError):
        said = "must return one number, or rows of source, part and number"
        raise StorageError(f"the query of counts for {format_instant(slot.start)} {said}") from None


def _in_time(asking: Callable[[], list[sa.Row[Any]]]) -> list[sa.Row[Any]]:
    """Raises TimeoutError where it takes longer: few drivers have a limit of their own, so a thread is left behind."""
    answer = Future[list[sa.Row[Any]]]()

    def ask() -> None:
        try:
            answer.set_result(asking())
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, name="asks for counts", daemon=True).start()
    return answer.result(_PATIENCE)


def _key(names: tuple[str, ...]) -> PartKey:
    source, part = (*names, "", "")[:2]
    return source, part


def _with_driver(url: str) -> sa.URL:
    """Plain ``postgresql`` means another driver in newer versions of SQLAlchemy."""
    made = make_url(url)
    return made.set(drivername="postgresql+psycopg2") if made.drivername == "postgresql" else made


def _limits(url: str) -> dict[str, Any]:
    if make_url(url).get_backend_name() == "postgresql":
        return {"connect_timeout": _SECONDS, "options": f"-c statement_timeout={_SECONDS * 1000}"}
    return {}


def _in_topic(asked: KafkaCount, slot: Slot) -> Mapping[PartKey, int]:
    try:
        from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415 - an extra
    except ImportError:
        raise StorageError("offsets of Kafka need confluent-kafka: install falcon-assets[kafka]") from None
    settings = {"bootstrap.servers": asked.brokers, "group.id": "falcon-completeness", "enable.auto.commit": False}
    consumer = Consumer({**settings, "log_level": 0})
    try:
        found = consumer.list_topics(asked.topic, timeout=_SECONDS).topics[asked.topic]
        if found.error is not None:
            raise StorageError(f"the topic {asked.topic!r} of {asked.brokers}: {found.error}")

        def offsets(at: datetime) -> dict[int, int]:
            wanted = [TopicPartition(asked.topic, one, int(at.timestamp() * 1000)) for one in found.partitions]
            known = consumer.offsets_for_times(wanted, timeout=_SECONDS)
            return {one.partition: one.offset if one.offset >= 0 else _last(consumer, one) for one in known}

        first, end = offsets(slot.start), offsets(slot.end)
    except KafkaException as error:
        raise StorageError(f"the topic {asked.topic!r} of {asked.brokers} cannot be asked: {error}") from None
    finally:
        consumer.close()
    return {(asked.topic, str(partition)): end[partition] - first[partition] for partition in sorted(first)}


def _last(consumer: Any, partition: Any) -> int:
    """The offset after the last record: none is as young as the time that was asked for."""
    return int(consumer.get_watermark_offsets(partition, timeout=_SECONDS)[1])
