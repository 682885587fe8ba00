"""What is known of the server that ``falcon spark start`` keeps warm: files below ``FALCON_HOME/spark``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from falcon_assets.spark.endpoints.connect_endpoint import served_port, with_token

_SAME_SECONDS = 2.0
"""How far two readings of one process's start time may lie apart: they depend on the clock of the machine."""


@dataclass(frozen=True)
class ServerProcess:
    """A server that was started.

    Attributes:
        pid: Its process, which also leads a process group of its own.
        started: When that process started, in seconds since 1970; tells it from a later process with the same number.
        port: Where it listens, on 127.0.0.1.
    """

    pid: int
    started: float
    port: int

    @property
    def endpoint(self) -> str:
        """What a cluster that uses it has as execute endpoint."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def channel(self) -> str:
        """The same, to ask whether it listens; by this name PySpark asks for no encryption, whatever it is told."""
        return f"sc://localhost:{self.port}"

    def process(self) -> psutil.Process | None:
        """The living process; None where it ended, or where the number belongs to another process now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME_SECONDS
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None


@dataclass(frozen=True)
class ServerFiles:
    """The files of the server of one ``FALCON_HOME``; nobody but their owner can read them."""

    home: Path

    @property
    def folder(self) -> Path:
        """Where they lie, and where the server runs."""
        return self.home / "spark"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.folder / "server.log"

    @property
    def lock(self) -> Path:
        """The lock file of whoever starts or stops the server."""
        return self.folder / "lock"

    def running(self) -> ServerProcess | None:
        """The server, if it is there; None also where it died and left its files behind."""
        try:
            server = ServerProcess(**json.loads((self.folder / "server.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return server if server.process() is not None else None

    def token(self) -> str:
        """What a client has to know."""
        return (self.folder / "token").read_text(encoding="ascii")

    def prepare(self) -> None:
        """Makes the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def write_token(self, token: str) -> None:
        """Keeps the token of the server that is about to start."""
        self._write("token", token)

    def write(self, server: ServerProcess) -> None:
        """Keeps what finds the server again."""
        self._write("server.json", json.dumps(asdict(server)))

    def forget(self) -> None:
        """Removes what is known of the server, except its log."""
        for name in ("server.json", "token"):
            (self.folder / name).unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> None:
        new = self.folder / f"{name}.new"
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        new.replace(self.folder / name)


def authenticated(endpoint: str, home: Path) -> str:
    """The execute endpoint with the token of the running server, if it is the one of ``home``; else as it is."""
    port = served_port(endpoint)
    if port is None:
        return endpoint
    files = ServerFiles(home)
    server = files.running()
    if server is None or server.port != port:
        return endpoint
    try:
        return with_token(endpoint, files.token())
    except OSError:  # it was stopped just now, or belongs to another user
        return endpoint
