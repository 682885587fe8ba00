"""A real RabbitMQ of Debian, with a folder and ports of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from tests.processes import free_port
from tests.waiting import wait_until

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@dataclass
class RabbitMq:
    """A node that tests may kill and start again."""

    folder: Path
    port: int = field(default_factory=free_port)
    distribution: int = field(default_factory=free_port)
    names: int = field(default_factory=free_port)
    running: subprocess.Popen[bytes] | None = None

    @property
    def parameters(self) -> pika.ConnectionParameters:
        return pika.ConnectionParameters("127.0.0.1", self.port, heartbeat=0)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "plugins").write_text("[].")
        own = {
            "HOME": self.folder,
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_DIST_PORT": self.distribution,
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOG_BASE": self.folder / "logs",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_PID_FILE": self.folder / "pid",
            "RABBITMQ_CONF_ENV_FILE": self.folder / "none",
            "RABBITMQ_CONFIG_FILE": self.folder / "none",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": self.names,
        }
        log = (self.folder / "log").open("ab")
        self.running = subprocess.Popen(
            [str(SERVER)],
            env={**os.environ, **{name: str(value) for name, value in own.items()}},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        wait_until(self._answers, 180, what=str(self.folder / "log"))

    def kill(self) -> None:
        if self.running is not None:
            os.killpg(self.running.pid, signal.SIGKILL)  # the shell script, and what it started
            self.running.wait()
            self.running = None

    def end(self) -> None:
        """Kills it, and the daemon of names that Erlang has started."""
        self.kill()
        command = ["epmd", "-port", str(self.names), "-kill"]  # refused until it has noticed that the node is gone
        wait_until(lambda: b"Killed" in subprocess.run(command, check=False, capture_output=True).stdout)

    def _answers(self) -> bool:
        try:
            pika.BlockingConnection(self.parameters).close()
        except (AMQPError, OSError):
            return False
        return True
