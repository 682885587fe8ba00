"""Two ``falcon serve --only daemon`` with one database, as on two machines: one acts, the other takes over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import falcon_here
from tests.two_machines import Pair, two_machines


@pytest.fixture
def pair(database: str, tmp_path: Path) -> Iterator[Pair]:
    with two_machines(tmp_path, database) as found:
        yield found


@pytest.mark.soak
def test_the_other_one_takes_over_and_nothing_is_started_twice(pair: Pair) -> None:
    active = pair.active()
    (waiting,) = (one for one in pair.machines if one is not active)
    pair.wait(lambda: waiting.says(r"waits: process \d+ on \S+ is the active daemon"))
    said = falcon_here(active.environ, "doctor", "--only", "daemon").stdout
    assert f"process {active.daemon} on " in said
    assert "has been the active one since" in said
    assert "has waited since" in said

    began, killed = time.monotonic(), active.daemon
    os.kill(killed, signal.SIGKILL)
    pair.wait(lambda: waiting.says("this daemon is active now"))
    assert pair.active() is waiting
    print(f"the other one counts {time.monotonic() - began:.1f} s after a kill")  # noqa: T201 - a measurement

    pair.wait(lambda: active.daemon != killed and active.says(r"waits: process"))
    began, stopped = time.monotonic(), waiting.daemon
    os.kill(stopped, signal.SIGSTOP)
    assert pair.active() is active
    print(f"the other one counts {time.monotonic() - began:.1f} s after a stop")  # noqa: T201 - a measurement
    os.kill(stopped, signal.SIGCONT)
    pair.wait(lambda: waiting.says(r"process \d+ on \S+ has become the active daemon: this one ends"))
    pair.wait(lambda: waiting.says(r"ended \(exit code 3\)"))
    assert pair.active() is active
    keys = pair.keys()
    assert keys == list(range(1, len(keys) + 1)), "each number once"
    assert "Traceback" not in active.log + waiting.log


@pytest.mark.soak
def test_a_daemon_of_an_older_version_ends_for_one_of_the_version_that_has_migrated_the_tables(pair: Pair) -> None:
    active = pair.active()
    (before,) = pair.rows("SELECT version_num FROM falcon.alembic_version")
    pair.write("UPDATE falcon.alembic_version SET version_num = '9999'")
    pair.wait(lambda: active.says(r"this daemon ends: the tables of the ledger are of revision 9999"))
    pair.wait(lambda: all(one.says(r"\| the tables of the ledger are of revision 9999") for one in pair.machines))
    pair.write(f"UPDATE falcon.alembic_version SET version_num = '{before[0]}'")
    pair.active()  # as soon as a daemon of the tables' version is started
    keys = pair.keys()
    assert keys == list(range(1, len(keys) + 1)), "each number once"
    assert "Traceback" not in "".join(one.log for one in pair.machines)
