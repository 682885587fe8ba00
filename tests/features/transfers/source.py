"""A database that imports read, and what they read of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg2
import pyarrow as pa
import sqlalchemy
from psycopg2.extensions import get_wait_callback, set_wait_callback

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import ReadPart, ReadRequest, SourceReading, datasource_types
from falcon_assets.model.datasource import DatasourceThrottle
from falcon_assets.model.transfer import Import
from tests.hours import hour


def endpoint_of(url: str) -> str:
    """The endpoint of a datasource, for a database of the tests."""
    made = sqlalchemy.make_url(url)._replace(drivername="postgresql", username=None, password=None)
    return made.render_as_string().replace("+", "%20")


def access_of(url: str, **throttle: int) -> Access:
    """The database as a datasource."""
    made = sqlalchemy.make_url(url)
    return Access(
        "shop", "postgresql", endpoint_of(url), DatasourceThrottle(**throttle), made.username, made.password or None
    )


def run_sql(url: str, *statements: str, **given: Any) -> list[tuple[Any, ...]]:
    """Runs statements in one transaction; returns the rows of the last one."""
    with connected(url) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, given or None)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    return rows


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection of its own."""
    made = sqlalchemy.make_url(url)
    connection = psycopg2.connect(endpoint_of(url), user=made.username, password=made.password)
    try:
        yield connection
    finally:
        connection.close()


def asked(parts: int = 3, low: str | None = None, upto: str | None = None, **declared: Any) -> ReadRequest:
    """What an import of the table ``orders`` (or as declared) asks for hour 1, in so many parts."""
    source = {"name": "shop", "table": "orders"}
    declared = {"source": source, **declared}
    return ReadRequest(Import.model_validate(declared), hour(1), hour(1) + timedelta(hours=1), low, upto, parts)


def opened(access: Access, **declared: Any) -> Any:
    """A reading, to be entered."""
    return datasource_types()["postgresql"].open_reading(access, asked(**declared))


def rows_of(parts: Iterable[ReadPart]) -> list[dict[str, Any]]:
    """What workers read, in the order of the parts."""
    waiting = get_wait_callback()
    set_wait_callback(None)  # workers of Spark have none
    try:
        return [row for part in parts for batch in pickle.loads(pickle.dumps(part)).batches() for row in _rows(batch)]
    finally:
        set_wait_callback(waiting)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return list(batch.to_pylist())


def read(access: Access, **declared: Any) -> list[dict[str, Any]]:
    """All rows of a reading."""
    with opened(access, **declared) as reading:
        return rows_of(reading.parts)


def types_of(reading: SourceReading) -> dict[str, str]:
    """Name of a column -> its type in a feed."""
    return {one.name: one.spark_type for one in reading.columns}
