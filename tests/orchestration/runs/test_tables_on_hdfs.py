"""Processes read and write Hive tables whose data is on a real HDFS, where Hadoop's own client looks at it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import VALIDITY, make_cluster, make_feed, make_process
from tests.hdfs_server import Hdfs, on_hdfs
from tests.hours import hour
from tests.registries import registry_of

pytestmark = pytest.mark.soak
ON = [{"name": "primary", "validity": VALIDITY}]


def ran(cluster: Cluster, home: Path, sql: str, feeds: dict[str, Any], read: str, written: str) -> Any:
    (home / "sum.sql").write_text(sql)
    process = make_process(
        clusters=ON,
        inputs=[{"name": "rows", "feed": read, "start": "now(0,0)", "end": "now(0,0)"}],
        outputs=[{"name": "out", "feed": written, "instance": "now(0,0)"}],
        workflow={"engine": "spark-sql", "path": "sum.sql"},
    )
    own = ClusterStore(cluster, home, {})
    executor = SparkExecutor(cluster, lambda: str(home / "working"))
    runner = InstanceRunner(process, executor, feeds, own, StoresOf(cluster, home, {}), home, "etl", "run")
    return runner.run(runner.prepare(hour(5)))


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_a_table_is_made_written_replaced_and_read(hdfs: Hdfs, hive: str, tmp_path: Path, file_format: str) -> None:
    root, table = f"lake-{uuid.uuid4().hex}", f"sums_{uuid.uuid4().hex}"
    there = on_hdfs(hdfs, root=root)
    there["interfaces"]["registry"] = registry_of(hive)
    cluster = make_cluster(**there)
    fs = ClusterStore(cluster, tmp_path, {}).fs
    fs.pipe_file(f"/{root}/in/05/a", b'{"n": 1, "kind": "x"}\n{"n": 20, "kind": "y y"}')
    fs.pipe_file(f"/{root}/in/05/_SUCCESS", b"")
    uri = f"catalog:default:{table}#hour=${{HOUR}};kind=*"
    in_table = {"format": file_format, "locations": None, "availability_flag": None}
    feeds = {
        "raw": make_feed(name="raw", clusters=ON, schema="n bigint, kind string", locations={"data": "/in/${HOUR}"}),
        "sums": make_feed(name="sums", clusters=ON, table={"uri": uri, "create": True}, **in_table),
        "told": make_feed(name="told", clusters=ON, locations={"data": "/told/${HOUR}"}),
    }
    written = ran(cluster, tmp_path, "SELECT sum(n) AS n, kind FROM rows GROUP BY kind", feeds, "raw", "sums")
    catalog = TableStore(cluster, tmp_path, {}, table=TableUri.parse(uri)).catalog
    values = [("05", "x"), ("05", "y y")]
    first = catalog.partitions("default", table, values)
    places = [place for one in first.values() for place in one.places]
    assert (sorted(first), [one.records for one in written.outputs]) == (values, [2])
    assert all(place.startswith(f"{hdfs.url}/{root}/tables/default/{table}/_versions/") for place in places)
    again = ran(cluster, tmp_path, "SELECT sum(n) + 1 AS n, kind FROM rows GROUP BY kind", feeds, "raw", "sums")
    assert again.outputs[0].version != written.outputs[0].version
    ran(cluster, tmp_path, "SELECT n, kind, hour FROM rows", feeds, "sums", "told")
    told = hdfs.dfs("-cat", f"/{root}/told/05/part-*").splitlines()
    assert sorted(map(json.loads, told), key=str) == [
        {"n": 2, "kind": "x", "hour": "05"},
        {"n": 21, "kind": "y y", "hour": "05"},
    ]
