"""Keeps a local Spark Connect server warm, so that a new client waits one second for its first result and not eight."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyspark.find_spark_home import _find_spark_home

from falcon_assets.deferred_signals import deferred_signals
from falcon_assets.errors import SettingsError
from falcon_assets.file_locks import who_locks
from falcon_assets.spark.capture.loading import loading
from falcon_assets.spark.connect_server.server_state import ServerFiles, ServerProcess
from falcon_assets.spark.endpoints.connect import CREDENTIAL_VARIABLE, OF_CLIENTS, OF_THE_DATABASE, is_ready
from falcon_assets.spark.jvm.environ import spark_environ
from falcon_assets.spark.jvm.java import require_java
from falcon_assets.storage.files.path_lock import path_lock

START_SECONDS = 300.0
"""How long a server may take to listen; it takes 6 seconds on an idle machine."""
_STOP_SECONDS = 20.0
_ANSWER_SECONDS = 0.5
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_NOT_INHERITED = (*OF_CLIENTS, CREDENTIAL_VARIABLE, *OF_THE_DATABASE)
"""With these, Spark's own scripts would make a client of the server, or give it and its clients what is not theirs."""


@dataclass(frozen=True)
class Started:
    """What :func:`start` found or made.

    Attributes:
        server: The running server.
        already: Whether it ran before.
    """

    server: ServerProcess
    already: bool


def start(home: Path, port: int, environ: Mapping[str, str]) -> Started:
    """Starts the server of ``home``, unless it runs, and waits until it listens.

    It listens on 127.0.0.1 only, and takes only clients that know the token in ``home/spark``. It outlives whoever
    started it and their terminal.

    Args:
        home: ``FALCON_HOME``.
        port: Where it shall listen.
        environ: The environment of the server; Spark's own variables work as usual (``SPARK_DRIVER_MEMORY``).

    Raises:
        SettingsError: there is no Java, the server runs on another port already, the port is taken, or the server does
            not come up; the text names its log.
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
    """Stops the server of ``home`` and waits until it is gone; gives what was stopped, None where nothing ran.

    Raises:
        SettingsError: others start or stop it just now.
    """
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
    """The server of ``home`` if it runs and listens."""
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
    """Ends the server and whatever it started: gently first."""
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
