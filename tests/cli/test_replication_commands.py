"""``falcon run`` replicates between files, HDFS and S3; clients of their own write, change and read what is there."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet
import pytest
import requests
import yaml

from tests.hdfs_server import Hdfs, on_hdfs
from tests.listener import share_listener
from tests.processes import FALCON, environ_with
from tests.s3_server import ENVIRON, KEY, SECRET, lake, s3_server

pytestmark = pytest.mark.soak
LARGE = 3_000_000
"""Rows that are more than what is copied without Spark."""
VALIDITY = {"start": "2013-01-01T00:00Z", "end": "2013-01-01T03:00Z"}
WAYS = [("files", "hadoop"), ("hadoop", "lake"), ("lake", "hadoop")]


@dataclass
class Places:
    """What an installation replicates between, as its neighbours see it: each has a folder for each feed and hour."""

    hdfs: Hdfs
    s3: Any
    environ: dict[str, str]

    def put(self, place: str, feed: str, hour: int, files: dict[str, bytes]) -> None:
        for name, content in {**files, "_SUCCESS": b""}.items():
            key = f"data/{feed}/2013-01-01-{hour:02}/{name}"
            if place == "lake":
                self.s3.put_object(Bucket="lake", Key=key, Body=content)
            elif place == "hadoop":
                asked = {"op": "CREATE", "user.name": "root", "overwrite": "true"}
                there = f"{self.hdfs.http}/webhdfs/v1/{key}"
                requests.put(there, params=asked, data=content, timeout=60).raise_for_status()
            else:
                file = Path(self.environ["FALCON_HOME"], key)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)

    def get(self, place: str, feed: str, hour: int) -> dict[str, bytes]:
        """Contents by name; none if the instance is not complete."""
        folder = f"data/{feed}/2013-01-01-{hour:02}"
        if place == "lake":
            listed = self.s3.list_objects_v2(Bucket="lake", Prefix=f"{folder}/").get("Contents", [])
            keys = [one["Key"] for one in listed]
            found = {key: self.s3.get_object(Bucket="lake", Key=key)["Body"].read() for key in keys}
        else:
            asked = self.hdfs.ask("LISTSTATUS", f"/{folder}")
            listed = asked.json()["FileStatuses"]["FileStatus"] if asked.ok else []
            names = [one["pathSuffix"] for one in listed]
            found = {f"{folder}/{name}": self.hdfs.ask("OPEN", f"/{folder}/{name}").content for name in names}
        files = {key.removeprefix(f"{folder}/"): content for key, content in found.items()}
        return files if files.pop("_SUCCESS", None) is not None else {}

    def run(self, now: str) -> subprocess.CompletedProcess[str]:
        return self.falcon("run", now=now)

    def falcon(self, *arguments: str, now: str) -> subprocess.CompletedProcess[str]:
        environ = self.environ | {"FALCON_CLOCK": now}
        cwd = environ["FALCON_HOME"]
        done = subprocess.run([FALCON, *arguments], env=environ, cwd=cwd, capture_output=True, text=True, check=False)
        assert not any(secret in done.stdout + done.stderr for secret in (KEY, SECRET))
        return done


def rows(first: int, count: int) -> bytes:
    """A Parquet file, which is not compressed."""
    file = io.BytesIO()
    table = pa.table({"n": pa.array(range(first, first + count), pa.int64())})
    pyarrow.parquet.write_table(table, file, compression="none", use_dictionary=False)
    return file.getvalue()


def numbers(files: dict[str, bytes]) -> list[int]:
    tables = [pyarrow.parquet.read_table(io.BytesIO(files[name])) for name in sorted(files)]
    return [number for table in tables for number in table["n"].to_pylist()]


def replicated(source: str, target: str) -> dict[str, Any]:
    clusters = [{"name": name, "type": role, "validity": VALIDITY} for name, role in
                ((source, "source"), (target, "target"))]  # fmt: skip
    name = f"{source}-to-{target}"
    return {
        "kind": "feed",
        "name": name,
        "frequency": "hours(1)",
        "availability_flag": "_SUCCESS",
        "late_arrival": {"cut_off": "hours(12)"},
        "locations": {"data": f"/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"},
        "clusters": clusters,
        "schedule": True,
    }


@pytest.fixture(scope="module")
def places(hdfs: Hdfs, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    home = tmp_path_factory.mktemp("home")
    share_listener(home)
    (home / "entities").mkdir()
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        s3 = boto3.client("s3", "us-east-1", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        s3.create_bucket(Bucket="lake")
        files = {"name": "files", "interfaces": {"write": {"endpoint": "data"}, "execute": {"endpoint": "local[2]"}}}
        memory = {"properties": {"spark.driver.memory": "512m"}}
        clusters = [{"kind": "cluster", **one, **memory} for one in (files, on_hdfs(hdfs, "hadoop"), lake(url))]
        feeds = [replicated(*way) for way in WAYS]
        (home / "entities/all.yaml").write_text(yaml.safe_dump_all([*clusters, *feeds]))
        environ = environ_with(
            FALCON_HOME=str(home),
            FALCON_ENTITY_DEFS=str(home / "entities"),
            FALCON_DATABASE_URL=database,
            COLUMNS="200",
            **ENVIRON,
        )
        yield Places(hdfs, s3, environ)


def test_what_lands_is_copied_and_late_changes_follow(places: Places) -> None:
    small = {"a.parquet": rows(0, 3), "b.parquet": rows(3, 4)}
    for source, target in WAYS:
        feed = f"{source}-to-{target}"
        places.put(source, feed, 0, small)
        places.put(source, feed, 1, {"a.parquet": rows(0, LARGE)})
    first = places.run("2013-01-01T02:30Z")
    assert (first.returncode, first.stderr) == (0, ""), first.stdout
    for source, target in WAYS:
        feed = f"{source}-to-{target}"
        assert numbers(places.get(target, feed, 0)) == list(range(7))
        assert numbers(places.get(target, feed, 1)) == list(range(LARGE)), "by Spark"
        assert places.get(target, feed, 2) == {}
    assert places.run("2013-01-01T02:40Z").stdout.endswith("\n0 instances succeeded, 0 did not\n")
    for source, target in WAYS:
        feed = f"{source}-to-{target}"
        places.put(source, feed, 0, {"b.parquet": rows(100, 2)})
        places.put(source, feed, 2, small)
    late = places.run("2013-01-01T03:30Z")
    assert late.stdout.endswith("\n6 instances succeeded, 0 did not\n"), late.stdout + late.stderr
    for source, target in WAYS:
        feed = f"{source}-to-{target}"
        assert numbers(places.get(target, feed, 0)) == [0, 1, 2, 100, 101]
        assert numbers(places.get(target, feed, 2)) == list(range(7))


def test_what_was_lost_on_a_target_is_there_again_after_a_rerun(places: Places) -> None:
    instances = {}
    for source, target in WAYS:
        feed = f"{source}-to-{target}"
        instances[target, feed] = before = places.get(target, feed, 0)
        assert before
        places.put(target, feed, 0, {"a.parquet": b"broken"})
        asked = ("instance", "rerun", feed, "--start", "2013-01-01T00:00Z", "--force")
        told = places.falcon(*asked, now="2013-01-01T03:40Z")
        assert told.returncode == 0, told.stderr
    done = places.run("2013-01-01T03:50Z")
    assert done.stdout.endswith("\n3 instances succeeded, 0 did not\n"), done.stdout + done.stderr
    for (target, feed), before in instances.items():
        assert places.get(target, feed, 0) == before
