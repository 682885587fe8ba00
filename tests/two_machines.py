"""Two ``falcon serve --only daemon`` with one database, as on two machines, and a sensor that counts its runs."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2
import sqlalchemy
import yaml

from tests.processes import BIN, FALCON, environ_with, free_port
from tests.waiting import wait_until

COUNTS = """
import dagster as dg

@dg.op
def nothing(): ...

@dg.job
def plain():
    nothing()

@dg.sensor(job=plain, minimum_interval_seconds=1, default_status=dg.DefaultSensorStatus.RUNNING)
def counts(context):
    number = int(context.cursor or 0) + 1
    context.update_cursor(str(number))
    yield dg.RunRequest(run_key=str(number))

defs = dg.Definitions(jobs=[plain], sensors=[counts])
"""
NEVER = {"module": "dagster", "class": "QueuedRunCoordinator", "config": {"max_concurrent_runs": 0}}
STORAGE = {"custom": {"module": "falcon_assets.dagster_instance", "class": "FalconStorage", "config": {}}}


@dataclass
class Machine:
    """A folder with its own home, and ``falcon serve --only daemon`` in it."""

    folder: Path
    environ: dict[str, str]
    serve: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        with (self.folder / "log").open("w") as log:
            command = [FALCON, "serve", "--only", "daemon"]
            self.serve = subprocess.Popen(
                command, cwd=self.folder, env=self.environ, stdout=log, stderr=subprocess.STDOUT, text=True
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def lines(self) -> list[str]:
        return self.log.splitlines()

    def says(self, pattern: str) -> list[str]:
        return re.findall(pattern, self.log)

    @property
    def daemon(self) -> int:
        """The process of its present daemon."""
        return int(self.says(r"is process (\d+)")[-1])


@dataclass
class Pair:
    machines: list[Machine]
    database: str

    def rows(self, query: str) -> list[tuple[str, ...]]:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def write(self, statement: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def _connect(self) -> psycopg2.extensions.connection:
        url = sqlalchemy.make_url(self.database)
        _, how = sqlalchemy.create_engine(url).dialect.create_connect_args(url)
        return psycopg2.connect(**how)

    def keys(self) -> list[int]:
        if not self.rows("SELECT FROM pg_tables WHERE tablename = 'run_tags'"):
            return []  # nobody has begun yet
        return sorted(int(key) for (key,) in self.rows("SELECT value FROM run_tags WHERE key = 'dagster/run_key'"))

    def active(self) -> Machine:
        """The one that is active, once its sensor has counted on from now."""
        before = len(self.keys())
        self.wait(lambda: len(self.keys()) > before + 1)
        ((process,),) = self.rows("SELECT process FROM falcon.daemon")
        return next(one for one in self.machines if one.daemon == process)

    def wait(self, condition: Callable[[], object]) -> None:
        wait_until(condition, 300, lambda: "\n".join(one.log for one in self.machines))


@contextmanager
def two_machines(place: Path, database: str) -> Iterator[Pair]:
    """They begin to run; a code server that both use, and whatever runs, ends with the context."""
    port = free_port()
    served = {"grpc_server": {"host": "127.0.0.1", "port": port, "location_name": "counts"}}
    declared = {"storage": STORAGE, "run_coordinator": NEVER, "telemetry": {"enabled": False}}
    folders = {name: place / name for name in ("code", "one", "other")}
    environs = {}
    for name, folder in folders.items():
        (folder / "entity_defs").mkdir(parents=True)
        (folder / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [served]}))
        (folder / "dagster.yaml").write_text(yaml.safe_dump(declared))
        here = {"FALCON_HOME": str(folder / "home"), "DAGSTER_HOME": str(folder)}
        environs[name] = environ_with(FALCON_DATABASE_URL=database, **here)
    (folders["code"] / "counts.py").write_text(COUNTS)
    command = [str(BIN / "dagster"), "code-server", "start", "-f", "counts.py", "-p", str(port)]
    with subprocess.Popen(command, cwd=folders["code"], env=environs["code"]) as code:
        machines = [Machine(folders[name], environs[name]) for name in ("one", "other")]
        try:
            yield Pair(machines, database)
        finally:
            for process in (*(one.serve for one in machines), code):
                process.send_signal(signal.SIGTERM)
            for one in machines:
                one.serve.wait(60)
