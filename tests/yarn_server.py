"""A real YARN: a ResourceManager here, and a NodeManager on each machine of a test."""

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

import requests

from tests.machines import Machine
from tests.maven import SPARK_JARS, hadoop_version, jar
from tests.processes import free_port
from tests.waiting import wait_until

_SERVER = "org.apache.hadoop.yarn.server"
_BOUNCY = "org.bouncycastle"
_BOUNCY_VERSION = "1.82"
"""Of the same Hadoop; its jar of servers has not got it."""


@dataclass
class Yarn:
    """It knows what lies in the folder ``conf``, which must have a ``core-site.xml`` and logging."""

    conf: Path
    host: str
    machines: Sequence[Machine]
    port: int = field(default_factory=free_port)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def page(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(self, path: str) -> Any:
        """What its REST API answers."""
        return requests.get(f"{self.page}/ws/v1/cluster/{path}", timeout=30).json()

    def start(self) -> None:
        """Starts it, and waits until all machines have registered."""
        self._declare()
        self._run("resourcemanager.ResourceManager", "resourcemanager")
        for one in self.machines:
            names = ("address", "localizer.address", "webapp.address")
            addresses = [f"-Dyarn.nodemanager.{name}={one.address}:0" for name in names]
            place = self.conf.parent / f"nodes-{one.address}"
            folders = [f"-Dyarn.nodemanager.{name}-dirs={place / name}" for name in ("local", "log")]
            words = (f"-Dyarn.nodemanager.hostname={one.address}", *addresses, *folders)
            self._run("nodemanager.NodeManager", one.address, *words, before=one.inside)
        wait_until(self._is_ready, 180, what=str(self.conf.parent))

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def _declare(self) -> None:
        ports = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        said = {
            "yarn.resourcemanager.hostname": self.host,
            **{f"yarn.resourcemanager.{name}": f"{self.host}:{free_port()}" for name in ports},
            "yarn.resourcemanager.webapp.address": f"{self.host}:{self.port}",
            "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
            "yarn.nodemanager.resource.memory-mb": "3072",
            "yarn.nodemanager.resource.cpu-vcores": "2",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.scheduler.capacity.root.queues": "default,nights",
            "yarn.scheduler.capacity.root.default.capacity": "0",
            "yarn.scheduler.capacity.root.nights.capacity": "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        }
        properties = (f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in said.items())
        text = f"<configuration>{''.join(properties)}</configuration>"
        for name in ("yarn-site.xml", "capacity-scheduler.xml"):
            (self.conf / name).write_text(text)

    def _run(self, server: str, name: str, *arguments: str, before: Sequence[str] = ()) -> None:
        jars = [jar("org.apache.hadoop", "hadoop-client-minicluster", hadoop_version())]
        jars += [jar(_BOUNCY, f"{one}-jdk18on", _BOUNCY_VERSION) for one in ("bcprov", "bcpkix", "bcutil")]
        java = shutil.which("java")
        assert java
        options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        classes = ":".join(map(str, (self.conf, *jars, SPARK_JARS / "*")))
        command = [*before, java, *options, "-cp", classes, f"{_SERVER}.{server}", *arguments]
        environ = os.environ | {"JAVA_HOME": str(Path(java).resolve().parent.parent)}
        with (self.conf.parent / f"{name}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ)
            )

    def _is_ready(self) -> bool:
        for process in self.running:
            assert process.poll() is None, f"{process.args} ended: see {self.conf.parent}"
        with suppress(requests.RequestException, ValueError, KeyError):
            return bool(self.ask("metrics")["clusterMetrics"]["activeNodes"] == len(self.machines))
        return False


@contextmanager
def yarn_server(conf: Path, host: str, machines: Sequence[Machine]) -> Iterator[Yarn]:
    """One without applications, whose only queue with room is ``nights``."""
    server = Yarn(conf, host, machines)
    try:
        server.start()
        yield server
    finally:
        server.stop()
