"""Processes read and write tables whose data is on an object store: by folders, and by Spark's own connector."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import VALIDITY, make_cluster, make_feed, make_process
from tests.hours import hour
from tests.registries import hive_metastore, iceberg, registry_of
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.s3a import s3a_confs
from tests.spark_servers import connect_server

pytestmark = pytest.mark.soak
ON = [{"name": "lake", "validity": VALIDITY}]


@pytest.fixture(scope="module")
def confs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return s3a_confs(tmp_path_factory.mktemp("jars"))


@pytest.fixture(scope="module")
def hive_on_s3(s3: str, confs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Hive Metastore that finds the server, too: it makes the folders of tables."""
    folder = tmp_path_factory.mktemp("hive-on-s3")
    said = {name.removeprefix("spark.hadoop."): value for name, value in confs.items() if name != "spark.jars"}
    said |= {"fs.s3a.endpoint": s3, "fs.s3a.path.style.access": "true"}
    said |= {"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}
    entries = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in said.items())
    (folder / "conf").mkdir()
    (folder / "conf/core-site.xml").write_text(f"<configuration>{entries}</configuration>")
    jars = ":".join([str(folder / "conf"), *confs["spark.jars"].split(",")])
    with hive_metastore(folder / "metastore", "--driver", jars) as endpoint:
        yield endpoint


@pytest.fixture(params=["by folders", "by connector"])
def execute(request: pytest.FixtureRequest, confs: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """An endpoint whose Spark has no connector, and one of somebody else's server that has."""
    if request.param == "by folders":
        yield "local[2]"
        return
    with connect_server(tmp_path, "connect", confs) as server:
        yield f"{server.interfaces.execute.endpoint}/;use_ssl=false"
        stop_sessions()


def ran(cluster: Cluster, home: Path, sql: str, feeds: dict[str, Any], read: str, written: str) -> Any:
    (home / "sum.sql").write_text(sql)
    process = make_process(
        clusters=ON,
        inputs=[{"name": "rows", "feed": read, "start": "now(0,0)", "end": "now(0,0)"}],
        outputs=[{"name": "out", "feed": written, "instance": "now(0,0)"}],
        workflow={"engine": "spark-sql", "path": "sum.sql"},
    )
    stores = StoresOf(cluster, home, ENVIRON)
    own = ClusterStore(cluster, home, ENVIRON)
    executor = SparkExecutor(cluster, lambda: str(home / "working"))
    runner = InstanceRunner(process, executor, feeds, own, stores, home, "etl", "run")
    return runner.run(runner.prepare(hour(5)))


@pytest.mark.parametrize("kind", ["iceberg", "hive"])
def test_a_table_is_made_written_replaced_and_read(
    request: pytest.FixtureRequest, s3: str, tmp_path: Path, execute: str, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bucket, table = f"tables-{uuid.uuid4()}", f"sums_{uuid.uuid4().hex}"
    there = lake(s3, bucket=bucket, execute=execute)
    is_hive = kind == "hive"
    endpoint = request.getfixturevalue("hive_on_s3") if is_hive else iceberg(request.getfixturevalue("database"))
    there["interfaces"]["registry"] = registry_of(endpoint)
    cluster = make_cluster(**there)
    store = ClusterStore(cluster, tmp_path, ENVIRON)
    store.fs.mkdir(bucket)
    store.fs.pipe_file(f"{store.path('/in/05')}/a", b'{"n": 1, "kind": "x"}\n{"n": 20, "kind": "y y"}')
    store.fs.pipe_file(f"{store.path('/in/05')}/_SUCCESS", b"")
    uri = f"catalog:default:{table}#hour=${{HOUR}};kind=*"
    feeds = {
        "raw": make_feed(name="raw", clusters=ON, schema="n bigint, kind string", locations={"data": "/in/${HOUR}"}),
        "sums": make_feed(
            name="sums",
            clusters=ON,
            format="parquet",
            locations=None,
            availability_flag=None,
            table={"uri": uri, "create": True},
        ),
        "told": make_feed(name="told", clusters=ON, locations={"data": "/told/${HOUR}"}),
    }
    written = ran(cluster, tmp_path, "SELECT sum(n) AS n, kind FROM rows GROUP BY kind", feeds, "raw", "sums")
    catalog = TableStore(cluster, tmp_path, ENVIRON, table=TableUri.parse(uri)).catalog
    values = [("05", "x"), ("05", "y y")]
    first = catalog.partitions("default", table, values)
    assert sorted(first) == values
    assert all(
        place.startswith(f"{'s3a' if is_hive else 's3'}://{bucket}/data/")
        for one in first.values()
        for place in one.places
    )
    assert [one.records for one in written.outputs] == [2]
    again = ran(cluster, tmp_path, "SELECT sum(n) + 1 AS n, kind FROM rows GROUP BY kind", feeds, "raw", "sums")
    assert again.outputs[0].version != written.outputs[0].version
    ran(cluster, tmp_path, "SELECT n, kind, hour FROM rows", feeds, "sums", "told")
    parts = store.fs.glob(f"{store.path('/told/05')}/part-*")
    told = [json.loads(line) for part in parts for line in store.fs.cat_file(part).splitlines()]
    assert sorted(told, key=str) == [
        {"n": 2, "kind": "x", "hour": "05"},
        {"n": 21, "kind": "y y", "hour": "05"},
    ]
    assert not list((tmp_path / "working/lake/staged").glob("*/*"))
    said = capfd.readouterr()
    assert KEY not in said.out + said.err and SECRET not in said.out + said.err
