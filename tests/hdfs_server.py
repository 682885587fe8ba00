"""A real HDFS: a namenode and datanodes of Spark's own version of Hadoop, on loopback or on machines of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import requests

from tests.machines import Machine
from tests.maven import SPARK_JARS, hadoop_version, jar
from tests.processes import free_port
from tests.waiting import wait_until

_NODE = "org.apache.hadoop.hdfs.server"
_LOG = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
"""


@dataclass
class Hdfs:
    """A namenode and its datanodes, which tests may end and start again."""

    folder: Path
    host: str = "localhost"
    machines: Sequence[Machine] = ()
    """Each has a datanode, and each block is on all of them; omitted: one datanode is here."""
    port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """For Hadoop's own protocol."""
        return f"hdfs://{self.host}:{self.port}"

    @property
    def http(self) -> str:
        """For everybody else's."""
        return f"http://{self.host}:{self.http_port}"

    def start(self) -> None:
        """Starts the nodes, and waits until something can be written."""
        if not (self.folder / "conf").exists():
            self._format()
        if "namenode.NameNode" not in self.running:
            self.running["namenode.NameNode"] = self._run("namenode.NameNode")
        for one in self.machines:
            addresses = (
                f"-Ddfs.datanode.{name}={one.address}:0" for name in ("address", "http.address", "ipc.address")
            )
            place = f"-Ddfs.datanode.data.dir=file://{self.folder}/blocks-{one.address}"
            words = (f"-Ddfs.datanode.hostname={one.address}", place, *addresses)
            self.running[f"datanode.DataNode {one.address}"] = self._run("datanode.DataNode", *words, before=one.inside)
        if not self.machines and "datanode.DataNode" not in self.running:
            self.running["datanode.DataNode"] = self._run("datanode.DataNode")
        wait_until(self._is_ready, 180, what=str(self.folder))

    def kill(self, node: str) -> None:
        """Kills one of them, by the name of its class."""
        for name in [name for name in self.running if node in name]:
            process = self.running.pop(name)
            process.kill()
            process.wait()

    def ask(self, op: str, path: str = "/", method: str = "get", **asked: Any) -> Any:
        """A request to WebHDFS as anybody makes it."""
        asked = {"op": op, "user.name": "root", **asked}
        return requests.request(method, f"{self.http}/webhdfs/v1{path}", params=asked, timeout=30)

    def dfs(self, *arguments: str, tool: str = "fs.FsShell") -> str:
        """What Hadoop's own ``hdfs dfs`` says."""
        command = [*self._java(), f"org.apache.hadoop.{tool}", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder)
        return done.stdout

    def _java(self) -> list[str]:
        minicluster = jar("org.apache.hadoop", "hadoop-client-minicluster", hadoop_version())
        java = shutil.which("java")
        assert java
        return [
            java,
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            f"{self.folder / 'conf'}:{minicluster}:{SPARK_JARS}/*",
        ]

    def _run(self, node: str, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        with (self.folder / f"{node}.log").open("ab") as log:
            command = [*before, *self._java(), f"{_NODE}.{node}", *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder)

    def _format(self) -> None:
        said = {
            "fs.defaultFS": self.url,
            "dfs.namenode.name.dir": f"file://{self.folder}/names",
            "dfs.datanode.data.dir": f"file://{self.folder}/blocks",
            "dfs.namenode.http-address": f"{self.host}:{self.http_port}",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.replication": str(max(1, len(self.machines))),
            "dfs.namenode.replication.min": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.datanode.directoryscan.throttle.limit.ms.per.sec": "1000",
            "dfs.permissions.superusergroup": "hdfs",
        }
        conf = self.folder / "conf"
        conf.mkdir()
        properties = (f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in said.items())
        text = f"<configuration>{''.join(properties)}</configuration>"
        for name in ("core-site.xml", "hdfs-site.xml"):
            (conf / name).write_text(text)
        (conf / "log4j2.properties").write_text(_LOG)
        assert self._run("namenode.NameNode", "-format", "-nonInteractive").wait() == 0, self.folder

    def _is_ready(self) -> bool:
        for name, process in self.running.items():
            assert process.poll() is None, (self.folder / f"{name.split()[0]}.log").read_text()
        with suppress(requests.RequestException, ValueError, KeyError, IndexError):
            bean = {"qry": "Hadoop:service=NameNode,name=FSNamesystemState"}
            told = requests.get(f"{self.http}/jmx", params=bean, timeout=5).json()["beans"][0]
            is_up = told["NumLiveDataNodes"] == max(1, len(self.machines)) and told["FSState"] == "Operational"
            return bool(is_up and told["CapacityRemaining"] > 0)  # it has told what it has room for
        return False


@contextmanager
def hdfs_server(folder: Path, host: str = "localhost", machines: Sequence[Machine] = ()) -> Iterator[Hdfs]:
    """One that starts empty."""
    server = Hdfs(folder, host, machines)
    try:
        server.start()
        yield server
    finally:
        for node in list(server.running):
            server.kill(node)


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One for all who leave its nodes running."""
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


def on_hdfs(server: Hdfs, name: str = "primary", root: str = "data", execute: str = "local[2]") -> dict[str, Any]:
    """What :func:`tests.builders.make_cluster` needs for a cluster on it."""
    return {
        "name": name,
        "interfaces": {"write": {"endpoint": f"{server.url}/{root}"}, "execute": {"endpoint": execute}},
        "storage_options": {"webhdfs": server.http, "user": os.environ.get("HADOOP_USER_NAME", "root")},
    }
