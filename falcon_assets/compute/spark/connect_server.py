"""Spark Connect servers on loopback: that of ``falcon spark start``, and those of provisioned executors."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from falcon_assets.base.deferred_signals import deferred_signals
from falcon_assets.compute.spark.capture.listener_jar import loading
from falcon_assets.compute.spark.endpoints.connect import CREDENTIAL_VARIABLE, NOT_FOR_PROGRAMS, OF_CLIENTS, is_ready
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port, with_token
from falcon_assets.compute.spark.jvm import require_java, spark_environ
from falcon_assets.compute.spark.server_process import (
    START_SECONDS,
    ServerFiles,
    ServerProcess,
    alone,
    detached,
    end,
    require_port,
)
from falcon_assets.errors import SettingsError
from falcon_assets.model.cluster import Cluster


def authenticated(endpoint: str, home: Path) -> str:
    """Adds the token of the server that runs at the execute endpoint, if it is one of ``home``."""
    port = served_port(endpoint)
    for files in ServerFiles.all_of(home) if port is not None else ():
        server = files.running()
        if server is not None and server.port == port:
            try:
                return with_token(endpoint, files.token())
            except OSError:  # it was stopped just now, or belongs to another user
                return endpoint
    return endpoint


_ANSWER_SECONDS = 0.5
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
NOT_INHERITED = (*OF_CLIENTS, CREDENTIAL_VARIABLE, *NOT_FOR_PROGRAMS)
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
    with alone(files):
        server = files.running()
        already = server is not None
        if server is None:
            require_port(port)
        elif server.port != port:
            raise SettingsError(
                f"the Spark Connect server runs at {server.endpoint} already: falcon spark stop, then start it again"
            )
        try:
            if server is None:
                with deferred_signals():  # else nobody would know what was started
                    server = launch(files, port, environ)
            _wait_until_ready(server, files.log)
        except BaseException:  # also when the user does not want to wait
            if server is not None:
                end(server)
                files.forget()
            raise
        return Started(server, already)


def stop(home: Path) -> ServerProcess | None:
    """Stops and returns the server; None: it was not running. Raises SettingsError if another process does so."""
    files = ServerFiles(home)
    if not files.folder.is_dir():
        return None
    with alone(files):
        server = files.running()
        if server is not None:
            end(server)
        files.forget()
        return server


def status(home: Path) -> ServerProcess | None:
    server = ServerFiles(home).running()
    return server if server is not None and is_ready(server.channel, _ANSWER_SECONDS) else None


def launch(
    files: ServerFiles, port: int, environ: Mapping[str, str], more: Mapping[str, str] | None = None
) -> ServerProcess:
    """Starts a server, with ``more`` settings, and does not wait for it; nobody else must do so."""
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
        **(more or {}),
    }
    spark_home = _find_spark_home()
    listener = loading(files.home, environ, confs)
    confs |= listener.confs
    command = [str(Path(spark_home, "bin", "spark-submit")), "--class", _SERVER, "--name", "falcon"]
    command += [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
    inherited = {key: value for key, value in environ.items() if key not in NOT_INHERITED}
    given = {
        "SPARK_HOME": spark_home,
        "SPARK_CONNECT_MODE": "0",  # as Spark's own script for the server has it
        "SPARK_LOCAL_IP": "127.0.0.1",
        **spark_environ(),
        **listener.environ,
        CREDENTIAL_VARIABLE: token,  # environments can be read by their user only, command lines by all
    }
    environ_of_server = {"PYSPARK_PYTHON": sys.executable, **inherited, **given}
    return detached(files, [*command, "spark-internal"], environ_of_server, port)


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
