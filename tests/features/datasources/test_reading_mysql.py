"""Tables and queries of a real MariaDB are read as they are: values of all types, parts, and what was changed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import SourceReading, datasource_types
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.transfers.source import asked
from tests.mariadb_server import MariaDb

MYSQL = datasource_types()["mysql"]
ROWS = 5_000
LAST = datetime(2013, 5, 1, 12, 30, 15, 123456)
EACH_KIND: dict[str, tuple[str, str, list[tuple[str, Any]]]] = {
    "tinyint": ("tinyint", "tinyint", [("-128", -128), ("127", 127)]),
    "boolean": ("boolean", "tinyint", [("true", 1)]),
    "tinyint_unsigned": ("tinyint unsigned", "smallint", [("255", 255)]),
    "smallint": ("smallint", "smallint", [("-32768", -32768)]),
    "smallint_unsigned": ("smallint unsigned", "int", [("65535", 65535)]),
    "mediumint": ("mediumint unsigned", "int", [("16777215", 16777215)]),
    "int": ("int", "int", [("-2147483648", -(2**31))]),
    "int_unsigned": ("int unsigned", "bigint", [("4294967295", 2**32 - 1)]),
    "bigint": ("bigint", "bigint", [("-9223372036854775808", -(2**63))]),
    "bigint_unsigned": ("bigint unsigned", "decimal(20,0)", [("18446744073709551615", Decimal(2**64 - 1))]),
    "decimal": ("decimal(9,2)", "decimal(9,2)", [("-1234567.89", Decimal("-1234567.89"))]),
    "decimal_unsigned": ("decimal(38,10) unsigned", "decimal(38,10)", [("0.0000000001", Decimal("0.0000000001"))]),
    "decimal_of_many_digits": ("decimal(50,3)", "string", [("1" * 47 + ".125", "1" * 47 + ".125")]),
    "float": ("float", "float", [("16777217", 16777216.0), ("1.1", 1.100000023841858)]),
    "double": ("double", "double", [("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308)]),
    "date": ("date", "date", [("'1000-01-01'", date(1000, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    "datetime": ("datetime(6)", "timestamp_ntz", [("'2013-05-01 12:30:15.123456'", LAST)]),
    "timestamp": ("timestamp(6) NULL", "timestamp", [("'2013-05-01 12:30:15.123456'", LAST.replace(tzinfo=UTC))]),
    "time": ("time(3)", "string", [("'-838:59:59'", "-838:59:59.000"), ("'1:2:3.5'", "01:02:03.500")]),
    "year": ("year", "smallint", [("2155", 2155), ("0", 0)]),
    "char": ("char(4)", "string", [("'ab'", "ab"), ("''", "")]),
    "varchar": ("varchar(9)", "string", [("'🦅 ü'", "🦅 ü")]),
    "text": ("longtext", "string", [("'a\\n\\\\N\\t,'", "a\n\\N\t,")]),
    "enum": ("enum('sad', 'glad')", "string", [("'glad'", "glad")]),
    "set": ("set('a', 'b')", "string", [("'a,b'", "a,b")]),
    "json": ("json", "string", [("'{\"a\": [1, null]}'", '{"a": [1, null]}')]),
    "uuid": ("uuid", "string", [("'123e4567-e89b-12d3-a456-426614174000'", "123e4567-e89b-12d3-a456-426614174000")]),
    "inet6": ("inet6", "string", [("'::1'", "::1")]),
    "binary": ("binary(3)", "binary", [("x'00ff'", b"\x00\xff\x00")]),
    "blob": ("blob", "binary", [("x'00ff0a'", b"\x00\xff\n"), ("''", b"")]),
    "bit": ("bit(10)", "binary", [("b'1000000001'", b"\x02\x01")]),
}


@pytest.fixture(scope="module")
def shop(mariadb: MariaDb) -> Iterator[Access]:
    with mariadb.cursor() as cursor:
        cursor.execute("CREATE DATABASE sources CHARACTER SET utf8mb4")
    with mariadb.cursor("sources") as cursor:
        cursor.execute("CREATE TABLE orders (id int PRIMARY KEY, text varchar(9))")
        cursor.execute(f"INSERT INTO orders SELECT seq, concat('n', seq) FROM seq_1_to_{ROWS}")
        cursor.execute("CREATE TABLE gaps (id bigint, part int, PRIMARY KEY (id, part))")
        cursor.execute("INSERT INTO gaps SELECT seq, nullif(seq % 3, 5) FROM seq_1_to_9")
        cursor.execute("CREATE TABLE changes (id int PRIMARY KEY, changed timestamp(6))")
    endpoint = f"mysql://127.0.0.1:{mariadb.port}/sources"
    yield Access("shop", "mysql", endpoint, DatasourceThrottle(), "root")


def rows_of(reading: SourceReading) -> list[dict[str, Any]]:
    """As workers read them."""
    parts = [pickle.loads(pickle.dumps(one)) for one in reading.parts]
    return [row for part in parts for batch in part.batches() for row in batch.to_pylist()]


def read(access: Access, parts: int = 3, **declared: Any) -> list[dict[str, Any]]:
    with MYSQL.open_reading(access, asked(parts, **declared)) as reading:
        return rows_of(reading)


def of_table(name: str, **more: Any) -> dict[str, Any]:
    return {"source": {"name": "shop", "table": name}, **more}


def of_query(text: str, **more: Any) -> dict[str, Any]:
    return {"source": {"name": "shop", "query": text}, **more}


@pytest.mark.parametrize("kind", EACH_KIND)
def test_values_of_each_type_arrive_as_they_are(shop: Access, mariadb: MariaDb, kind: str) -> None:
    column_type, spark_type, values = EACH_KIND[kind]
    with mariadb.cursor("sources") as cursor:
        cursor.execute(f"CREATE TABLE of_{kind} (number int PRIMARY KEY, `it``s` {column_type})")
        literals = [*(literal for literal, _ in values), "NULL"]
        rows = ", ".join(f"({number}, {literal})" for number, literal in enumerate(literals))
        cursor.execute(f"INSERT INTO of_{kind} VALUES {rows}")
    wanted = [*(value for _, value in values), None]
    for declared in (of_table(f"of_{kind}"), of_query(f"SELECT * FROM of_{kind}")):
        with MYSQL.open_reading(shop, asked(1, **declared)) as reading:
            found = {row["number"]: row["it`s"] for row in rows_of(reading)}
            assert [found[number] for number in range(len(wanted))] == wanted
            is_known = "table" in declared["source"] or kind not in ("decimal_of_many_digits", "time")
            assert not is_known or reading.columns[1].spark_type == spark_type


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_parts_are_ranges_of_the_primary_key_and_each_row_is_in_one(shop: Access, parts: int) -> None:
    with MYSQL.open_reading(shop, asked(parts)) as reading:
        assert len(reading.parts) == parts
        each = [sum(batch.num_rows for batch in part.batches()) for part in reading.parts]
        assert sorted(row["id"] for row in rows_of(reading)) == [*range(1, ROWS + 1)]
    assert min(each) >= ROWS // parts - 1


def test_other_keys_are_read_in_one_part_unless_a_column_is_given(shop: Access) -> None:
    with MYSQL.open_reading(shop, asked(4, **of_table("gaps"))) as reading:
        assert len(reading.parts) == 1
    with MYSQL.open_reading(shop, asked(4, **of_table("gaps", partition_by="part"))) as reading:
        assert len(reading.parts) == 3
        assert len(rows_of(reading)) == 9
    query = "SELECT id, nullif(id, 7) AS n FROM gaps"
    assert len(read(shop, **of_query(query, partition_by="n"))) == 9  # nulls, too
    with MYSQL.open_reading(replace(shop, throttle=DatasourceThrottle(connections=1)), asked(4)) as reading:
        assert len(reading.parts) == 1
    assert read(shop, **of_query("SELECT * FROM gaps WHERE id > 100", partition_by="id")) == []


def test_queries_have_the_times_of_the_instance(shop: Access) -> None:
    query = "SELECT :start AS first, CAST(:end AS CHAR) AS last, ':start' AS text -- :end\n;"
    assert read(shop, **of_query(query)) == [
        {"first": datetime(2013, 1, 1, 1), "last": "2013-01-01 02:00:00", "text": ":start"}
    ]


def test_columns_are_chosen(shop: Access) -> None:
    assert read(shop, 1, fields={"include": ["text"]})[0].keys() == {"text"}
    assert read(shop, 1, fields={"exclude": ["text"]})[0].keys() == {"id"}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no table": (of_table("order"), "datasource 'shop' has no table 'order'; there is: orders"),
    "no column": ({"fields": {"include": ["ident"]}}, "orders of shop has no column 'ident'; there is: "),
    "no column to divide by": ({"partition_by": "no"}, "orders of shop has no column 'no'; there is: "),
    "a text to divide by": (
        {"partition_by": "text"},
        r"orders of shop: partition_by needs numbers, and 'text' is varchar\(9\)",
    ),
    "a query that is none": (of_query("SELECT * FORM orders"), "datasource 'shop': You have an error in your SQL"),
    "two statements": (of_query("SELECT 1; DROP TABLE orders"), "the query must be a single statement"),
    "changes without overlap": (
        {"extract": {"incremental": {"column": "id"}}},
        "orders of shop: MySQL does not show which transactions wrote a row",
    ),
    "no time to go back": (
        {
            "extract": {"incremental": {"column": "id", "overlap": "hours(1)"}},
            "merge": {"upsert": {"key": ["id"]}},
        },
        "orders of shop: column 'id' is int: overlap is a length of time, so it has to be a time",
    ),
}


@pytest.mark.parametrize(("declared", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_a_sentence(shop: Access, declared: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasourceError, match=f"^{message}"):
        read(shop, **declared)


def test_a_value_that_is_no_date_is_named(shop: Access, mariadb: MariaDb) -> None:
    with mariadb.cursor("sources") as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("CREATE TABLE zero (day date)")
        cursor.execute("INSERT INTO zero VALUES ('2013-01-01'), ('0000-00-00')")
    with pytest.raises(DatasourceError) as found:
        read(shop, **of_table("zero"))
    rest = "leave the column out (fields), or read a query that makes something else of it"
    what = "has '0000-00-00', which no date of a feed can be"
    assert str(found.value) == f"zero of shop: column day (date) {what}: {rest}"
    assert read(shop, **of_query("SELECT nullif(day, 0) AS day FROM zero")) == [
        {"day": date(2013, 1, 1)},
        {"day": None},
    ]


def test_changes_are_read_from_the_newest_value_less_the_overlap(shop: Access, mariadb: MariaDb) -> None:
    declared = of_table(
        "changes",
        extract={"incremental": {"column": "changed", "overlap": "minutes(10)"}},
        merge={"upsert": {"key": ["id"]}},
    )

    def opened(low: str | None = None, upto: str | None = None) -> tuple[list[int], str | None]:
        with MYSQL.open_reading(shop, asked(2, low, upto, **declared)) as reading:
            return sorted(row["id"] for row in rows_of(reading)), reading.high

    assert opened() == ([], None)
    with mariadb.cursor("sources") as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        times = "(1, '2013-01-01 00:00:00'), (2, '2013-01-01 01:00:00.5'), (3, '2037-01-01 00:00:00')"
        cursor.execute(f"INSERT INTO changes VALUES {times}")
        cursor.execute("DELETE FROM changes WHERE id = 3")
        first, high = opened()
        assert (first, high) == ([1, 2], "2013-01-01 01:00:00.500000")
        cursor.execute("INSERT INTO changes VALUES (4, '2013-01-01 00:50:00.5'), (5, '2013-01-01 00:50:00.4')")
        assert opened(high)[0] == [2, 4]
        cursor.execute("INSERT INTO changes VALUES (6, '2013-01-01 03:00:00')")
        assert opened(high, "2013-01-01 02:00:00") == ([2, 4], "2013-01-01 02:00:00")
        cursor.execute("INSERT INTO changes VALUES (7, '2037-01-01 00:00:00')")
        assert str(opened(high)[1]) < "2037"  # what is written until then comes later


def test_a_reader_that_stops_early_leaves_nothing_behind(shop: Access, mariadb: MariaDb) -> None:
    with MYSQL.open_reading(shop, asked(1)) as reading:
        batches = reading.parts[0].batches()
        next(batches)
        batches.close()  # type: ignore[attr-defined]
    with mariadb.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM information_schema.processlist WHERE db = 'sources'")
        assert cursor.fetchone() == (0,)
