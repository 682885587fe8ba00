"""Every value of a feed arrives in PostgreSQL as it is: psycopg2 reads it, which shares nothing with the encoder."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extensions
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from tests.features.datasources.deliveries import as_in_workers, deliver, request
from tests.features.datasources.test_postgresql import access
from tests.properties import examples

pytestmark = pytest.mark.usefixtures("as_in_workers")
__all__ = ["as_in_workers"]

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
LATEST = datetime(9999, 12, 31)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """All values of the type."""
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda one: Decimal(f"{one}E-{scale}"))


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def moments(zone: Any = None) -> st.SearchStrategy[datetime]:
    return st.datetimes(datetime(1, 1, 2), LATEST, timezones=st.just(zone))


class Values(NamedTuple):
    """Values of a Spark type, and a type of PostgreSQL that holds them; ``read`` is the SQL that they are read by."""

    spark: str
    arrow: pa.DataType
    postgresql: str
    values: st.SearchStrategy[Any]
    read: str = "value"
    expected: Callable[[Any], Any] = lambda value: value


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | whole(53) | TEXT, lambda one: st.lists(one) | st.dictionaries(TEXT, one), max_leaves=5
)
KINDS = [
    Values("boolean", pa.bool_(), "boolean", st.booleans()),
    Values("smallint", pa.int16(), "smallint", whole(16)),
    Values("int", pa.int32(), "integer", whole(32)),
    Values("bigint", pa.int64(), "bigint", whole(64)),
    Values("float", pa.float32(), "real", st.floats(width=32), "value::float8"),
    Values("double", pa.float64(), "double precision", st.floats()),
    Values("decimal(1,0)", pa.decimal128(1, 0), "numeric", decimals(1, 0)),
    Values("decimal(4,4)", pa.decimal128(4, 4), "numeric(4,4)", decimals(4, 4)),
    Values("decimal(9,2)", pa.decimal128(9, 2), "numeric(12,3)", decimals(9, 2)),
    Values("decimal(18,7)", pa.decimal128(18, 7), "numeric", decimals(18, 7)),
    Values("decimal(38,0)", pa.decimal128(38, 0), "numeric(38,0)", decimals(38, 0)),
    Values("decimal(38,10)", pa.decimal128(38, 10), "numeric(38,10)", decimals(38, 10)),
    Values("decimal(38,37)", pa.decimal128(38, 37), "numeric", decimals(38, 37)),
    Values("decimal(38,38)", pa.decimal128(38, 38), "numeric", decimals(38, 38)),
    Values("string", pa.string(), "text", TEXT),
    Values("string", pa.large_string(), "varchar(20)", TEXT),
    Values("string", pa.string(), "code", TEXT.filter(lambda one: one != "none")),
    Values("string", pa.string(), "numeric", decimals(38, 19).map(str), "value", Decimal),
    Values("string", pa.string(), "mood", st.sampled_from(["sad", "glad"])),
    Values("string", pa.string(), "inet", st.ip_addresses(v=4).map(str), "host(value)"),
    Values("string", pa.string(), "uuid", st.uuids().map(str), "value::text"),
    Values("string", pa.string(), "json", DOCUMENTS.map(json.dumps), "value::text"),
    Values("string", pa.string(), "jsonb", DOCUMENTS.map(json.dumps), "value::text", json.loads),
    Values("binary", pa.binary(), "bytea", st.binary(max_size=20)),
    Values("date", pa.date32(), "date", st.dates()),
    Values("timestamp", pa.timestamp("us", "UTC"), "timestamptz", moments(UTC)),
    Values("timestamp_ntz", pa.timestamp("us"), "timestamp", moments()),
    Values("array<int>", pa.list_(pa.int32()), "integer[]", st.lists(st.none() | whole(32))),
    Values("array<string>", pa.list_(pa.string()), "text[]", st.lists(st.none() | TEXT)),
    Values(
        "array<string>", pa.list_(pa.string()), "mood[]", st.lists(st.sampled_from(["sad", "glad"])), "value::text[]"
    ),
    Values(
        "array<decimal(20,4)>",
        pa.list_(pa.decimal128(20, 4)),
        "numeric(20,4)[]",
        st.lists(st.none() | decimals(20, 4)),
    ),
    Values(
        "array<timestamp>",
        pa.list_(pa.timestamp("us", "UTC")),
        "timestamptz[]",
        st.lists(st.none() | moments(UTC)),
    ),
]


@pytest.fixture(scope="module")
def there(database: str) -> Access:
    return access(database)


@pytest.fixture(scope="module")
def cursor(there: Access) -> Iterator[psycopg2.extensions.cursor]:
    """That of the independent reader."""
    with closing(psycopg2.connect(there.endpoint, user=there.user, password=there.password)) as connection:
        connection.autocommit = True
        with connection.cursor() as opened:
            opened.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
            opened.execute("CREATE DOMAIN code AS varchar(20) CHECK (VALUE <> 'none')")
            opened.execute("SET timezone = 'UTC'")
            yield opened


executions = count()


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: f"{one.spark} to {one.postgresql}")
@given(data=st.data())
@examples(60, [HealthCheck.function_scoped_fixture])
def test_values_arrive_as_they_are(
    there: Access, cursor: psycopg2.extensions.cursor, kind: Values, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.none() | kind.values, max_size=8))
    skipped = data.draw(st.integers(0, 2))
    cursor.execute(
        f"CREATE TABLE IF NOT EXISTS {(table := f'values_{KINDS.index(kind)}')} (n int, value {kind.postgresql})"
    )
    batch = pa.RecordBatch.from_arrays(
        [pa.array(range(len(values)), pa.int32()), pa.array(values, kind.arrow)], ["n", "value"]
    )
    columns = [("n", "int"), ("value", kind.spark)]
    deliver(there, request(columns, execution=f"{next(executions)}", table=table, load="replace"), batch.slice(skipped))
    cursor.execute(f"SELECT n, {kind.read} FROM {table} ORDER BY n")
    expected = [(n, None if value is None else kind.expected(value)) for n, value in enumerate(values)][skipped:]
    found = [(n, None if value is None else kind.expected(_plain(value))) for n, value in cursor.fetchall()]
    assert [*map(_bits, found)] == [*map(_bits, expected)]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def _bits(row: tuple[int, Any]) -> tuple[int, Any]:
    """NaN equals itself, and 0.0 is not -0.0; all NaNs are one."""
    number, value = row
    if isinstance(value, float):
        return number, "NaN" if math.isnan(value) else struct.pack(">d", value)
    return number, value


def test_large_values_are_cut_into_several_messages(there: Access, cursor: psycopg2.extensions.cursor) -> None:
    cursor.execute("CREATE TABLE large (n int, value text)")
    texts = [letter * (9 << 20) for letter in "abcdefghij"]
    batch = pa.RecordBatch.from_arrays([pa.array(range(10), pa.int32()), pa.array(texts)], ["n", "value"])
    deliver(there, request([("n", "int"), ("value", "string")], table="large", load="replace"), batch)
    cursor.execute("SELECT left(value, 1), length(value) FROM large ORDER BY n")
    assert cursor.fetchall() == [(letter, 9 << 20) for letter in "abcdefghij"]


@pytest.mark.parametrize(
    ("postgresql", "spark", "value", "said"),
    [
        (
            "uuid",
            "string",
            "12",
            "column value: has text that is no UUID, such as 123e4567-e89b-12d3-a456-426614174000",
        ),
        ("jsonb", "string", "{", "column value: invalid input syntax for type json"),
        ("json", "string", "{", "column value: invalid input syntax for type json"),
        ("jsonb", "string", '"\\u0000"', "column value: unsupported Unicode escape sequence"),
        ("varchar(2)", "string", "abc", "column value: value too long for type character varying(2)"),
        ("numeric", "string", "1,5", 'column value: invalid input syntax for type numeric: "1,5"'),
        ("bit(3)", "string", "1111", "bit string length 4 does not match type bit(3)"),
        ("mood", "string", "mad", 'column value: invalid input value for enum mood: "mad"'),
    ],
)
def test_a_value_that_the_column_does_not_have_names_it(
    there: Access, cursor: psycopg2.extensions.cursor, postgresql: str, spark: str, value: str, said: str
) -> None:
    cursor.execute(f"DROP TABLE IF EXISTS refused; CREATE TABLE refused (value {postgresql})")
    batch = pa.RecordBatch.from_arrays([pa.array([value])], ["value"])
    with pytest.raises(DatasourceError) as found:
        deliver(there, request([("value", spark)], execution=said, table="refused", load="replace"), batch)
    assert str(found.value) == f"datasource 'shop': {said}"


def test_dates_before_our_era_of_spark(there: Access, cursor: psycopg2.extensions.cursor) -> None:
    cursor.execute("CREATE TABLE early (value date)")
    batch = pa.RecordBatch.from_arrays([pa.array([-800_000], pa.int32()).cast(pa.date32())], ["value"])
    deliver(there, request([("value", "date")], execution="early", table="early", load="replace"), batch)
    cursor.execute("SELECT value - '1970-01-01'::date FROM early")
    assert cursor.fetchall() == [(-800_000,)]
    assert date(1, 1, 1).toordinal() - date(1970, 1, 1).toordinal() > -800_000
