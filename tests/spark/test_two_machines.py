"""A standalone cluster of two workers on machines of their own, network namespaces here: one is lost in the middle."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg2
import pyarrow.parquet as pq
import pytest

from tests.builders import cluster_yaml
from tests.processes import FALCON, environ_with, free_port, listens
from tests.servers import libpq_url
from tests.spark_servers import daemon, wait_for
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
NET = "10.91.7"
HOST = f"{NET}.1"
PARTS, ROWS = 4, 1000
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


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass(frozen=True)
class Machine:
    """A network namespace, on the bridge of this test."""

    name: str
    link: str
    address: str

    def unplug(self) -> None:
        """Nothing reaches it any more, and nobody is told: its processes go on."""
        ip("link", "set", self.link, "down")


@contextmanager
def machines(number: int) -> Iterator[list[Machine]]:
    mark = uuid.uuid4().hex[:6]
    bridge = f"fb{mark}"
    with ExitStack() as held:
        ip("link", "add", bridge, "type", "bridge")
        held.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{HOST}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        found = []
        for at in range(2, 2 + number):
            one = Machine(f"falcon-{mark}-{at}", f"fv{mark}{at}", f"{NET}.{at}")
            ip("netns", "add", one.name)
            held.callback(ip, "netns", "del", one.name)
            ip("link", "add", one.link, "type", "veth", "peer", "name", "eth0", "netns", one.name)
            ip("link", "set", one.link, "master", bridge, "up")
            inside = ("-n", one.name)
            ip(*inside, "addr", "add", f"{one.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip(*inside, "link", "set", device, "up")
            found.append(one)
        yield found


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
            inside = ("ip", "netns", "exec", one.name)
            there = daemon(folder, one.address, *worker, before=inside, SPARK_LOCAL_IP=one.address)
            child, said = held.enter_context(there)
            wait_for(partial(_registered, log, one.address), child, said)
        yield url


def _registered(log: Path, address: str) -> bool:
    return f"worker {address}" in log.read_text()


def test_an_instance_outlives_a_machine(database: str, tmp_path: Path) -> None:
    home, definitions = tmp_path / "home", tmp_path / "entity_defs"
    for folder in (home, definitions):
        folder.mkdir()
    hold = home / "hold"
    hold.touch()
    with machines(2) as workers, spark(tmp_path, workers) as url:
        interfaces = {"write": {"endpoint": (tmp_path / "data").as_uri()}, "execute": {"endpoint": url}}
        properties = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.executor.heartbeatInterval": "2s",
            "spark.network.timeout": "15s",
            "spark.network.timeoutInterval": "5s",
            "spark.ui.enabled": "false",
        }
        cluster = cluster_yaml(interfaces=interfaces, properties=properties)
        (definitions / "all.yaml").write_text(cluster + PROCESS)
        (definitions / "waits.py").write_text(WORKFLOW)
        environ = environ_with(FALCON_DATABASE_URL=database, FALCON_HOME=str(home), FALCON_CLOCK="2013-01-01T01:00Z")
        command = [FALCON, "run", "--until", "2013-01-01T01:00Z"]
        log = tmp_path / "run.log"
        with log.open("w") as output:
            run = subprocess.Popen(
                command, cwd=tmp_path, env=environ | {"SPARK_LOCAL_IP": HOST}, stdout=output, stderr=output
            )
        try:
            wait_until(lambda: _computes_on(home) == len(workers) or run.poll() is not None, 600, log.read_text)
            assert run.poll() is None, log.read_text()
            workers[1].unplug()
            hold.unlink()
            assert run.wait(600) == 0, log.read_text()
        finally:
            run.kill()
            run.wait()
        rows = pq.read_table(tmp_path / "data" / "made" / "2013-01-01-00", partitioning=None)["id"].to_pylist()
    assert sorted(rows) == list(range(ROWS))
    with psycopg2.connect(libpq_url(database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT state FROM falcon.process_instances")
        assert cursor.fetchall() == [("SUCCEEDED",)]


def _computes_on(home: Path) -> int:
    """The number of machines on which tasks began."""
    return len({one.name.split("-")[1] for one in home.glob("began-*")})
