"""Processes of the engine ``python`` from landing to publishing, on files and objects: no JVM starts."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pyarrow.parquet as pq
import pytest

from tests.processes import FALCON, environ_with
from tests.s3_server import ENVIRON, KEY, SECRET, lake, s3_server

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: %s}, execute: {endpoint: "local[1]"}}
storage_options: %s
---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
format: csv
options: {header: "true"}
schema: "item string, price decimal(9,2), at timestamp"
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: made
frequency: hours(1)
availability_flag: _SUCCESS
format: parquet
schema: "item string, price decimal(19,2)"
locations: {data: "/made/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: add
frequency: hours(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T03:00Z}}]
parallel: 3
strict_lineage: true
inputs:
  - {name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)", optional: true}
outputs: [{name: made, feed: made, instance: "now(0,0)"}]
retry: {policy: final}
workflow: {engine: python, path: add.py}
schedule: true
"""
ADD = """
def run(inputs, instance):
    if instance.nominal_time.hour == 2:
        raise ValueError("no such hour")
    found = inputs["raw"].to_table().group_by("item").aggregate([("price", "sum")])
    return found.rename_columns(["item", "price"])
"""
ROWS = "item,price,at\na,1.10,2013-01-01 00:10:00\na,2.20,2013-01-01 00:20:00\n,0.01,\n"


@pytest.fixture(params=["data", "s3://lake/data"], ids=["files", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, Callable[..., bytes]]]:
    """A write endpoint, its options, and what puts or reads a file there."""
    if request.param == "data":

        def local(path: str, content: bytes | None = None) -> bytes:
            file = tmp_path / "data" / path
            if content is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            return file.read_bytes()

        yield "data", "{}", local
        return
    with s3_server(tmp_path) as url:
        client = boto3.client("s3", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})

        def remote(path: str, content: bytes | None = None) -> bytes:
            if content is not None:
                client.put_object(Bucket="lake", Key=f"data/{path}", Body=content)
            found: bytes = client.get_object(Bucket="lake", Key=f"data/{path}")["Body"].read()
            return found

        yield request.param, json.dumps(lake(url)["storage_options"]), remote


def falcon_at(folder: Path, environ: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    program = [FALCON, *command]
    return subprocess.run(program, env=environ, cwd=folder, capture_output=True, text=True, check=False)


def test_a_function_is_computed_published_and_recorded(
    tmp_path: Path, database: str, place: tuple[str, str, Callable[..., bytes]]
) -> None:
    endpoint, options, file = place
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/started\necho \'openjdk version "17.0.1"\' >&2\n')
    java.chmod(0o755)
    entities, names = ENTITIES % (endpoint, options), {"raw": "raw", "made": "made", "add": "add"}
    if endpoint != "data":  # both in one database
        names = {name: f"{name}-there" for name in names}
        for name, other in names.items():
            entities = entities.replace(f"name: {name}\n", f"name: {other}\n").replace(
                f"feed: {name},", f"feed: {other},"
            )
    (tmp_path / "entity_defs").mkdir()
    (tmp_path / "entity_defs" / "all.yaml").write_text(entities)
    (tmp_path / "entity_defs" / "add.py").write_text(ADD)
    file("raw/2013-01-01-00/rows.csv", ROWS.encode())
    file("raw/2013-01-01-00/_SUCCESS", b"")
    environ = environ_with(
        FALCON_HOME=str(tmp_path),
        FALCON_ENTITY_DEFS="entity_defs",
        FALCON_DATABASE_URL=database,
        FALCON_CLOCK="2013-01-01T04:00Z",
        JAVA_HOME=str(tmp_path / "java"),
        TZ="Asia/Kolkata",
        **ENVIRON,
    )
    ran = falcon_at(tmp_path, environ, "run")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "add.py:4: ValueError: no such hour" in ran.stdout + ran.stderr
    for hour, rows in {"00": [("a", "3.30"), (None, "0.01")], "01": []}.items():
        table = pq.read_table(io.BytesIO(file(f"made/2013-01-01-{hour}/part-00000.parquet")))
        assert [(one["item"], str(one["price"])) for one in table.to_pylist()] == rows
        assert str(table.schema.field("price").type) == "decimal128(19, 2)"
        assert file(f"made/2013-01-01-{hour}/_SUCCESS") == b""
    shown = json.loads(
        falcon_at(tmp_path, environ, "lineage", "show", names["made"], "2013-01-01T00:00Z", "--json").stdout
    )
    assert f"{names['raw']}" in json.dumps(shown)
    tried = json.loads(falcon_at(tmp_path, environ, "try", names["add"], "2013-01-01T00:00Z", "--json").stdout)
    [output] = tried["outputs"]
    assert ([one["type"] for one in output["columns"]], output["rows"]) == (
        ["string", "decimal(19,2)"],
        [["a", "3.30"], [None, "0.01"]],
    )
    explained = falcon_at(tmp_path, environ, "explain", names["add"], "2013-01-01T00:00Z").stdout
    assert "the engine python computes each instance on its own" in explained
    started = tmp_path / "started"
    assert not started.exists() or set(started.read_text().splitlines()) <= {"-version"}
