"""Every value of the types of MySQL arrives there as it is, and comes back bit for bit; PyMySQL reads it, too."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.datasources.deliveries import deliver, request
from tests.features.transfers.source import asked
from tests.mariadb_server import MariaDb
from tests.properties import examples

MYSQL = datasource_types()["mysql"]
TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["'", "''", "\\", "\\'", "\0", "NULL", " x"]
)
UTC_TIME, WALL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")


def whole(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda one: Decimal(f"{one}E-{scale}"))


def floats(width: Literal[32, 64]) -> st.SearchStrategy[float]:
    """Those that the server has: it makes 0.0 of -0.0."""
    return st.floats(width=width, allow_nan=False, allow_infinity=False).map(lambda one: one + 0.0)


def clock(value: timedelta) -> str:
    seconds = abs(value) // timedelta(seconds=1)
    fraction = abs(value) % timedelta(seconds=1) // timedelta(milliseconds=1)
    sign = "-" if value < timedelta() and (seconds or fraction) else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:03}"


class Kind(NamedTuple):
    """A type of MySQL, what an import makes of it, and its values; ``read`` is the SQL that PyMySQL reads them by."""

    mysql: str
    spark: str
    arrow: pa.DataType
    values: st.SearchStrategy[Any]
    read: str = "{}"
    found: Callable[[Any], Any] = lambda value: value


ADDRESSES = st.lists(whole(1, 0xFFFF), min_size=8, max_size=8).map(
    lambda groups: ":".join(f"{one:x}" for one in groups)
)
MOST_TIME = timedelta(hours=838, minutes=59, seconds=58)
NAIVE = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
STAMPS = st.datetimes(datetime(1970, 1, 2), datetime(2038, 1, 18), timezones=st.just(UTC))
KINDS = {
    "tiny": Kind("tinyint", "tinyint", pa.int8(), whole(-(2**7), 2**7 - 1)),
    "flag": Kind("boolean", "tinyint", pa.int8(), whole(0, 1)),
    "tiny_u": Kind("tinyint unsigned", "smallint", pa.int16(), whole(0, 2**8 - 1)),
    "small": Kind("smallint", "smallint", pa.int16(), whole(-(2**15), 2**15 - 1)),
    "small_u": Kind("smallint unsigned", "int", pa.int32(), whole(0, 2**16 - 1)),
    "medium": Kind("mediumint", "int", pa.int32(), whole(-(2**23), 2**23 - 1)),
    "normal": Kind("int", "int", pa.int32(), whole(-(2**31), 2**31 - 1)),
    "normal_u": Kind("int unsigned", "bigint", pa.int64(), whole(0, 2**32 - 1)),
    "big": Kind("bigint", "bigint", pa.int64(), whole(-(2**63), 2**63 - 1)),
    "big_u": Kind("bigint unsigned", "decimal(20,0)", pa.decimal128(20, 0), whole(0, 2**64 - 1).map(Decimal)),
    "price": Kind("decimal(9,2)", "decimal(9,2)", pa.decimal128(9, 2), decimals(9, 2)),
    "wide": Kind("decimal(38,10)", "decimal(38,10)", pa.decimal128(38, 10), decimals(38, 10)),
    "too_wide": Kind(
        "decimal(50,3)", "string", pa.string(), decimals(50, 3).map(lambda one: f"{one:f}"), "CAST({} AS CHAR)"
    ),
    "single": Kind("float", "float", pa.float32(), floats(32), "{}+0e0"),
    "double_": Kind("double", "double", pa.float64(), floats(64)),
    "day": Kind("date", "date", pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "wall": Kind("datetime(6)", "timestamp_ntz", WALL_TIME, NAIVE),
    "seconds": Kind("datetime", "timestamp_ntz", WALL_TIME, NAIVE.map(lambda one: one.replace(microsecond=0))),
    "at": Kind("timestamp(6) NULL", "timestamp", UTC_TIME, STAMPS, "{}", lambda one: one.replace(tzinfo=UTC)),
    "born": Kind("year", "smallint", pa.int16(), whole(1901, 2155) | st.just(0)),
    "clock": Kind(
        "time(3)", "string", pa.string(), st.timedeltas(-MOST_TIME, MOST_TIME).map(clock), "CAST({} AS CHAR)"
    ),
    "padded": Kind("char(12)", "string", pa.string(), TEXT.filter(lambda one: not one.endswith(" "))),
    "name": Kind("varchar(12)", "string", pa.string(), TEXT),
    "tiny_text": Kind("tinytext", "string", pa.string(), TEXT),
    "text_": Kind("longtext", "string", pa.string(), TEXT),
    "mood": Kind("enum('sad', 'it''s', '1')", "string", pa.string(), st.sampled_from(["sad", "it's", "1"])),
    "tags": Kind("set('a', 'b', 'c')", "string", pa.string(), st.sampled_from(["", "a", "b,c", "a,c", "a,b,c"])),
    "doc": Kind("json", "string", pa.string(), st.dictionaries(TEXT, st.none() | TEXT, max_size=2).map(json.dumps)),
    "uuid_": Kind("uuid", "string", pa.string(), st.uuids(version=4).map(str)),
    "ip": Kind("inet6", "string", pa.string(), ADDRESSES, "CAST({} AS CHAR)"),
    "fixed": Kind("binary(3)", "binary", pa.binary(), st.binary(min_size=3, max_size=3)),
    "some": Kind("varbinary(12)", "binary", pa.binary(), st.binary(max_size=12)),
    "raw": Kind("longblob", "binary", pa.binary(), st.binary(max_size=12) | st.just(b"'\\'\0\xff''")),
    "bits": Kind("bit(10)", "binary", pa.binary(), whole(0, 1023).map(lambda one: one.to_bytes(2, "big"))),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | one.values for name, one in KINDS.items()}), max_size=4)


@pytest.fixture(scope="module")
def there(mariadb: MariaDb) -> Iterator[Access]:
    with mariadb.cursor() as cursor:
        cursor.execute("CREATE DATABASE written CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    with mariadb.cursor("written") as cursor:
        columns = ", ".join(f"{name} {one.mysql}" for name, one in KINDS.items())
        cursor.execute(f"CREATE TABLE kinds (n int, {columns})")
    yield Access("shop", "mysql", f"mysql://127.0.0.1:{mariadb.port}/written", DatasourceThrottle(), "root")


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = [pa.array([row[name] for row in rows], one.arrow) for name, one in KINDS.items()]
    return pa.RecordBatch.from_arrays([pa.array(range(len(rows)), pa.int32()), *columns], ["n", *KINDS])


def bits(value: Any) -> Any:
    """Floats as their bits."""
    return struct.pack(">d", value) if isinstance(value, float) else value


executions = count()


@given(ROWS)
@examples(60, [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large])
def test_values_arrive_as_they_are_and_come_back(there: Access, mariadb: MariaDb, rows: list[dict[str, Any]]) -> None:
    types = [("n", "int"), *((name, one.spark) for name, one in KINDS.items())]
    given_rows = batch_of(rows)
    deliver(there, request(types, execution=f"{next(executions)}", table="kinds", load="replace"), given_rows)
    with mariadb.cursor("written") as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        read = ", ".join(one.read.format(name) for name, one in KINDS.items())
        cursor.execute(f"SELECT {read} FROM kinds ORDER BY n")
        found = [dict(zip(KINDS, row, strict=True)) for row in cursor.fetchall()]
    with MYSQL.open_reading(there, asked(1, source={"name": "shop", "table": "kinds"})) as reading:
        assert {one.name: one.spark_type for one in reading.columns} == dict(types)
        back = [row for part in reading.parts for batch in part.batches() for row in batch.to_pylist()]
    back.sort(key=lambda row: int(row["n"]))
    for name, kind in KINDS.items():
        wanted = [bits(one) for one in given_rows.column(name).to_pylist()]
        assert [bits(None if row[name] is None else kind.found(row[name])) for row in found] == wanted, name
        assert [bits(row[name]) for row in back] == wanted, name


REFUSED: list[tuple[str, str, pa.Array, str]] = [
    ("tinyint unsigned", "smallint", pa.array([-1], pa.int16()), "Out of range value for column 'value'"),
    ("varchar(3)", "string", pa.array(["ab  "]), "column value: varchar(3) does not have all of its values"),
    ("varchar(3)", "string", pa.array(["abcd"]), "column value: varchar(3) does not have all of its values"),
    ("char(3)", "string", pa.array(["a "]), "column value: char(3) does not have all of its values"),
    ("tinytext", "string", pa.array(["é" * 128]), "column value: tinytext does not have all of its values"),
    ("decimal(50,2)", "string", pa.array(["1.239"]), "column value: decimal(50,2) does not have all of its values"),
    (
        "datetime(3)",
        "timestamp_ntz",
        pa.array([datetime(2013, 1, 1, 0, 0, 0, 1)], WALL_TIME),
        "column value: datetime(3)",
    ),
    ("timestamp", "timestamp", pa.array([datetime(2040, 1, 1, tzinfo=UTC)], UTC_TIME), "Incorrect datetime value"),
    ("year", "smallint", pa.array([70], pa.int16()), "column value: year(4) does not have all of its values"),
    ("time", "string", pa.array(["01:02:03.5"]), "column value: time does not have all of its values"),
    ("enum('sad','1')", "string", pa.array(["SAD"]), "column value: enum('sad','1') does not have all of its values"),
    ("set('a','b')", "string", pa.array(["b,a"]), "column value: set('a','b') does not have all of its values"),
    ("binary(3)", "binary", pa.array([b"ab"]), "column value: binary(3) does not have all of its values"),
    ("double", "double", pa.array([math.nan]), "column value has NaN or infinity, which the database cannot hold"),
    ("float", "float", pa.array([math.inf], pa.float32()), "column value has NaN or infinity"),
    ("varchar(9) CHARACTER SET latin1", "string", pa.array(["🦅"]), "Incorrect string value"),
    ("int NOT NULL", "int", pa.array([None], pa.int32()), "column value must not be null, and is"),
    ("json", "string", pa.array(["{"]), "CONSTRAINT `refused.value` failed"),
]


@pytest.mark.parametrize(("mysql", "spark", "values", "said"), REFUSED, ids=lambda one: str(one)[:20])
def test_a_value_that_would_be_changed_is_refused(
    there: Access, mariadb: MariaDb, mysql: str, spark: str, values: pa.Array, said: str
) -> None:
    with mariadb.cursor("written") as cursor:
        cursor.execute(f"CREATE OR REPLACE TABLE refused (value {mysql})")
        batch = pa.RecordBatch.from_arrays([values], ["value"])
        wanted = request([("value", spark)], execution=f"{next(executions)}", table="refused", load="replace")
        with pytest.raises(DatasourceError) as found:
            deliver(there, wanted, batch)
        assert str(found.value).startswith("datasource 'shop': ") and said in str(found.value)
        cursor.execute("SELECT count(*) FROM refused")
        assert cursor.fetchone() == (0,)


def test_the_largest_floats_arrive(there: Access, mariadb: MariaDb) -> None:
    """Their shortest text, 3.4028235e38, is more than the server's FLOAT can be."""
    values = [3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45]
    batch = pa.RecordBatch.from_arrays([pa.array(values, pa.float32())], ["value"])
    with mariadb.cursor("written") as cursor:
        cursor.execute("CREATE OR REPLACE TABLE largest (value float)")
        wanted = request([("value", "float")], execution=f"{next(executions)}", table="largest", load="replace")
        assert deliver(there, wanted, batch) == 3
        cursor.execute("SELECT value + 0e0 FROM largest")
        assert sorted(value for (value,) in cursor.fetchall()) == sorted(values)


def test_many_rows_are_cut_into_statements_that_the_server_takes(there: Access, mariadb: MariaDb) -> None:
    with mariadb.cursor("written") as cursor:
        cursor.execute("CREATE TABLE large (n int, value longtext)")
        texts = [letter * size for letter, size in zip("abcdefghij", [1, 3 << 20, 5, 1 << 19, 7] * 2, strict=True)]
        batch = pa.RecordBatch.from_arrays([pa.array(range(10), pa.int32()), pa.array(texts)], ["n", "value"])
        wanted = request([("n", "int"), ("value", "string")], execution="large", table="large", load="replace")
        assert deliver(there, wanted, batch, batch) == 20
        cursor.execute("SELECT left(value, 1), length(value) FROM large ORDER BY n")
        assert [*cursor.fetchall()] == [(text[0], len(text)) for text in texts for _ in range(2)]
