"""SQLite as a datasource."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.features.datasources.types.sqlite import opened
from falcon_assets.model.datasource import DatasourceThrottle

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
        ("at", "", "binary", True),
        ("raw", "blob", "binary", True),
        ("rate", "double precision", "double", True),
        ("price", "", "binary", True),
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
