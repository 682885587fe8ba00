"""A real Kafka: one node that is broker and controller, from Maven's jars, on loopback."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.maven import with_needs
from tests.processes import free_port, listens
from tests.waiting import wait_until

VERSION = "3.9.1"


@dataclass
class Kafka:
    """A node that tests may kill and start again."""

    folder: Path
    port: int = field(default_factory=free_port)
    controller: int = field(default_factory=free_port)
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        if not (settings := self.folder / "server.properties").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            settings.write_text(self._settings())
            identity = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
            subprocess.run(
                [*self._java(), "kafka.tools.StorageTool", "format", *identity, "--config", str(settings)],
                check=True,
                capture_output=True,
            )
        log = (self.folder / "log").open("ab")
        self.running = subprocess.Popen([*self._java(), "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        wait_until(lambda: listens(self.port), 180, what=str(self.folder / "log"))

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait()
            self.running = None

    def _settings(self) -> str:
        return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{self.controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
log.dirs={self.folder}/data
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""

    def _java(self) -> list[str]:
        java = shutil.which("java")
        assert java
        jars = with_needs(self.folder / "jars", "org.apache.kafka", "kafka_2.13", VERSION)
        return [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars))]
