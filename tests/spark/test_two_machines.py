"""Spark and its data on two machines, network namespaces here, of which one is lost in the middle."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import psycopg2
import pyarrow.parquet as pq
import pytest

from tests.builders import cluster_yaml
from tests.hdfs_server import Hdfs, hdfs_server, on_hdfs
from tests.machines import Machine, machines
from tests.maven import SPARK_JARS
from tests.processes import FALCON, environ_with, free_port, listens
from tests.s3_server import ENVIRON, KEY, SECRET, lake, s3_server
from tests.s3a import s3a_confs
from tests.servers import libpq_url, new_database, url_of
from tests.spark_servers import daemon, wait_for
from tests.waiting import wait_until
from tests.yarn_server import yarn_server

pytestmark = pytest.mark.soak
NET = "10.91.7"
HOST = f"{NET}.1"
PARTS, ROWS = 4, 1000
INSTANCE = "made/2013-01-01-00"
WORKFLOW = f"""
import os
from pathlib import Path

HOLD = Path(os.environ["FALCON_HOME"], "hold")


def run(spark, inputs, instance):
    hold = str(HOLD)

    def waits(batches):
        import os, time
        from pathlib import Path
        machine = os.stat("/proc/self/ns/net").st_ino
        Path(hold).with_name(f"began-{{machine}}-{{os.getpid()}}").touch()
        while Path(hold).exists():
            time.sleep(0.05)
        yield from batches

    return spark.range(0, {ROWS}, 1, {PARTS}).mapInArrow(waits, "id long")
"""
PROCESS = """---
kind: feed
name: made
frequency: hours(1)
format: parquet
availability_flag: _SUCCESS
schema: "id long"
locations: {data: "/made/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T01:00Z}}]
---
kind: process
name: makes
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T01:00Z}}]
frequency: hours(1)
outputs: [{name: out, feed: made, instance: "now(0,0)"}]
workflow: {engine: pyspark, path: waits.py}
retry: {policy: periodic, delay: minutes(1), attempts: 2}
schedule: true
"""


@contextmanager
def spark(folder: Path, workers: list[Machine]) -> Iterator[str]:
    """The URL of a master here, with a worker on each machine."""
    port, package = free_port(), "org.apache.spark.deploy"
    url = f"spark://{HOST}:{port}"
    with ExitStack() as held:
        words = ("--host", HOST, "--port", str(port), "--webui-port", "0")
        here = daemon(folder, "master", "bin/spark-class", f"{package}.master.Master", *words, SPARK_LOCAL_IP=HOST)
        master, log = held.enter_context(here)
        wait_for(lambda: listens(port, HOST), master, log)
        for one in workers:
            words = ("--host", one.address, "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir")
            place = (str(folder / one.address), url)
            worker = ("bin/spark-class", f"{package}.worker.Worker", *words, *place)
            there = daemon(folder, one.address, *worker, before=one.inside, SPARK_LOCAL_IP=one.address)
            child, said = held.enter_context(there)
            wait_for(partial(_registered, log, one.address), child, said)
        yield url


def _registered(log: Path, address: str) -> bool:
    return f"worker {address}" in log.read_text()


@dataclass(frozen=True)
class Place:
    """Where Spark runs and where the data lies."""

    cluster: dict[str, Any]
    environ: dict[str, str]
    rows: Callable[[], list[int]]
    """What an independent client reads of the instance."""
    lost: Callable[[], Machine]
    """The machine that is lost; it must not be the one of YARN's application master, which Spark cannot lose."""


@contextmanager
def standalone_on_s3(folder: Path, workers: list[Machine]) -> Iterator[Place]:
    with s3_server(folder, HOST) as at, spark(folder, workers) as url:
        boto = boto3.client("s3", endpoint_url=at, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        boto.create_bucket(Bucket="lake")
        (folder / "jars").mkdir()
        cluster = lake(at, "primary", execute=url)

        def rows() -> list[int]:
            listed = boto.list_objects_v2(Bucket="lake", Prefix=f"data/{INSTANCE}/")["Contents"]
            keys = [one["Key"] for one in listed if one["Key"].endswith(".parquet")]
            return _ids(boto.get_object(Bucket="lake", Key=key)["Body"].read() for key in keys)

        yield Place({**cluster, "properties": s3a_confs(folder / "jars")}, ENVIRON, rows, lambda: workers[1])


@contextmanager
def standalone_on_hdfs(folder: Path, workers: list[Machine]) -> Iterator[Place]:
    with hdfs_server(folder, HOST, workers) as hdfs, spark(folder, workers) as url:
        yield Place(on_hdfs(hdfs, execute=url), {}, partial(_rows_of, hdfs), lambda: workers[1])


@contextmanager
def yarn_on_hdfs(folder: Path, workers: list[Machine]) -> Iterator[Place]:
    conf = folder / "conf"
    with hdfs_server(folder, HOST, workers) as hdfs, yarn_server(conf, HOST, workers) as yarn:

        def without_master() -> Machine:
            (application,) = yarn.ask("apps")["apps"]["app"]
            assert application["queue"].endswith("nights")
            host, _ = application["amHostHttpAddress"].split(":")
            (other,) = (one for one in workers if one.address != host)
            return other

        properties = {"spark.yarn.jars": f"local:{SPARK_JARS}/*", "spark.yarn.queue": "nights"}
        cluster = {**on_hdfs(hdfs, execute="yarn"), "properties": properties}
        yield Place(cluster, {"HADOOP_CONF_DIR": str(conf)}, partial(_rows_of, hdfs), without_master)


@pytest.fixture
def empty(postgres: str, template: str) -> Iterator[str]:
    with new_database(postgres, template) as name:
        yield url_of(postgres, name)


@pytest.mark.parametrize("place_on", [standalone_on_s3, standalone_on_hdfs, yarn_on_hdfs])
def test_an_instance_outlives_a_machine(
    place_on: Callable[[Path, list[Machine]], AbstractContextManager[Place]], empty: str, tmp_path: Path
) -> None:
    home, definitions = tmp_path / "home", tmp_path / "entity_defs"
    for folder in (home, definitions):
        folder.mkdir()
    hold = home / "hold"
    hold.touch()
    with machines(2, NET) as workers, place_on(tmp_path, workers) as place:
        properties = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.instances": "2",
            "spark.cores.max": "2",
            "spark.executor.heartbeatInterval": "2s",
            "spark.network.timeout": "15s",
            "spark.network.timeoutInterval": "5s",
            "spark.ui.enabled": "false",
            **place.cluster.get("properties", {}),
        }
        (definitions / "all.yaml").write_text(cluster_yaml(**{**place.cluster, "properties": properties}) + PROCESS)
        (definitions / "waits.py").write_text(WORKFLOW)
        environ = environ_with(FALCON_DATABASE_URL=empty, FALCON_HOME=str(home), FALCON_CLOCK="2013-01-01T01:00Z")
        command = [FALCON, "run", "--until", "2013-01-01T01:00Z"]
        environ |= {"SPARK_LOCAL_IP": HOST, **place.environ}
        log = tmp_path / "run.log"
        with log.open("w") as output:
            run = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=output, stderr=output)
        try:
            wait_until(lambda: _computes_on(home) == len(workers) or run.poll() is not None, 600, log.read_text)
            assert run.poll() is None, log.read_text()
            place.lost().unplug()
            hold.unlink()
            assert run.wait(600) == 0, log.read_text()
        finally:
            run.kill()
            run.wait()
        rows = place.rows()
    assert sorted(rows) == list(range(ROWS))
    with psycopg2.connect(libpq_url(empty)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT state FROM falcon.process_instances")
        assert cursor.fetchall() == [("SUCCEEDED",)]


def _rows_of(hdfs: Hdfs) -> list[int]:
    """By Hadoop's own client."""
    fetched = hdfs.folder / "fetched"
    hdfs.dfs("-get", f"/data/{INSTANCE}", str(fetched))
    return _ids(one.read_bytes() for one in fetched.glob("*.parquet"))


def _ids(files: Iterable[bytes]) -> list[int]:
    return [row for one in files for row in pq.read_table(BytesIO(one))["id"].to_pylist()]


def _computes_on(home: Path) -> int:
    """The number of machines on which tasks began."""
    return len({one.name.split("-")[1] for one in home.glob("began-*")})
