"""Spark's servers on this machine that outlive who started them; their files are below ``FALCON_HOME``."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from falcon_assets.base.file_locks import who_locks
from falcon_assets.errors import SettingsError
from falcon_assets.storage.files.path_lock import path_lock

START_SECONDS = 300.0
_STOP_SECONDS = 20.0
PROVISIONED = "executors"
"""The folder of provisioned executors, with a folder for each cluster."""
_SAME_SECONDS = 2.0
"""Tolerance of a process's start time, whose value depends on the clock of the machine."""


@dataclass(frozen=True)
class ServerProcess:
    """A server on 127.0.0.1; ``started``, in seconds since 1970, identifies it among processes with the same id."""

    pid: int
    started: float
    port: int

    @property
    def endpoint(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    @property
    def channel(self) -> str:
        """The endpoint for readiness checks; with this host name PySpark uses no encryption, regardless of settings."""
        return f"sc://localhost:{self.port}"

    def process(self) -> psutil.Process | None:
        """Returns the living process; None: it ended, or the id belongs to another process now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME_SECONDS
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None


@dataclass(frozen=True)
class ServerFiles:
    """The files of a server in ``part`` of ``home``: its process, its token and its log."""

    home: Path
    part: str = "spark"

    @classmethod
    def all_of(cls, home: Path) -> list[ServerFiles]:
        """That of ``falcon spark start``, and those of provisioned executors."""
        found = sorted(one.parent for one in home.glob(f"{PROVISIONED}/*/*/token"))
        return [cls(home), *(cls(home, str(one.relative_to(home))) for one in found)]

    @property
    def folder(self) -> Path:
        return self.home / self.part

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def running(self) -> ServerProcess | None:
        """Returns the server; None: it does not run, even if its files are left."""
        try:
            server = ServerProcess(**json.loads((self.folder / "server.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return server if server.process() is not None else None

    def token(self) -> str:
        return (self.folder / "token").read_text(encoding="ascii")

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def write_token(self, token: str) -> None:
        self._write("token", token)

    def write(self, server: ServerProcess) -> None:
        self._write("server.json", json.dumps(asdict(server)))

    def forget(self) -> None:
        for name in ("server.json", "token"):
            (self.folder / name).unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> None:
        new = self.folder / f"{name}.new"
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        new.replace(self.folder / name)


def detached(files: ServerFiles, command: Sequence[str], environ: Mapping[str, str], port: int) -> ServerProcess:
    """Starts a server in a session of its own, with its log and its process in the files."""
    files.log.unlink(missing_ok=True)
    with os.fdopen(os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            cwd=files.folder,
            start_new_session=True,  # the end of the terminal is not its end
        )
    # The scripts replace themselves by the JVM, so this is the number of the server itself.
    server = ServerProcess(child.pid, psutil.Process(child.pid).create_time(), port)
    files.write(server)
    return server


@contextmanager
def alone(files: ServerFiles) -> Iterator[None]:
    """Nobody else starts or stops the server in the block; raises SettingsError where somebody does for minutes."""
    try:
        files.prepare()
        with path_lock(files.lock, START_SECONDS + _STOP_SECONDS) as held:
            if not held:
                raise SettingsError(f"{who_locks(files.lock)} starts or stops this server and does not end: end it")
            yield
    except OSError as error:
        raise SettingsError(f"{files.folder} cannot be used: {error.strerror or error}") from error


def require_port(port: int) -> None:
    """Raises SettingsError where something listens there already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(
                f"port {port} on 127.0.0.1 cannot be used ({error.strerror}): stop what listens there, "
                "or choose another one with --port"
            ) from error


def end(server: ServerProcess) -> None:
    """Ends it and what it started, in seconds."""
    process = server.process()
    if process is None:
        return
    with suppress(psutil.NoSuchProcess):
        process.terminate()
    with suppress(psutil.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError, PermissionError):  # whoever did not listen; macOS refuses where none is left
        os.killpg(server.pid, signal.SIGKILL)
    with suppress(psutil.TimeoutExpired):
        process.wait(_STOP_SECONDS)
