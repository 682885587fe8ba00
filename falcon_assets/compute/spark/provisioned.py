"""Executors that are started on this machine when work waits for them: a Connect server, or a standalone cluster."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.find_spark_home import _find_spark_home

from falcon_assets.base.deferred_signals import deferred_signals
from falcon_assets.compute.spark.connect_server import NOT_INHERITED, launch
from falcon_assets.compute.spark.endpoints.standalone import is_standalone
from falcon_assets.compute.spark.jvm import require_java, spark_environ
from falcon_assets.compute.spark.server_process import (
    PROVISIONED,
    ServerFiles,
    ServerProcess,
    alone,
    detached,
    end,
    require_port,
)
from falcon_assets.model.executor import ClusterExecutor

_LOOPBACK = "127.0.0.1"
_SECRET = "spark.authenticate.secret"  # noqa: S105 - a key
_PARTS = ("worker", "master")
"""The processes of a standalone cluster, in the order in which they are stopped."""


@dataclass(frozen=True)
class ProvisionedSpark:
    """What an executor with ``provision`` needs on this machine; its files are below ``FALCON_HOME/executors``."""

    home: Path
    cluster: str
    executor: ClusterExecutor

    @property
    def is_running(self) -> bool:
        """Whether all of its processes live, listening or not."""
        return all(one.running() is not None for one in self._servers)

    @property
    def log(self) -> Path:
        """The log of the process that says most."""
        return self._servers[0].log

    def launch(self, environ: Mapping[str, str]) -> None:
        """Starts it, unless it runs, and does not wait until it listens; it outlives this process.

        Raises:
            SettingsError: there is no Java, the port is taken, or another process starts or stops it.
        """
        require_java(environ)
        with alone(self._files):
            if self.is_running:
                return
            self._end()  # of a standalone cluster one may be left
            require_port(self._port)
            with deferred_signals():  # else nobody would know what was started
                if is_standalone(self.executor.endpoint):
                    self._launch_standalone(environ)
                else:
                    cores = self.executor.quota.cores
                    launch(self._files, self._port, environ, {"spark.master": f"local[{cores}]"} if cores else {})

    def stop(self) -> bool:
        """Ends its processes, and forgets its token; False: none was running.

        Raises:
            SettingsError: another process starts or stops it.
        """
        if not self._files.folder.is_dir():
            return False
        with alone(self._files):
            was_running = any(one.running() is not None for one in self._servers)
            self._end()
            self._files.forget()
            return was_running

    @property
    def _files(self) -> ServerFiles:
        return ServerFiles(self.home, f"{PROVISIONED}/{self.cluster}/{self.executor.name}")

    @property
    def _servers(self) -> list[ServerFiles]:
        part = self._files.part
        if is_standalone(self.executor.endpoint):
            return [ServerFiles(self.home, f"{part}/{name}") for name in _PARTS]
        return [self._files]

    @property
    def _port(self) -> int:
        return urlsplit(self.executor.endpoint).port or 0

    def _end(self) -> None:
        for one in self._servers:
            if (server := one.running()) is not None:
                end(server)

    def _launch_standalone(self, environ: Mapping[str, str]) -> None:
        secret, ui = secrets.token_hex(32), urlsplit(self.executor.ui or "").port or 0
        self._files.write_token(secret)
        confs = {
            "spark.authenticate": "true",
            _SECRET: secret,
            "spark.ui.killEnabled": "false",
            "spark.master.rest.enabled": "false",
        }
        master = ("Master", "--host", _LOOPBACK, "--port", str(self._port), "--webui-port", str(ui))
        self._daemon("master", master, confs, environ)
        cores = self.executor.quota.cores or os.cpu_count() or 1
        work = self._files.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        worker = ("Worker", "--host", _LOOPBACK, "--webui-port", "0", "--cores", str(cores), "--work-dir", str(work))
        self._daemon("worker", (*worker, self.executor.endpoint), confs, environ)

    def _daemon(
        self, part: str, arguments: tuple[str, ...], confs: Mapping[str, str], environ: Mapping[str, str]
    ) -> ServerProcess:
        files = ServerFiles(self.home, f"{self._files.part}/{part}")
        files.prepare()
        properties = (
            files.folder / "spark.conf"
        )  # its folder can be entered by its user only, command lines read by all
        properties.write_text("".join(f"{key} {value}\n" for key, value in confs.items()))
        name, *rest = arguments
        spark_home = _find_spark_home()
        command = [str(Path(spark_home, "bin", "spark-class")), f"org.apache.spark.deploy.{name.lower()}.{name}"]
        inherited = {key: value for key, value in environ.items() if key not in NOT_INHERITED}
        given = {"SPARK_HOME": spark_home, "SPARK_LOCAL_IP": _LOOPBACK, **spark_environ()}
        environ_of_daemon = {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "512m", **inherited, **given}
        whole = [*command, "--properties-file", str(properties), *rest]
        return detached(files, whole, environ_of_daemon, self._port)


def provisioned_confs(endpoint: str, home: Path | None) -> dict[str, str]:
    """Returns the settings with which sessions and programs may use a standalone cluster that was started here."""
    if home is None or not is_standalone(endpoint):
        return {}
    for files in ServerFiles.all_of(home):
        server = ServerFiles(home, f"{files.part}/{_PARTS[1]}").running()
        if server is not None and endpoint == f"spark://{_LOOPBACK}:{server.port}":
            try:
                here = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), _LOOPBACK)
                return {"spark.authenticate": "true", _SECRET: files.token(), **here}
            except OSError:  # it was stopped just now
                return {}
    return {}


def stop_others(home: Path, cluster: str, executors: Mapping[str, ClusterExecutor]) -> list[str]:
    """Stops what was started for executors of a cluster that are not provisioned any more; returns their names."""
    stopped = []
    for folder in sorted((home / PROVISIONED / cluster).glob("*")):
        if folder.name not in executors:
            for endpoint in ("spark://127.0.0.1:1", "sc://127.0.0.1:1"):  # whichever it was
                one = ClusterExecutor(name=folder.name, endpoint=endpoint)
                if ProvisionedSpark(home, cluster, one).stop():
                    stopped.append(folder.name)
    return stopped
