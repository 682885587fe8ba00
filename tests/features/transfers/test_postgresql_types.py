"""Values of PostgreSQL arrive bit for bit in the files of a feed, whatever their type."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import isolated
from falcon_assets.features.transfers.extraction import read_parts
from falcon_assets.features.transfers.task_files import write_in_tasks
from tests.builders import make_feed
from tests.features.transfers.source import access_of, connected, opened, read, run_sql
from tests.properties import examples

Literal = Callable[[Any], str]
Strategy = st.SearchStrategy[Any]


class Type(NamedTuple):
    """A type of PostgreSQL: its values in Python, as its input function reads them, and as they are in a file."""

    sql: str
    spark: str
    arrow: pa.DataType
    values: Strategy
    written: Literal = str
    stored: Callable[[Any], Any] = lambda value: value


def decimals(digits: int, scale: int) -> Strategy:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda number: Decimal(f"{number}e{-scale}"))


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    ["", "NULL", "\\N", "\\.", '"', '""', "a,b", "\n", "\r\n", "'", "\\", "{}", "é😀", " x ", "null", "NaN"]
)
AWARE = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), timezones=st.just(UTC))
NAIVE = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31))
BYTES = st.binary(max_size=12)
UTC_TIME, WALL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")


def hexadecimal(value: bytes) -> str:
    return f"\\x{value.hex()}"


def jsonb(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


SCALARS = {
    "small": Type("smallint", "smallint", pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": Type("int", "int", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "big": Type("bigint", "bigint", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": Type("float4", "float", pa.float32(), st.floats(width=32), repr),
    "double": Type("float8", "double", pa.float64(), st.floats(), repr),
    "price": Type("numeric(12,3)", "decimal(12,3)", pa.decimal128(12, 3), decimals(12, 3)),
    "wide": Type("numeric(38,10)", "decimal(38,10)", pa.decimal128(38, 10), decimals(38, 10)),
    "tiny": Type("numeric(2,5)", "decimal(5,5)", pa.decimal128(5, 5), decimals(2, 5)),
    "round": Type(
        "numeric(3,-2)", "decimal(5,0)", pa.decimal128(5, 0), st.integers(-999, 999).map(lambda n: Decimal(n * 100))
    ),
    "free": Type("numeric", "string", pa.string(), decimals(60, 20), lambda n: f"{n:f}", lambda n: f"{n:f}"),
    "too_wide": Type("numeric(50,3)", "string", pa.string(), decimals(50, 3), lambda n: f"{n:f}", lambda n: f"{n:f}"),
    "euro": Type("euro", "decimal(9,2)", pa.decimal128(9, 2), decimals(9, 2)),
    "truth": Type("bool", "boolean", pa.bool_(), st.booleans()),
    "day": Type("date", "date", pa.date32(), DATES, lambda day: day.isoformat()),
    "at": Type("timestamptz", "timestamp", UTC_TIME, AWARE, lambda day: day.isoformat()),
    "wall": Type("timestamp", "timestamp_ntz", WALL_TIME, NAIVE, lambda day: day.isoformat()),
    "clock": Type(
        "time",
        "string",
        pa.string(),
        st.times().map(time.isoformat),
        str,
        lambda text: text.rstrip("0") if "." in text else text,
    ),
    "text": Type("text", "string", pa.string(), TEXTS),
    "name": Type("varchar(20)", "string", pa.string(), TEXTS),
    "padded": Type("char(12)", "string", pa.string(), TEXTS, str, lambda text: text.ljust(12)),
    "bytes": Type("bytea", "binary", pa.binary(), BYTES, hexadecimal),
    "uuid": Type("uuid", "string", pa.string(), st.uuids(), str, str),
    "json": Type("json", "string", pa.string(), st.dictionaries(TEXTS, TEXTS, max_size=2).map(jsonb)),
    "mood": Type("mood", "string", pa.string(), st.sampled_from(["sad", "glad", 'it\'s, "so"'])),
    "bits": Type("bit(4)", "string", pa.string(), st.text("01", min_size=4, max_size=4)),
    "varbits": Type("varbit", "string", pa.string(), st.text("01", max_size=9)),
    "oid": Type("oid", "bigint", pa.int64(), st.integers(0, 2**32 - 1)),
}


def array_of(element: str, depth: int = 1) -> Type:
    """Arrays of a type above, with nulls; all of one length where they are nested, as PostgreSQL has them."""
    of = SCALARS[element]
    values: Strategy = st.lists(st.none() | of.values, max_size=3)
    arrow, spark = pa.list_(of.arrow), f"array<{of.spark}>"
    if depth == 2:
        values = st.lists(st.tuples(*[st.none() | of.values] * 2).map(list), min_size=1, max_size=2)
        arrow, spark = pa.list_(arrow), f"array<{spark}>"
    return Type(of.sql + "[]" * depth, spark, arrow, values, partial(braced, of.written), partial(each, of.stored))


def braced(written: Literal, value: Any) -> str:
    if isinstance(value, list):
        return "{" + ",".join(braced(written, one) for one in value) + "}"
    if value is None:
        return "NULL"
    quoted = written(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def each(stored: Callable[[Any], Any], value: Any) -> Any:
    return [each(stored, one) for one in value] if isinstance(value, list) else None if value is None else stored(value)


ARRAYS = {
    **{f"{name}_list": array_of(name) for name in ("int", "double", "price", "truth", "day", "at", "text", "bytes")},
    **{f"{name}_list": array_of(name) for name in ("real", "free", "wall", "uuid", "mood", "euro", "json")},
    **{f"{name}_table": array_of(name, 2) for name in ("int", "text", "bytes", "at", "price")},
}
TYPES = SCALARS | ARRAYS
HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | one.values for name, one in TYPES.items()}), max_size=3)


@pytest.fixture(scope="module")
def url(database: str) -> str:
    run_sql(
        database,
        """CREATE DOMAIN euro AS numeric(9,2);
           CREATE TYPE mood AS ENUM ('sad', 'glad', 'it''s, "so"')""",
        f"CREATE TABLE orders (n int, {', '.join(f'{name} {one.sql}' for name, one in TYPES.items())})",
    )
    return database


def filled(url: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table with these rows, in their order."""
    with connected(url) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE orders")
        for number, row in enumerate(rows):
            values = [None if row[name] is None else one.written(row[name]) for name, one in TYPES.items()]
            marks = ", ".join(f"%s::{one.sql}" for one in TYPES.values())
            cursor.execute(f"INSERT INTO orders VALUES (%s, {marks})", [number, *values])
        connection.commit()


def expected(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """The values of a column, as they are to be in the file."""
    return [None if row[name] is None else bits(TYPES[name].stored(row[name])) for row in rows]


def bits(value: Any) -> Any:
    """Floats as their bits: -0.0 is not 0.0, and one NaN is like another."""
    if isinstance(value, list):
        return [bits(one) for one in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("d", value)
    return value


@given(ROWS)
@examples(100, HEALTH)
def test_values_arrive_bit_for_bit(url: str, rows: list[dict[str, Any]]) -> None:
    filled(url, rows)
    read_rows = sorted(read(access_of(url)), key=lambda row: row["n"])
    for name in TYPES:
        assert [bits(row[name]) for row in read_rows] == expected(rows, name), name


@pytest.mark.soak
@given(ROWS)
@examples(40, [*HEALTH, HealthCheck.function_scoped_fixture])
def test_values_are_in_files_bit_for_bit(
    url: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    filled(url, rows)
    folder = tmp_path_factory.mktemp("rows") / "out"
    with opened(access_of(url)) as reading, in_utc(), isolated(spark) as child:
        child.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        data = OutputData("target", make_feed(format="parquet"), folder.as_uri())
        write_in_tasks(read_parts(child, reading), reading, data, "primary")
    table = pq.read_table(folder).sort_by("n")
    assert {name: table.schema.field(name).type for name in TYPES} == {name: one.arrow for name, one in TYPES.items()}
    for name in TYPES:
        assert [bits(value) for value in table[name].to_pylist()] == expected(rows, name), name


def test_types_of_feeds(url: str) -> None:
    with opened(access_of(url)) as reading:
        assert {one.name: one.spark_type for one in reading.columns} == {
            "n": "int",
            **{name: one.spark for name, one in TYPES.items()},
        }
