"""PostgreSQL as a datasource: how it is reached, and what is found there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import psycopg2
import pytest
import sqlalchemy

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, datasource_types
from falcon_assets.features.datasources.types.postgresql.connecting import connect, connected, said_of
from falcon_assets.model.datasource import DatasourceThrottle

POSTGRESQL = datasource_types()["postgresql"]


def access(url: str, endpoint: str | None = None, **given: str) -> Access:
    made = sqlalchemy.make_url(url)
    said = made._replace(drivername="postgresql", username=None, password=None).render_as_string().replace("+", "%20")
    login = {"user": made.username or "", "password": made.password or None} | given
    return Access("shop", "postgresql", endpoint or said, DatasourceThrottle(), **login)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shop(database: str) -> Iterator[Access]:
    made = access(database)
    with psycopg2.connect(made.endpoint, user=made.user, password=made.password) as connection:
        with connection.cursor() as cursor:
            cursor.execute("""
                CREATE SCHEMA sales; CREATE DOMAIN sales.euro AS numeric(9,2); CREATE TYPE mood AS ENUM ('sad', 'glad');
                CREATE TABLE sales."Orders" (
                    id bigint PRIMARY KEY, total sales.euro NOT NULL, at timestamptz(3), local timestamp, day date,
                    doc jsonb, key uuid, tags text[], cents numeric, raw bytea, how mood, small smallint, f float4,
                    ids int[], price numeric(50,3), deltas numeric(4,1)[], name varchar(30), gone int, ok boolean);
                ALTER TABLE sales."Orders" DROP COLUMN gone;
                CREATE TABLE customers (id int PRIMARY KEY, name text);
                CREATE VIEW public.names AS SELECT name FROM customers;
                CREATE TABLE parts (day date NOT NULL) PARTITION BY RANGE (day);
                CREATE TABLE parts_2013 PARTITION OF parts FOR VALUES FROM ('2013-01-01') TO ('2014-01-01');
                CREATE TABLE nothing ();
            """)
        connection.commit()
    yield made


def named(access: Access, name: str) -> Dataset:
    (found,) = POSTGRESQL.datasets(access, name)
    return found


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("postgresql://host/shop", None),
        ("postgresql://one:5433,two:5434/shop?target_session_attrs=read-write", None),
        ("postgresql:///shop?host=/run/postgresql", None),
        ("postgres://host/shop", "is not of the form postgresql://HOST:PORT/DATABASE"),
        ("host", "is not of the form postgresql://HOST:PORT/DATABASE"),
        ("postgresql://host", "names no database: write postgresql://HOST:PORT/DATABASE"),
        ("postgresql://me@host/shop", "must not have user: write user and password as credential"),
        ("postgresql://host/shop?passfile=/x", "must not have passfile: write user and password as credential"),
        (
            "postgresql://host/shop?mode=1",
            'is not of the form postgresql://HOST:PORT/DATABASE: invalid URI query parameter: "mode"',
        ),
    ],
)
def test_endpoints(endpoint: str, said: str | None) -> None:
    assert POSTGRESQL.endpoint_problem(endpoint) == said


def test_columns_have_the_types_of_the_source_and_of_feeds(shop: Access) -> None:
    assert [(*column,) for column in named(shop, "sales.Orders").columns] == [
        ("id", "bigint", "bigint", False),
        ("total", "numeric(9,2)", "decimal(9,2)", False),
        ("at", "timestamp(3) with time zone", "timestamp", True),
        ("local", "timestamp without time zone", "timestamp_ntz", True),
        ("day", "date", "date", True),
        ("doc", "jsonb", "string", True),
        ("key", "uuid", "string", True),
        ("tags", "text[]", "array<string>", True),
        ("cents", "numeric", "string", True),
        ("raw", "bytea", "binary", True),
        ("how", "mood", "string", True),
        ("small", "smallint", "smallint", True),
        ("f", "real", "float", True),
        ("ids", "integer[]", "array<int>", True),
        ("price", "numeric(50,3)", "string", True),
        ("deltas", "numeric(4,1)[]", "array<decimal(4,1)>", True),
        ("name", "character varying(30)", "string", True),
        ("ok", "boolean", "boolean", True),
    ]


def test_tables_views_and_partitioned_tables_are_listed_without_the_catalog(shop: Access) -> None:
    listed = {one.name: [column.name for column in one.columns] for one in POSTGRESQL.datasets(shop)}
    assert {"customers", "names", "parts", "sales.Orders", "nothing"} <= set(listed)
    assert (listed["names"], listed["parts"], listed["nothing"]) == (["name"], ["day"], [])
    assert not [one for one in listed if one.startswith(("pg_", "parts_", "information_schema"))]


def test_a_partition_is_found_by_its_name_and_a_visible_table_with_its_schema(shop: Access) -> None:
    assert [column.name for column in named(shop, "parts_2013").columns] == ["day"]
    assert named(shop, "public.customers") == named(shop, "customers")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("custmers", "has no table 'custmers'; there is: customers"),
        ("sales.orders", "has no table 'sales.orders'; there is: sales.Orders"),
        ("Orders", "has no table 'Orders'; there is: sales.Orders"),
    ],
)
def test_an_unknown_table_names_the_nearest(shop: Access, name: str, said: str) -> None:
    with pytest.raises(DatasourceError, match=f"^datasource 'shop' {said}"):
        named(shop, name)


def test_it_is_reached(shop: Access) -> None:
    POSTGRESQL.require_reachable(pickle.loads(pickle.dumps(shop)))


def test_a_closed_port_and_a_missing_database_are_a_sentence(postgres: str) -> None:
    with pytest.raises(DatasourceError) as found:
        POSTGRESQL.require_reachable(access(postgres, "postgresql://127.0.0.1:9/shop", password="hunter-22-x"))
    assert str(found.value).startswith("datasource 'shop' cannot be reached at postgresql://127.0.0.1:9/shop: ")
    assert "refused" in str(found.value)
    assert "\n" not in str(found.value) and "hunter" not in str(found.value)
    nowhere = sqlalchemy.make_url(postgres).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(DatasourceError, match=r'cannot be reached at .*database "nowhere" does not exist$'):
        POSTGRESQL.require_reachable(access(nowhere))


def test_sessions_are_named_and_write_texts_and_times_alike(shop: Access) -> None:
    with connected(shop) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        connection.rollback()  # which takes nothing back
        cursor.execute("""
            SELECT current_setting('application_name'), current_setting('timezone'), current_setting('client_encoding'),
                   current_setting('statement_timeout'), '2013-01-01T00:00:00Z'::timestamptz::text
        """)
        assert cursor.fetchone() == ("falcon shop", "UTC", "UTF8", "30s", "2013-01-01 00:00:00+00")


def test_a_statement_that_takes_too_long_is_ended(shop: Access) -> None:
    with (
        pytest.raises(DatasourceError, match=r"^datasource 'shop': canceling statement due to statement timeout$"),
        connected(shop, seconds=0.05) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(60)")


def test_errors_have_no_rows(shop: Access) -> None:
    connection = connect(shop)
    with pytest.raises(DatasourceError) as found, said_of(shop), connection.cursor() as cursor:
        cursor.execute("INSERT INTO customers VALUES (1, 'Mrs. Gray'), (1, 'Mrs. Gray')")
    connection.close()
    assert "customers_pkey" in str(found.value) and "Gray" not in str(found.value)


def test_an_access_shows_no_secrets(shop: Access) -> None:
    assert "hunter-22-x" not in repr(access("postgresql://host/x", password="hunter-22-x"))
