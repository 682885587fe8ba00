"""A program that checks a version is killed at each of its steps: each version has one verdict, told once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy

from falcon_assets.history.folding.subscriptions import begin_to_listen, whole
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.model.event_kind import EventKind
from falcon_assets.operations.installation import Installation, open_installation
from tests.faults.house import family
from tests.features.quality.shop import BAD, GOOD, anew, at, checking, land, shop
from tests.processes import FALCON
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
PATIENCE = 300.0
MEASURES, WRITES = 4711, 4712
"""Gates: locks of the database at which whoever measures, or writes in some way, waits while the test has them."""
CHECKS = """
  - {rule: not_null, columns: [item], severity: warn}
  - {rule: in_range, column: n, min: 0}
  - {rule: python, function: "waits_at_the_gate:passes"}
"""
WAITS = f"""
import os, sqlalchemy

def passes(data, instance):
    engine = sqlalchemy.create_engine(os.environ["FALCON_DATABASE_URL"], poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock_shared({MEASURES})"))
    return True
"""
WAIT = f"""
CREATE OR REPLACE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared({WRITES});
    RETURN coalesce(NEW, OLD);
END $$
"""
GATE = "CREATE TRIGGER gate BEFORE {} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION wait_at_the_gate()"
OF_KIND = "NEW.dagster_event_type = '{}'"
WAITING = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid IN (4711, 4712)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
HELD = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
LOGGED = """
SELECT count(*) FROM event_logs
WHERE dagster_event_type = 'ASSET_OBSERVATION' AND event LIKE '%%checked_version%%' AND partition = %s
"""
EVALUATED = "SELECT count(DISTINCT check_name) FROM asset_check_executions WHERE partition = %s"
VERDICTS = "SELECT verdict FROM falcon.quality_verdicts WHERE instance = %s"
UNCHECKED = """
SELECT count(*) FROM falcon.feed_instances f WHERE state = 'AVAILABLE' AND NOT EXISTS (
    SELECT FROM falcon.quality_verdicts q
    WHERE (q.cluster, q.feed, q.instance, q.version) = (f.cluster, f.feed, f.instance, f.version))
"""
TOLD = "SELECT event FROM falcon.notification_events WHERE instance = %s ORDER BY id"
ATTEMPTS = "SELECT count(*) FROM falcon.quality_attempts"
DUE = "UPDATE falcon.quality_attempts SET retry_at = now() - interval '1 second'"


class Database:
    """The test's own connection to the database, and the gates that it shuts."""

    def __init__(self, url: str) -> None:
        self._connection = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool).raw_connection()
        self._connection.dbapi_connection.autocommit = True  # type: ignore[union-attr]

    def ask(self, sql: str, *given: Any) -> list[Any]:
        """The rows; those of one column are its values."""
        cursor = self._connection.cursor()
        cursor.execute(sql, given or None)
        found = cursor.fetchall() if cursor.description else []
        return [row[0] if len(row) == 1 else row for row in found]

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def shut(self, gate: int) -> Iterator[None]:
        self.ask(f"SELECT pg_advisory_lock({gate})")
        try:
            yield
        finally:
            self.ask(f"SELECT pg_advisory_unlock({gate})")

    @contextmanager
    def gate(self, operation: str, condition: str) -> Iterator[None]:
        self.ask(WAIT)
        self.ask(GATE.format(operation, condition))
        try:
            yield
        finally:
            self.ask(f"DROP TRIGGER gate ON {operation.rpartition(' ')[2]}")


@pytest.fixture(scope="module")
def database_of(database: str) -> Iterator[Database]:
    opened = Database(database)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def installation(
    settings: Any, write_entities: Callable[[dict[str, str]], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    modules = tmp_path_factory.mktemp("modules")
    (modules / "waits_at_the_gate.py").write_text(WAITS)
    write_entities(shop(CHECKS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", "2013-01-01T12:00Z")
        patch.setenv("PYTHONPATH", str(modules))
        patch.syspath_prepend(modules)
        with open_installation() as opened:
            assert database_url(opened.settings) == os.environ["FALCON_DATABASE_URL"]
            anew(opened)
            now = opened.settings.now()
            with opened.ledger.engine.begin() as connection:
                wanted = {whole("primary"): {EventKind.VALID, EventKind.INVALID, EventKind.BACKFILLED}}
                begin_to_listen(connection, wanted, now, now)
            yield opened


@contextmanager
def program(instance: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``falcon quality check``, with a Spark of its own, until it is left."""
    command = [FALCON, "quality", "check", "sales", instance]
    with log.open("wb") as said:
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield child
    finally:
        kill(child)


def kill(child: subprocess.Popen[bytes]) -> int:
    """Kills it and its JVM, without a warning; its status."""
    others = []
    with suppress(psutil.NoSuchProcess):
        _, *others = family(child.pid)
    for one in (child, *others):
        with suppress(psutil.NoSuchProcess):
            one.kill()
    status = child.wait()
    psutil.wait_procs(others, timeout=30)
    return status


def killed_at(database: Database, gate: int, instance: str, log: Path, *, is_answered: bool) -> None:
    """Kills the program once it waits at a gate.

    ``is_answered``: what it asked of the database happens, though nobody waits for the answer.
    """
    with database.shut(gate):
        with program(instance, log) as child:

            def waiting() -> list[int]:
                assert child.poll() is None, log.read_text()
                return database.ask(WAITING)

            (waits,) = wait_until(waiting, PATIENCE, log.read_text)
            assert kill(child) == -signal.SIGKILL
        if not is_answered:
            database.ask("SELECT pg_terminate_backend(%s)", waits)
    # Nothing that the dead program had is held any more.
    wait_until(lambda: database.ask(HELD) == [0], what="the locks of the program that was killed")


STEPS = {
    "before the attempt is recorded": (WRITES, "INSERT ON falcon.quality_attempts", "true"),
    "while it measures": (MEASURES, None, None),
    "before the first evaluation": (WRITES, "INSERT ON event_logs", OF_KIND.format("ASSET_CHECK_EVALUATION")),
    "before the verdict": (WRITES, "INSERT ON event_logs", OF_KIND.format("ASSET_OBSERVATION")),
    "as the verdict is written": (WRITES, "INSERT ON event_logs", OF_KIND.format("ASSET_OBSERVATION")),
    "before the verdict is folded": (WRITES, "INSERT ON falcon.quality_verdicts", "true"),
    "before the attempts are forgotten": (WRITES, "DELETE ON falcon.quality_attempts", "true"),
}
LEFT = {
    "before the attempt is recorded": (0, 0, []),
    "while it measures": (0, 0, []),
    "before the first evaluation": (0, 0, []),
    "before the verdict": (3, 0, []),
    "as the verdict is written": (3, 1, []),
    "before the verdict is folded": (3, 1, []),
    "before the attempts are forgotten": (3, 1, []),
}
"""Evaluations and verdicts in Dagster's log, and the ledger's verdicts, just after the kill."""


@pytest.mark.parametrize(("hour", "step"), list(enumerate(STEPS, 1)), ids=[one.replace(" ", "_") for one in STEPS])
def test_a_version_has_one_verdict_which_is_told_once(
    installation: Installation, database_of: Database, tmp_path: Path, hour: int, step: str
) -> None:
    land(installation, hour, *BAD)
    instance, partition = at(hour), f"2013-01-01T{hour:02}:00Z"
    gate, operation, condition = STEPS[step]
    is_answered = step == "as the verdict is written"
    if operation is None:
        killed_at(database_of, gate, partition, tmp_path / "log", is_answered=is_answered)
    else:
        with database_of.gate(operation, condition):
            killed_at(database_of, gate, partition, tmp_path / "log", is_answered=is_answered)
    ((evaluated,), (logged,)) = (database_of.ask(sql, partition) for sql in (EVALUATED, LOGGED))
    assert (evaluated, logged, database_of.ask(VERDICTS, instance)) == LEFT[step]
    database_of.ask(DUE)
    assert checking(installation).run(installation.ledger) == (1 - logged, [])
    for _ in range(2):  # and no later pass finds more
        assert database_of.ask(VERDICTS, instance) == ["INVALID"]
        assert database_of.ask(TOLD, instance) == ["INVALID"]
        assert database_of.ask(LOGGED, partition) == [1]
        assert database_of.ask(EVALUATED, partition) == [3]
        assert database_of.ask(UNCHECKED) == [0]
        assert database_of.ask(ATTEMPTS) == [0]
        database_of.ask(DUE)
        assert checking(installation).run(installation.ledger) == (0, [])


def test_a_rebuild_tells_nothing_again(installation: Installation, database_of: Database) -> None:
    land(installation, 11, *GOOD)
    checking(installation).run(installation.ledger)
    every = "SELECT instance, event FROM falcon.notification_events ORDER BY id"
    rows = "SELECT * FROM falcon.quality_verdicts ORDER BY instance"
    before = database_of.ask(every), database_of.ask(rows)
    assert before[0][-1] == (at(11), "VALID")
    installation.ledger.rebuild()
    assert (database_of.ask(every), database_of.ask(rows)) == before
