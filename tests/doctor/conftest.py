"""An installation that is well: what each test breaks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import SerializableErrorInfo

from falcon_assets.doctor import all_checks, stores, webserver
from falcon_assets.doctor import receivers as lineage
from falcon_assets.doctor.all_checks import examine
from falcon_assets.history.database import upgrade
from falcon_assets.settings import Settings
from tests.builders import VALIDITY, cluster_yaml, make_feed
from tests.cli.test_entity_command import ENTITIES
from tests.s3_server import lake

SENSORS = ("primary__collector", "default__coordinator")


@dataclass
class Installed:
    """An installation.

    Attributes:
        settings: How it is set up.
        instance: Its Dagster instance.
        engine: Its database.
        monkeypatch: Changes the environment.
        now: What the doctor takes for the real time.
    """

    settings: Settings
    instance: dg.DagsterInstance
    engine: sqlalchemy.Engine
    monkeypatch: pytest.MonkeyPatch
    now: datetime

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)

    def define(self, text: str) -> None:
        (self.settings.entity_defs / "all.yaml").write_text(text)

    def cluster(self, **declared: object) -> None:
        """Entities whose only cluster is declared so."""
        _, _, others = ENTITIES.partition("---\n")
        self.define(f"{cluster_yaml(**declared)}---\n{others}")  # type: ignore[arg-type]

    def lake(self, url: str, **how: str) -> None:
        """Entities on an S3 server at that URL only; retention deletes there."""
        feed = make_feed(clusters=[{"name": "lake", "validity": VALIDITY, "retention": {"limit": "days(90)"}}])
        documents = [cluster_yaml(**lake(url, **how)), yaml.safe_dump(feed.model_dump(mode="json", exclude_unset=True))]
        self.define("---\n".join(documents))

    def execute(self, statement: str, **values: object) -> None:
        with self.engine.begin() as connection:
            connection.execute(sqlalchemy.text(statement), values)

    def beat(self, ago: float = 0, *parts: str) -> None:
        """Parts of the daemon gave a sign of life so many seconds ago; none: all."""
        self.instance.wipe_daemon_heartbeats()
        for part in parts or self.instance.get_required_daemon_types():
            self.instance.add_daemon_heartbeat(DaemonHeartbeat(self.now.timestamp() - ago, part, "one", []))

    def sensor(self, name: str, *, stopped: bool = False, ago: float = 1, error: str | None = None) -> None:
        """Dagster knows a sensor."""
        repository = RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__")
        origin = RemoteInstigatorOrigin(repository, name)
        kind, ids = InstigatorType.SENSOR, (origin.get_id(), origin.get_selector().get_id())
        status = InstigatorStatus.STOPPED if stopped else InstigatorStatus.RUNNING
        self.instance.add_instigator_state(InstigatorState(origin, kind, status, SensorInstigatorData()))
        result = TickStatus.FAILURE if error else TickStatus.SKIPPED
        info = SerializableErrorInfo(error, [], None) if error else None
        at = self.now.timestamp() - ago
        self.instance.create_tick(TickData(ids[0], name, kind, result, at, [], error=info, selector_id=ids[1]))

    def ticking(self, **changes: dict[str, object]) -> None:
        """All sensors tick, but for those that do something else."""
        self.execute("DELETE FROM instigators")
        self.execute("DELETE FROM jobs")
        self.execute("DELETE FROM job_ticks")
        for name in SENSORS:
            self.sensor(name, **changes.get(name, {}))  # type: ignore[arg-type]

    def found(self, *checks: str) -> list[tuple[str, str, str, str]]:
        """Check, status, text and fix of all findings."""
        found = examine(self.now, checks)
        return [(one.check, one.diagnosis.status.value, one.diagnosis.text, one.diagnosis.fix) for one in found]

    def ill(self, *checks: str) -> list[tuple[str, str, str, str]]:
        """Those that are not ok."""
        return [one for one in self.found(*checks) if one[1] != "ok"]


@pytest.fixture(scope="module")
def migrated(settings: Settings) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(settings.database_url or "")
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def installed(
    settings: Settings,
    instance: dg.DagsterInstance,
    migrated: sqlalchemy.Engine,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Installed:
    """It is well: the daemon lives, and its sensors tick."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    for name in os.environ:
        if name.startswith("FALCON_") and name not in ("FALCON_DATABASE_URL", "FALCON_HOME", "FALCON_ENTITY_DEFS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    monkeypatch.setenv("FALCON_JOBS", "nothing")
    settings.home.mkdir(exist_ok=True)
    settings.home.chmod(0o750)
    for module, limit in ((all_checks, 120.0), (stores, 110.0), (webserver, 110.0), (lineage, 110.0)):
        monkeypatch.setattr(module, "ANSWER_SECONDS", limit)  # a busy machine is not ill
    made = Installed(settings, instance, migrated, monkeypatch, datetime.now(UTC))
    made.execute("DELETE FROM runs")
    made.execute("DELETE FROM event_logs")
    made.beat()
    made.ticking()
    return made
