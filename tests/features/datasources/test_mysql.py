"""MySQL as a datasource, on a real MariaDB: how it is reached, and what is found there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.features.datasources.types.mysql.column_types import spark_type
from falcon_assets.features.datasources.types.mysql.connecting import connected
from falcon_assets.model.datasource import DatasourceThrottle
from tests.mariadb_server import MariaDb

MYSQL = datasource_types()["mysql"]
SECRET = "hunter22-of-the-shöp"


@pytest.fixture(scope="module")
def shop(mariadb: MariaDb) -> Iterator[Access]:
    with mariadb.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute(f"CREATE USER pat@'%' IDENTIFIED BY '{SECRET}'")
        cursor.execute("GRANT SELECT, INSERT, CREATE ON shop.* TO pat@'%'")
    with mariadb.cursor("shop") as cursor:
        cursor.execute("""
            CREATE TABLE Orders (
                id bigint unsigned PRIMARY KEY, small tinyint, flag boolean, n int(5) unsigned,
                total decimal(9,2) NOT NULL, many decimal(50,3), at timestamp(6) NULL, local datetime(3), day date,
                clock time, f float, d double, doc json,
                how enum('sad', 'glad'), name varchar(30), raw blob, code binary(4), bits bit(3), born year)
        """)
        cursor.execute("CREATE TABLE customers (id int PRIMARY KEY, name text)")
        cursor.execute("CREATE VIEW names AS SELECT name FROM customers")
    endpoint = f"mysql://127.0.0.1:{mariadb.port}/shop"
    yield Access("shop", "mysql", endpoint, DatasourceThrottle(), "pat", SECRET)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("mysql://host/shop", None),
        ("mysql://host:3307/shop", None),
        ("mysql://[::1]:3307/shop", None),
        ("mariadb://host/shop", "is not of the form mysql://HOST:PORT/DATABASE"),
        ("mysql://host:x/shop", "is not of the form mysql://HOST:PORT/DATABASE"),
        ("mysql://host/shop?ssl=true", "is not of the form mysql://HOST:PORT/DATABASE"),
        ("mysql:///shop", "is not of the form mysql://HOST:PORT/DATABASE"),
        ("mysql://host", "names no database: write mysql://HOST:PORT/DATABASE"),
        ("mysql://host/shop/orders", "names no database: write mysql://HOST:PORT/DATABASE"),
        ("mysql://pat@host/shop", "must not have a user: write it as credential"),
    ],
)
def test_endpoints(endpoint: str, said: str | None) -> None:
    assert MYSQL.endpoint_problem(endpoint) == said


def test_tables_and_views_are_listed_with_their_columns_and_types(shop: Access) -> None:
    listed = {one.name: [(*column,) for column in one.columns] for one in MYSQL.datasets(shop)}
    assert list(listed) == sorted(listed, key=str.lower)
    assert listed["customers"] == [("id", "int(11)", "int", False), ("name", "text", "string", True)]
    assert listed["names"] == [("name", "text", "string", True)]
    assert [(name, kind, empty) for name, _, kind, empty in listed["Orders"]] == [
        ("id", "decimal(20,0)", False),
        ("small", "tinyint", True),
        ("flag", "tinyint", True),
        ("n", "bigint", True),
        ("total", "decimal(9,2)", False),
        ("many", "string", True),
        ("at", "timestamp", True),
        ("local", "timestamp_ntz", True),
        ("day", "date", True),
        ("clock", "string", True),
        ("f", "float", True),
        ("d", "double", True),
        ("doc", "string", True),
        ("how", "string", True),
        ("name", "string", True),
        ("raw", "binary", True),
        ("code", "binary", True),
        ("bits", "binary", True),
        ("born", "smallint", True),
    ]
    assert [*MYSQL.datasets(shop, "customers")] == [one for one in MYSQL.datasets(shop) if one.name == "customers"]


@pytest.mark.parametrize(
    ("column_type", "kind"),
    [("int unsigned", "bigint"), ("bigint(20)", "bigint"), ("decimal(10,0) unsigned zerofill", "decimal(10,0)")],
)
def test_types_as_newer_and_older_servers_write_them(column_type: str, kind: str) -> None:
    assert spark_type(column_type) == kind


def test_an_unknown_table_names_the_nearest(shop: Access) -> None:
    with pytest.raises(DatasourceError, match=r"^datasource 'shop' has no table 'custmers'; there is: customers$"):
        list(MYSQL.datasets(shop, "custmers"))


def test_it_is_reached(shop: Access) -> None:
    MYSQL.require_reachable(pickle.loads(pickle.dumps(shop)))


def test_what_refuses_is_a_sentence_without_secrets(shop: Access) -> None:
    def why(access: Access) -> str:
        with pytest.raises(DatasourceError) as found:
            MYSQL.require_reachable(access)
        assert SECRET not in str(found.value) and "\n" not in str(found.value)
        return str(found.value)

    at = f"datasource 'shop' cannot be reached at {shop.endpoint}: "
    assert why(replace(shop, user="ann")) == f"{at}Access denied for user 'ann'@'127.0.0.1' (using password: YES)"
    assert "using password: NO" in why(replace(shop, password=None))
    assert "Unknown database" in why(replace(shop, endpoint=shop.endpoint.replace("/shop", "/stop"))) or "denied"
    closed = why(replace(shop, endpoint="mysql://127.0.0.1:9/shop"))
    assert closed.startswith("datasource 'shop' cannot be reached at mysql://127.0.0.1:9/shop: ")
    assert "refused" in closed
    assert "No such file" in why(replace(shop, driver={"ssl_ca": "/nowhere/ca.pem"}))
    options = {"connect_timeout": "soon", "ssl_disabled": "maybe"}
    rules = {"connect_timeout": "must be a number of seconds", "ssl_disabled": "must be true or false"}
    for option, value in options.items():
        assert why(replace(shop, driver={option: value})) == f"datasource 'shop': driver.{option} {rules[option]}"


def test_sessions_have_utc_and_whole_unicode(shop: Access, mariadb: MariaDb) -> None:
    with connected(shop) as cursor:
        cursor.execute("SELECT @@time_zone, @@character_set_connection, '🦅'")
        assert cursor.fetchone() == ("+00:00", "utf8mb4", "🦅")


def test_an_answer_that_takes_too_long_is_given_up(shop: Access) -> None:
    with pytest.raises(DatasourceError, match=r"^datasource 'shop': .*timed out"), connected(shop, seconds=1) as cursor:
        cursor.execute("SELECT sleep(60)")


def test_errors_have_no_rows(shop: Access) -> None:
    with pytest.raises(DatasourceError) as found, connected(shop) as cursor:
        cursor.execute("INSERT INTO customers VALUES (71, 'a'), (71, 'b')")
    assert str(found.value) == "datasource 'shop': Duplicate entry for key 'PRIMARY'"
    with pytest.raises(DatasourceError) as found, connected(shop) as cursor:
        cursor.execute("INSERT INTO Orders (id, total, n) VALUES (1, 1, 'Mrs. Gray')")
    assert "column" in str(found.value) and "Gray" not in str(found.value)
