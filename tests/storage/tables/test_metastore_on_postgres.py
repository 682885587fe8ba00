"""A Hive Metastore that keeps its tables in PostgreSQL, as those that teams run, does what all catalogs do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, inspect, make_url

from tests.registries import Tables, hive_metastore
from tests.storage.tables.test_catalogs import (
    test_a_partition_has_another_version_once_it_is_another,
    test_a_table_is_what_it_was_made_as,
    test_of_two_that_publish_a_partition_the_slower_one_is_refused,
    test_partitions_are_listed_and_found_by_their_values,
)
from tests.storage.tables.test_refusals import test_partitions_with_odd_names_come_and_go

__all__ = [
    "test_a_partition_has_another_version_once_it_is_another",
    "test_a_table_is_what_it_was_made_as",
    "test_of_two_that_publish_a_partition_the_slower_one_is_refused",
    "test_partitions_are_listed_and_found_by_their_values",
    "test_partitions_with_odd_names_come_and_go",
]
pytestmark = pytest.mark.soak
DRIVER = Path("/usr/share/java/postgresql.jar")


@contextmanager
def on_tcp(url: URL) -> Iterator[URL]:
    """The database by TCP, which is all that JDBC speaks: an embedded server listens at a socket in a folder only."""
    if "host" not in url.query:
        yield url
        return

    def forward(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                target.sendall(part)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, server = listening.accept()[0], socket.socket(socket.AF_UNIX)
                server.connect(f"{url.query['host']}/.s.PGSQL.5432")
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=forward, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        yield url.set(host="127.0.0.1", port=listening.getsockname()[1], query={})
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def endpoint(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert DRIVER.exists(), "install Debian's libpostgresql-jdbc-java"
    with on_tcp(make_url(database)) as url:
        jdbc = f"jdbc:postgresql://{url.host}:{url.port or 5432}/{url.database}?user={url.username}"
        jdbc += f"&password={url.password}" if url.password else ""
        options = ("--database", jdbc, "--driver", str(DRIVER))
        with hive_metastore(tmp_path_factory.mktemp("metastore"), *options) as served:
            yield served


@pytest.fixture
def tables(endpoint: str, tmp_path: Path) -> Tables:
    return Tables(endpoint, tmp_path)


def test_it_is_postgres_that_keeps_them(tables: Tables, database: str) -> None:
    tables.make()
    engine = create_engine(database)
    assert {"TBLS", "PARTITIONS"} <= set(inspect(engine).get_table_names())
    engine.dispose()
