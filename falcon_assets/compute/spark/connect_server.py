"""The server that ``falcon spark start`` keeps running; its files are below ``FALCON_HOME/spark``."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from pyspark.find_spark_home import _find_spark_home

from falcon_assets.base.deferred_signals import deferred_signals
from falcon_assets.base.file_locks import who_locks
from falcon_assets.compute.spark.capture.listener_jar import loading
from falcon_assets.compute.spark.endpoints.connect import CREDENTIAL_VARIABLE, NOT_FOR_PROGRAMS, OF_CLIENTS, is_ready
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port, with_token
from falcon_assets.compute.spark.jvm import require_java, spark_environ
from falcon_assets.errors import SettingsError
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.files.path_lock import path_lock

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
    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "spark"

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


def authenticated(endpoint: str, home: Path) -> str:
    """Adds the token of the running server to the execute endpoint, if it is the server of ``home``."""
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


START_SECONDS = 300.0
_STOP_SECONDS = 20.0
_ANSWER_SECONDS = 0.5
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_NOT_INHERITED = (*OF_CLIENTS, CREDENTIAL_VARIABLE, *NOT_FOR_PROGRAMS)
"""With these, Spark's own scripts would make a client of the server, or pass secrets to it and its clients."""


@dataclass(frozen=True)
class Started:
    server: ServerProcess
    already: bool


def start(home: Path, port: int, environ: Mapping[str, str]) -> Started:
    """Starts the server of ``home``, unless it runs, and waits until it listens.

    It listens on 127.0.0.1 only, and accepts only clients with the token in ``home/spark``. It outlives the process
    that started it and its terminal. Spark's own variables in ``environ`` work as usual (``SPARK_DRIVER_MEMORY``).

    Raises:
        SettingsError: there is no Java, the server runs on another port already, the port is taken, or the server does
            not start; the text names its log.
    """
    require_java(environ)
    files = ServerFiles(home)
    with _alone(files):
        server = files.running()
        already = server is not None
        if server is None:
            _require_port(port)
        elif server.port != port:
            raise SettingsError(
                f"the Spark Connect server runs at {server.endpoint} already: falcon spark stop, then start it again"
            )
        try:
            if server is None:
                with deferred_signals():  # else nobody would know what was started
                    server = _launch(files, port, environ)
            _wait_until_ready(server, files.log)
        except BaseException:  # also when the user does not want to wait
            if server is not None:
                _end(server)
                files.forget()
            raise
        return Started(server, already)


def stop(home: Path) -> ServerProcess | None:
    """Stops and returns the server; None: it was not running. Raises SettingsError if another process does so."""
    files = ServerFiles(home)
    if not files.folder.is_dir():
        return None
    with _alone(files):
        server = files.running()
        if server is not None:
            _end(server)
        files.forget()
        return server


def status(home: Path) -> ServerProcess | None:
    server = ServerFiles(home).running()
    return server if server is not None and is_ready(server.channel, _ANSWER_SECONDS) else None


@contextmanager
def _alone(files: ServerFiles) -> Iterator[None]:
    try:
        files.prepare()
        with path_lock(files.lock, START_SECONDS + _STOP_SECONDS) as held:
            if not held:
                raise SettingsError(f"{who_locks(files.lock)} starts or stops this server and does not end: end it")
            yield
    except OSError as error:
        raise SettingsError(f"{files.folder} cannot be used: {error.strerror or error}") from error


def _require_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(
                f"port {port} on 127.0.0.1 cannot be used ({error.strerror}): stop what listens there, "
                "or choose another one with --port"
            ) from error


def _launch(files: ServerFiles, port: int, environ: Mapping[str, str]) -> ServerProcess:
    token = secrets.token_hex(32)
    files.forget()
    files.write_token(token)
    confs = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "WARN",
        "spark.sql.warehouse.dir": str(files.folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    spark_home = _find_spark_home()
    listener = loading(files.home, environ, confs)
    confs |= listener.confs
    command = [str(Path(spark_home, "bin", "spark-submit")), "--class", _SERVER, "--name", "falcon"]
    command += [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
    inherited = {key: value for key, value in environ.items() if key not in _NOT_INHERITED}
    given = {
        "SPARK_HOME": spark_home,
        "SPARK_CONNECT_MODE": "0",  # as Spark's own script for the server has it
        "SPARK_LOCAL_IP": "127.0.0.1",
        **spark_environ(),
        **listener.environ,
        CREDENTIAL_VARIABLE: token,  # environments can be read by their user only, command lines by all
    }
    files.log.unlink(missing_ok=True)
    with os.fdopen(os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
        child = subprocess.Popen(
            [*command, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"PYSPARK_PYTHON": sys.executable, **inherited, **given},
            cwd=files.folder,
            start_new_session=True,  # the end of the terminal is not its end
        )
    # The scripts replace themselves by the JVM, so this is the number of the server itself.
    server = ServerProcess(child.pid, psutil.Process(child.pid).create_time(), port)
    files.write(server)
    return server


def _wait_until_ready(server: ServerProcess, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_ready(server.channel, _ANSWER_SECONDS):
        if server.process() is None:
            raise SettingsError(f"the Spark Connect server ended while it started: its log {log} says why")
        if time.monotonic() > deadline:
            raise SettingsError(
                f"the Spark Connect server did not listen at {server.endpoint} within {START_SECONDS:.0f} seconds: "
                f"its log {log} may say why"
            )


def _end(server: ServerProcess) -> None:
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


@contextmanager
def own_server(home: Path, environ: Mapping[str, str]) -> Iterator[Callable[[Cluster], None]]:
    """Yields a function that starts the Spark Connect server of ``home`` if it is a cluster's execute endpoint.

    A server that runs already is used and stays; one started here is stopped at the end. Raises as :func:`start`.
    """
    started: set[int] = set()

    def serve(cluster: Cluster) -> None:
        port = served_port(cluster.interfaces.execute.endpoint)
        if port is not None and port not in started and not start(home, port, environ).already:
            started.add(port)

    try:
        yield serve
    finally:
        if started:
            stop(home)
