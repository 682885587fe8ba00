"""``falcon instance wait``: exit codes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy

from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.operations.entities import RETAINED
from tests.operations.rows import process_row, write
from tests.processes import FALCON, falcon_here
from tests.waiting import wait_until

CLOCK = "2013-01-01T05:30Z"


@pytest.fixture(scope="module")
def environ(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dict[str, str]:
    write_entities({"all.yaml": RETAINED, "a.sql": "SELECT 1"})
    environ = {**os.environ, "FALCON_CLOCK": CLOCK}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", CLOCK)
        with open_installation() as installation:
            write(installation, process_row("reader", 1, "SUCCEEDED"))
    return environ


def test_what_is_there_ends_it_at_once(environ: dict[str, str]) -> None:
    done = falcon_here(environ, "instance", "wait", "reader", "2013-01-01T01:00Z", "--for", "succeeded")
    said = (done.returncode, done.stdout, done.stderr)
    assert said == (0, "reader 2013-01-01T01:00Z on primary is SUCCEEDED\n", "")


def test_what_does_not_come_is_a_failure(environ: dict[str, str]) -> None:
    asked = ["instance", "wait", "reader", "2013-01-01T01:00Z", "--for", "FAILED", "--timeout", "minutes(1)"]
    done = falcon_here(environ, *asked)
    said = (done.returncode, done.stdout, done.stderr)
    assert said == (1, "", "reader 2013-01-01T01:00Z on primary is SUCCEEDED and stays so\n")
    done = falcon_here(environ, *asked, "--json")
    assert (done.returncode, json.loads(done.stdout)["reached"]) == (1, False)


MISTAKES = {
    "duration": ([*("reader", "2013-01-01T01:00Z"), "--timeout", "30m"], 2, "'30m' is not a frequency"),
    "state": ([*("reader", "2013-01-01T01:00Z"), "--for", "DONE"], 2, "'DONE' is not one of"),
    "name": (["rader", "2013-01-01T01:00Z"], 1, "Error: there is no process or feed 'rader'"),
    "state of another kind": (["kept", "2013-01-01T01:00Z", "--for", "KILLED"], 2, "is never KILLED"),
}


@pytest.mark.parametrize(("arguments", "code", "text"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(environ: dict[str, str], arguments: list[str], code: int, text: str) -> None:
    done = falcon_here(environ, "instance", "wait", *arguments)
    assert (done.returncode, text in done.stderr, "Traceback" in done.stderr) == (code, True, False)


def test_ctrl_c_ends_it(environ: dict[str, str], settings: Settings) -> None:
    named = {**environ, "PGAPPNAME": "falcon-waits"}
    engine = sqlalchemy.create_engine(environ["FALCON_DATABASE_URL"], poolclass=sqlalchemy.NullPool)
    query = (
        "SELECT state_change FROM pg_stat_activity WHERE application_name = 'falcon-waits' "
        "AND state = 'idle' AND state_change < clock_timestamp() - interval '1 second'"  # it asks every two
    )

    asked = set[object]()

    def waits() -> bool:
        """It has asked more than once: at first it may be idle because it still loads something."""
        assert waiting.poll() is None
        with engine.connect() as connection:
            asked.update(connection.execute(sqlalchemy.text(query)).scalars())
        return len(asked) > 1

    waiting = subprocess.Popen(
        [FALCON, "instance", "wait", "reader", "2013-01-01T02:00Z"],
        env=named,
        cwd=settings.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(waits, 120)
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    assert (waiting.returncode, out, err) == (130, "", "")
