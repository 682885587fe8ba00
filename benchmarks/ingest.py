"""Ingest of a table of PostgreSQL into Parquet, side by side with Spark's JDBC reader and with psql's ``\\copy``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg2

from benchmarks.ingest_sides import JAR, ROUNDS
from benchmarks.measure import Line
from tests.features.transfers.source import endpoint_of
from tests.features.transfers.source_server import SourceServer, source_server

ROWS = 3_000_000
JDBC_BAR, COPY_BAR = 0.83, 2.0
"""1.2 times the rate of Spark's reader, and half of that of ``\\copy``."""
_COLUMNS = {
    "id bigint PRIMARY KEY": "n",
    "customer int": "n % 100000",
    "kind smallint": "n % 7",
    "price numeric(12,2)": "n % 1000000 / 100.0",
    "tax numeric(20,6)": "n / 7.0",
    "weight double precision": "sqrt(n)",
    "is_paid boolean": "n % 3 = 0",
    "day date": "'2020-01-01'::date + n % 1000",
    "ordered_at timestamptz": "'2020-01-01'::timestamptz + n * interval '1 second'",
    "changed_at timestamp": "CASE WHEN n % 5 > 0 THEN '2020-01-01'::timestamp + n * interval '7 ms' END",
    "token uuid": "md5(n::text)::uuid",
    "name varchar(40)": "'customer ' || n % 100000",
    "note text": "CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'said \"yes\", and more of it ' || n END",
    "state text": "(ARRAY['new','paid','sent'])[1 + n % 3]",
    "details jsonb": "jsonb_build_object('n', n, 'tags', ARRAY['a', 'b'])",
}


def measure() -> list[Line]:
    """All sides in turn, in one session of Spark with two cores, and the files of the first two compared."""
    if not JAR.is_file():
        raise SystemExit(f"{JAR} is missing: install Debian's libpostgresql-jdbc-java")
    with (
        tempfile.TemporaryDirectory() as folder,
        source_server(Path(folder), shared_buffers="256MB", max_wal_size="8GB") as server,
    ):
        _fill(server)
        command = [sys.executable, "-m", "benchmarks.ingest_sides", server.url, folder, str(server.programs), str(ROWS)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"benchmarks.ingest_sides failed:\n{done.stderr[-4000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    ours, what = tuple(found["falcon"]), f"ingest {ROWS:,} rows of {len(_COLUMNS)} columns into Parquet"
    assert len(ours) == ROUNDS
    return [
        Line(f"{what}, against Spark's JDBC reader", ours, tuple(found["jdbc"]), JDBC_BAR),
        Line("  against psql's \\copy into a file of CSV", ours, tuple(found["copy"]), COPY_BAR),
    ]


def _fill(server: SourceServer) -> None:
    with psycopg2.connect(endpoint_of(server.url), user="postgres") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE orders ({', '.join(_COLUMNS)})")
        cursor.execute(
            f"INSERT INTO orders SELECT {', '.join(_COLUMNS.values())} FROM generate_series(1, {ROWS}) AS numbers(n)"
        )
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE orders")
    connection.close()
