"""Processes whose Spark goes to S3 itself: on a Connect server of somebody else, and wherever it has the connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import WorkflowError
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import VALIDITY, make_cluster, make_feed, make_process
from tests.hours import hour
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.s3a import s3a_confs
from tests.spark_servers import connect_server

pytestmark = pytest.mark.soak
ON = [{"name": "lake", "validity": VALIDITY}]


@pytest.fixture(scope="module")
def confs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return s3a_confs(tmp_path_factory.mktemp("jars"))


def foreign(cluster: Cluster) -> str:
    """Its endpoint, said so that it is not taken for the server of ``falcon spark start``."""
    return f"{cluster.interfaces.execute.endpoint}/;use_ssl=false"


def landed(
    s3: str, endpoint: str, home: Path, bucket: str, properties: Mapping[str, str] | None = None
) -> tuple[Cluster, ClusterStore]:
    cluster = make_cluster(**lake(s3, bucket=bucket, execute=endpoint), properties=dict(properties or {}))
    store = ClusterStore(cluster, home, ENVIRON)
    store.fs.mkdir(bucket)
    for name, content in (("a", b'{"n": 1}'), ("sub/b", b'{"n": 20}'), ("_SUCCESS", b"")):
        store.fs.pipe_file(f"{store.path('/in/05')}/{name}", content)
    return cluster, store


def ran(cluster: Cluster, store: ClusterStore, home: Path, **output: Any) -> InstanceResult:
    (home / "sum.sql").write_text("SELECT sum(n) AS n, 'a b' AS kind FROM flights")
    feeds = {
        "raw-flights": make_feed(clusters=ON, schema="n int", locations={"data": "/in/${HOUR}"}),
        "delays": make_feed(
            name="delays", clusters=ON, partitions=["kind"], locations={"data": "/out/${HOUR}"}, **output
        ),
    }
    process = make_process(clusters=ON, workflow={"engine": "spark-sql", "path": "sum.sql"})
    executor = SparkExecutor(cluster, lambda: str(home / "working"))
    runner = InstanceRunner(process, executor, feeds, store, StoresOf(cluster, home, ENVIRON), home, "etl", "run")
    return runner.run(runner.prepare(hour(5)))


def read(store: ClusterStore) -> dict[str, Any]:
    base = store.path("/out/05")
    return {
        str(name)[len(base) + 1 :].partition("/part-")[0]: [
            json.loads(one) for one in store.fs.cat_file(name).splitlines()
        ]
        for name in store.fs.find(base)
    }


def test_it_reads_and_writes_the_store_itself(s3: str, confs: dict[str, str], tmp_path: Path) -> None:
    with connect_server(tmp_path, "foreign", confs) as server:
        cluster, store = landed(s3, foreign(server), tmp_path, "native")
        for _ in range(2):
            result = ran(cluster, store, tmp_path)
            assert [output.records for output in result.outputs] == [1]
            assert read(store) == {"kind=a b": [{"n": 21}], "_SUCCESS": []}
            assert store.fs.find(store.staging, withdirs=True) in ([], [store.staging])
        ran(cluster, store, tmp_path, versions={"keep": 1})
        kind = kind_of(store)
        with kind.reading("/out/05", "_SUCCESS") as found:
            assert found.folders[0].url.startswith(f"s3a://{store.path('/out/05/_versions')}/")
        assert [one.nominal for one in kind.kept_versions("delays")] == [hour(5)]
        assert not (tmp_path / "working/lake/staged").exists()
        said = (tmp_path / "foreign.log").read_text()
        assert KEY not in said and SECRET not in said


def test_a_spark_that_shares_folders_goes_there_itself_where_it_has_the_classes(
    s3: str, confs: dict[str, str], tmp_path: Path
) -> None:
    cluster, store = landed(s3, "local[2]", tmp_path, "own", confs)
    try:
        result = ran(cluster, store, tmp_path)
        assert [output.records for output in result.outputs] == [1]
        assert read(store) == {"kind=a b": [{"n": 21}], "_SUCCESS": []}
        assert not (tmp_path / "working/lake/staged").exists()
    finally:
        stop_sessions()  # others have no use for its JVM


def test_one_without_a_connector_is_refused_with_the_jars_that_it_needs(s3: str, tmp_path: Path) -> None:
    with connect_server(tmp_path, "bare") as server:
        cluster, store = landed(s3, foreign(server), tmp_path, "bare")
        with pytest.raises(WorkflowError, match=r"this Spark has no connector for the object store: add its jars"):
            ran(cluster, store, tmp_path)
        assert not store.fs.exists(store.path("/out"))
