"""A run that holds its output, and a program that accepts it, are killed at each step; a retry makes it good."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from falcon_assets.history.folding.subscriptions import begin_to_listen, whole
from falcon_assets.model.event_kind import EventKind
from falcon_assets.operations.installation import Installation, open_installation
from tests.builders import cluster_yaml, process_yaml
from tests.faults.test_kills_while_checking import (
    HELD,
    MEASURES,
    PATIENCE,
    WAITING,
    WAITS,
    WRITES,
    Database,
    database_of,
    kill,
)
from tests.features.landing.snapshot_tables import run, said
from tests.features.quality.shop import anew
from tests.features.quality.test_holding import AT, FEEDS, HOUR, land
from tests.processes import FALCON
from tests.waiting import wait_until

__all__ = ["database_of"]
pytestmark = pytest.mark.soak
RULE = "  - {rule: in_range, column: n, min: 0}\n"
GATED = RULE + '  - {rule: python, function: "waits_at_the_gate:passes"}\n'
OF_EVENT = "NEW.event LIKE '%\"{}\"%'"
TOLD = "SELECT event FROM falcon.notification_events ORDER BY id"
ROWS = "SELECT feed, accepted_by IS NOT NULL FROM falcon.quality_held"
STATES = "SELECT state FROM falcon.process_instances"


@pytest.fixture(scope="module")
def installation(
    settings: Any, write_entities: Callable[[dict[str, str]], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    modules = tmp_path_factory.mktemp("modules")
    (modules / "waits_at_the_gate.py").write_text(WAITS)
    process = process_yaml("keep", "rows", "kept", HOUR, schedule=True)
    declared = cluster_yaml() + FEEDS.replace(RULE, GATED) + process
    write_entities({"all.yaml": declared, "a.sql": "SELECT n FROM rows"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", "2013-01-01T03:00Z")
        patch.setenv("PYTHONPATH", str(modules))
        patch.syspath_prepend(modules)
        with open_installation() as opened:
            yield opened


@contextmanager
def program(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        child = subprocess.Popen(
            [FALCON, *arguments], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    try:
        yield child
    finally:
        kill(child)


def killed_at(database: Database, gate: int, log: Path, *arguments: str) -> None:
    """Kills the program once it waits at the gate; what it asked of the database there does not happen."""
    with database.shut(gate):
        with program(log, *arguments) as child:

            def waiting() -> list[int]:
                assert child.poll() is None, log.read_text()
                return database.ask(WAITING)

            (waits,) = wait_until(waiting, PATIENCE, log.read_text)
            assert kill(child) == -signal.SIGKILL
        database.ask("SELECT pg_terminate_backend(%s)", waits)
    wait_until(lambda: database.ask(HELD) == [0], what="the locks of the program that was killed")


def listens(installation: Installation) -> None:
    """Whoever is told of the transitions of what is held, from here on."""
    now = installation.settings.now()
    with installation.ledger.engine.begin() as connection:
        wanted = {whole("primary"): {EventKind.HELD, EventKind.VALID, EventKind.INVALID}}
        begin_to_listen(connection, wanted, now, now)


def published(installation: Installation) -> list[int] | None:
    folder = installation.settings.home / "data/primary/kept/20130101-01"
    return sorted(pq.read_table(folder)["n"].to_pylist()) if folder.exists() else None


def aside(installation: Installation) -> list[list[int]]:
    found = installation.settings.home.glob("data/primary/.falcon/staging/held/*/written")
    return [pq.read_table(one)["n"].to_pylist() for one in found]


HOLDING = {
    "while it checks": (MEASURES, None),
    "before it is recorded that it is held": (WRITES, OF_EVENT.format("held_at")),
    "before it is recorded that it failed": (WRITES, OF_EVENT.format("FAILED")),
}


@pytest.mark.parametrize("step", HOLDING, ids=[one.replace(" ", "_") for one in HOLDING])
def test_a_killed_run_is_done_again_and_holds_once(
    installation: Installation, database_of: Database, tmp_path: Path, step: str
) -> None:
    anew(installation)
    listens(installation)
    land(installation, -1)
    gate, condition = HOLDING[step]
    if condition is None:
        killed_at(database_of, gate, tmp_path / "log", "run")
    else:
        with database_of.gate("INSERT ON event_logs", condition):
            killed_at(database_of, gate, tmp_path / "log", "run")
    assert published(installation) is None
    (trouble,) = run(installation).trouble
    assert trouble.reason_data["kind"] == "held_back"
    assert (published(installation), aside(installation)) == (None, [[-1]])
    assert (database_of.ask(ROWS), database_of.ask(STATES)) == ([("kept", False)], ["FAILED"])
    told = 2 if step == "before it is recorded that it failed" else 1
    assert database_of.ask(TOLD) == ["HELD"] * told, "each attempt that was recorded"
    said("quality", "accept", "kept", AT, "--reason", "why")
    assert (published(installation), aside(installation)) == ([-1], [])
    assert (database_of.ask(ROWS), database_of.ask(STATES)) == ([], ["SUCCEEDED"])


ACCEPTING = {
    "before the acceptance is recorded": OF_EVENT.format("held_accepted_by"),
    "before the publication is recorded": OF_EVENT.format("overruled_by"),
}


@pytest.mark.parametrize("step", ACCEPTING, ids=[one.replace(" ", "_") for one in ACCEPTING])
def test_a_killed_acceptance_is_completed_by_the_next(
    installation: Installation, database_of: Database, tmp_path: Path, step: str
) -> None:
    anew(installation)
    listens(installation)
    land(installation, -1)
    assert len(run(installation).trouble) == 1
    accept = ("quality", "accept", "kept", AT, "--reason", "why")
    with database_of.gate("INSERT ON event_logs", ACCEPTING[step]):
        killed_at(database_of, WRITES, tmp_path / "log", *accept)
    is_published = step == "before the publication is recorded"
    assert (published(installation), database_of.ask(ROWS)) == (
        [-1] if is_published else None,
        [("kept", is_published)],
    )
    said(*accept)
    for _ in range(2):
        assert (published(installation), aside(installation)) == ([-1], [])
        assert (database_of.ask(ROWS), database_of.ask(STATES)) == ([], ["SUCCEEDED"])
        assert database_of.ask(TOLD) == ["HELD", "VALID"]
        installation.ledger.rebuild()
