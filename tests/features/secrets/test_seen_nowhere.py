"""After runs on a store with encrypted credentials, neither they nor the key are in a table, file or command line."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
import sqlalchemy as sa

from falcon_assets.catalog.encryption import CUSTOMER_KEYS
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.listener import share_listener
from tests.processes import FALCON, environ_with
from tests.s3_server import lake

pytestmark = pytest.mark.soak

KEY, SECRET = "AKIAHUSHHUSHHUSH0", "hu5h-hush/of+the/lake"


@pytest.fixture
def environ(database: str, tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    share_listener(home)
    made = environ_with(
        FALCON_HOME=str(home),
        FALCON_ENTITY_DEFS=str(tmp_path / "defs"),
        FALCON_DATABASE_URL=database,
        FALCON_CLOCK="2013-01-01T01:00Z",
        FALCON_WEBSERVER_URL="",
        FALCON_MASTER_KEY_FILE=str(tmp_path / "one.key"),
    )
    falcon(made, "secrets", "keygen", str(tmp_path / "one.key"))
    return made


def falcon(environ: dict[str, str], *arguments: str, value: str = "") -> str:
    done = subprocess.run(
        [FALCON, *arguments],
        env=environ,
        cwd=environ["FALCON_HOME"],
        input=value,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """All command lines of this machine, as long as the block runs."""
    found, over = set[bytes](), threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    found.add(file.read_bytes())
                except OSError:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def test_nothing_shows_what_was_encrypted(environ: dict[str, str], s3: str, tmp_path: Path) -> None:
    client = boto3.client("s3", "us-east-1", endpoint_url=s3, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    client.create_bucket(Bucket="lake")
    for name in ("rows/2013-01-01/00", "rows/2013-01-01/01"):
        client.put_object(Bucket="lake", Key=f"data/{name}/a.json", Body=json.dumps({"n": 1}).encode())
        client.put_object(Bucket="lake", Key=f"data/{name}/_SUCCESS")
    said = ""
    with command_lines() as lines:
        options = {}
        for key, value in (("key", KEY), ("secret", SECRET)):
            out = falcon(environ, "secrets", "encrypt", "cluster", "lake", f"storage_options.{key}", value=value)
            options[key] = {"encrypted": out.split('encrypted: "')[1].split('"')[0]}
            said += out
        cluster = {**lake(s3), "storage_options": {**options, "client_kwargs": {"endpoint_url": s3}}}
        spark = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "1"}
        there = on("lake")
        how = {"format": "json", "schema": "n int", "availability_flag": "_SUCCESS", "schedule": True}
        feeds = [feed_yaml(name, there, **how) for name in ("rows", "sums", "bad")]
        good = process_yaml("good", "rows", "sums", there, schedule=True)
        bad = process_yaml("worse", "rows", "bad", there, schedule=True, retry={"policy": "final"})
        bad = bad.replace("a.sql", "b.sql")
        root = tmp_path / "defs"
        (root / "a.yaml").write_text("".join([cluster_yaml(**cluster, properties=spark), *feeds, good, bad]))
        (root / "a.sql").write_text("SELECT sum(n) AS n FROM rows")
        (root / "b.sql").write_text("SELECT raise_error('it broke') AS n FROM rows")
        run = falcon(environ, "run")
        said += run
        for words in (
            ("instance", "list"),
            ("instance", "logs", "good", "2013-01-01T00:00Z"),
            ("instance", "logs", "worse", "2013-01-01T00:00Z"),
            ("instance", "params", "good", "2013-01-01T00:00Z"),
            ("explain", "good", "2013-01-01T00:00Z"),
            ("lineage", "show", "sums", "2013-01-01T00:00Z", "--json"),
            ("entity", "show", "lake", "--json"),
            ("entity", "history", "lake", "--json"),
            ("secrets", "check", "--json"),
            ("doctor", "--only", "secrets", "--only", "stores"),
        ):
            said += falcon(environ, *words)
    listed = [one["Key"] for one in client.list_objects_v2(Bucket="lake", Prefix="data/sums/").get("Contents", [])]
    assert any("2013-01-01/00/part" in one for one in listed), run
    assert "it broke" in said
    master = (tmp_path / "one.key").read_bytes().strip()
    hidden = [KEY.encode(), SECRET.encode(), master]
    assert (root / CUSTOMER_KEYS).exists()
    engine = sa.create_engine(environ["FALCON_DATABASE_URL"])
    with engine.connect() as connection:
        tables = connection.execute(
            sa.text("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname !~ '^(pg|inf)'")
        ).scalars()
        dumped = [
            str(connection.execute(sa.text(f"SELECT coalesce(string_agg(t::text, chr(10)), '') FROM {one} t")).scalar())
            for one in tables
        ]
    engine.dispose()
    assert len(dumped) > 20 and any("worse" in one for one in dumped)
    places = {"tables": "\n".join(dumped).encode(), "output": said.encode(), "command lines": b"\n".join(lines)}
    for file in Path(environ["FALCON_HOME"]).rglob("*"):
        if file.is_file():
            places[str(file)] = file.read_bytes()
    found = [(place, one) for place, content in places.items() for one in hidden if one in content]
    assert found == []
