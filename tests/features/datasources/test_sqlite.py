"""SQLite as a datasource."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.features.datasources.types.sqlite.tables import opened
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.transfers.source import asked

SQLITE = datasource_types()["sqlite"]


@pytest.fixture
def shop(tmp_path: Path) -> Access:
    with closing(sqlite3.connect(tmp_path / "shop 1?.db")) as connection:
        connection.executescript("""
            CREATE TABLE orders (id INTEGER PRIMARY KEY, total DECIMAL(9,2) NOT NULL, name VARCHAR(9), at, raw BLOB,
                                 rate DOUBLE PRECISION, price AS (total * 2));
            CREATE VIEW names AS SELECT name FROM orders;
        """)
    return Access("shop", "sqlite", "sqlite:shop 1?.db", DatasourceThrottle(), home=tmp_path)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("sqlite:shop.db", None),
        ("sqlite:/data/shop.db", None),
        ("sqlite:///data/shop.db", "is not of the form sqlite:PATH, with an absolute path, or one below FALCON_HOME"),
        ("/data/shop.db", "is not of the form sqlite:PATH, with an absolute path, or one below FALCON_HOME"),
        ("sqlite:../shop.db", "must be an absolute path, or one below FALCON_HOME"),
        ("sqlite:~/shop.db", "must be an absolute path, or one below FALCON_HOME"),
    ],
)
def test_endpoints(endpoint: str, said: str | None) -> None:
    assert SQLITE.endpoint_problem(endpoint) == said


def test_tables_and_views_are_listed_with_their_columns_and_types(shop: Access) -> None:
    names, orders = SQLITE.datasets(shop)
    assert (names.name, [(*one,) for one in names.columns]) == ("names", [("name", "varchar(9)", "string", True)])
    assert [(*one,) for one in orders.columns] == [
        ("id", "integer", "bigint", True),
        ("total", "decimal(9,2)", "string", False),
        ("name", "varchar(9)", "string", True),
        ("at", "", "string", True),
        ("raw", "blob", "binary", True),
        ("rate", "double precision", "double", True),
        ("price", "", "string", True),
    ]
    assert list(SQLITE.datasets(shop, "orders")) == [orders]


def test_what_is_not_there_is_a_sentence_and_nothing_is_made(shop: Access, tmp_path: Path) -> None:
    with pytest.raises(DatasourceError, match=r"^datasource 'shop' has no table 'order'; there is: orders$"):
        list(SQLITE.datasets(shop, "order"))
    with pytest.raises(DatasourceError, match=f"^datasource 'shop': there is no file {tmp_path}/other.db$"):
        SQLITE.require_reachable(replace(shop, endpoint="sqlite:other.db"))
    assert not (tmp_path / "other.db").exists()
    (tmp_path / "text.db").write_text("no database, but a text that is long enough for its head" * 20)
    with pytest.raises(DatasourceError, match=f"^datasource 'shop': {tmp_path}/text.db: file is not a database$"):
        SQLITE.require_reachable(replace(shop, endpoint=f"sqlite:{tmp_path}/text.db"))


def test_it_is_only_read(shop: Access) -> None:
    SQLITE.require_reachable(shop)
    with pytest.raises(DatasourceError, match=r"readonly database$"), opened(shop) as connection:
        connection.execute("DELETE FROM orders")


def read(access: Access, **declared: Any) -> list[dict[str, Any]]:
    with SQLITE.open_reading(access, asked(4, **declared)) as reading:
        parts = [pickle.loads(pickle.dumps(one)) for one in reading.parts]
    return [row for part in parts for batch in part.batches() for row in batch.to_pylist()]


def write(access: Access, *statements: str) -> None:
    with closing(sqlite3.connect(access.home / "shop 1?.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_rows_are_read_as_they_are(shop: Access) -> None:
    write(shop, "INSERT INTO orders (total, name, at, raw, rate) VALUES (2.50, 'ü', 7, x'00ff', 0.1)")
    write(shop, "INSERT INTO orders (total, name, at, raw, rate) VALUES (3, NULL, NULL, 'text', 1)")
    first = {"id": 1, "total": "2.5", "name": "ü", "at": "7", "raw": b"\x00\xff", "rate": 0.1, "price": "5.0"}
    second = {"id": 2, "total": "3", "name": None, "at": None, "raw": b"text", "rate": 1.0, "price": "6"}
    assert read(shop) == [first, second]
    assert read(shop, fields={"include": ["rate", "id"]}) == [{"rate": 0.1, "id": 1}, {"rate": 1.0, "id": 2}]
    assert read(shop, source={"name": "shop", "table": "names"}) == [{"name": "ü"}, {"name": None}]
    query = "SELECT :start AS first, count(*) AS n FROM orders"
    assert read(shop, source={"name": "shop", "query": query}) == [{"first": "2013-01-01 01:00:00", "n": "2"}]


def test_a_value_of_another_type_is_named(shop: Access) -> None:
    write(shop, "CREATE TABLE odd (n INTEGER)", "INSERT INTO odd VALUES (1), (1.5)")
    with pytest.raises(DatasourceError, match=r"^odd of shop: column n \(integer\) has '1.5', which no bigint"):
        read(shop, source={"name": "shop", "table": "odd"})
    write(shop, "UPDATE odd SET n = 'many' WHERE n > 1")
    with pytest.raises(DatasourceError, match=r"^odd of shop: column n \(integer\) has 'many', which no bigint"):
        read(shop, source={"name": "shop", "table": "odd"})


def test_what_cannot_be_read_is_a_sentence(shop: Access) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"source": {"name": "shop", "table": "order"}}, "^datasource 'shop' has no table 'order'; there is: orders$"),
        ({"source": {"name": "shop", "query": "SELECT FORM x"}}, "^datasource 'shop': .*no such column: FORM"),
        ({"fields": {"include": ["ident"]}}, "^orders of shop has no column 'ident'; there is: id"),
        ({"extract": {"incremental": {"column": "at"}}}, "^orders of shop: SQLite does not tell what was changed"),
    ]
    for declared, message in wrong:
        with pytest.raises(DatasourceError, match=message):
            read(shop, **declared)
