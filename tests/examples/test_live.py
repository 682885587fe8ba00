"""The live demo as a real process on a fast clock: hours land when the clock reaches them, and Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from falcon_assets.settings import load_settings
from tests.examples.sandbox import PROGRAM, example_environ
from tests.processes import CHECKOUT
from tests.waiting import wait_until

PATIENCE = 600
FLIGHTS = "data/primary/raw/flights"
WEATHER = "data/backup/raw/weather"


def environment(home: Path, clock: str) -> dict[str, str]:
    return example_environ(FALCON_HOME=str(home), FALCON_ENTITY_DEFS=str(CHECKOUT / "entity_defs"), FALCON_CLOCK=clock)


def land(home: Path, clock: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "live", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(home, clock), timeout=PATIENCE
    )


@contextmanager
def live(home: Path, clock: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*PROGRAM, "live", "--days", "1"],
        env=environment(home, clock),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def landed(home: Path, feed: str) -> list[str]:
    """The hours that are there, complete: ``2013/01/02/05``."""
    return sorted(str(flag.parent.relative_to(home / feed)) for flag in (home / feed).rglob("_SUCCESS"))


def wait_for_hours_after(home: Path, hour: str, process: subprocess.Popen[str]) -> None:
    """Waits until both feeds have an hour later than that one, however late the program got going."""

    def there() -> bool:
        assert process.poll() is None, process.communicate()
        return all(any(there > hour for there in landed(home, feed)) for feed in (FLIGHTS, WEATHER))

    wait_until(there, PATIENCE, lambda: landed(home, FLIGHTS))


def test_hours_land_as_the_clock_reaches_them(tmp_path: Path) -> None:
    clock = "2013-01-02T04:30Z@3600x"  # an hour per second
    with live(tmp_path, clock) as process:
        wait_for_hours_after(tmp_path, "2013/01/02/04", process)
        newest = landed(tmp_path, FLIGHTS)[-1]
        wait_for_hours_after(tmp_path, newest, process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0].startswith("The clock shows 2013-01-02T")
    assert lines[-1] == "Stopped."
    shown = load_settings(environment(tmp_path, clock)).now()
    there = [datetime.strptime(hour, "%Y/%m/%d/%H").replace(tzinfo=UTC) for hour in landed(tmp_path, FLIGHTS)]
    assert there[0] >= datetime(2013, 1, 1, 5, tzinfo=UTC)  # a day back from the start, at the earliest
    assert there == [there[0] + timedelta(hours=count) for count in range(len(there))]
    assert there[-1] <= shown
    assert not (tmp_path / "postgres").exists()  # Dagster was told nothing
    assert not (tmp_path / "data/backup/raw/flights").exists()  # a target lands by replication


# 22: the hour a day ago has just passed, one is there; nobody observed the weather on that day.
def test_what_is_there_is_left_as_it_is_and_the_end_is_said(tmp_path: Path) -> None:
    there = tmp_path / FLIGHTS / "2013/12/31/23"
    there.mkdir(parents=True)
    for name in ("_SUCCESS", "mine.json"):
        (there / name).write_text("")
    result = land(tmp_path, "2014-01-01T00:00Z@1x", "--days", "1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "The clock shows 2014-01-01T00:00Z; Ctrl-C stops.",
        "2014-01-01T00:00Z: landed raw-flights 22",
        "At 2014-01-01T00:00Z nothing is left to land.",
        f"To start the clock anew, stop everything and remove {tmp_path}/clock.json",
    ]
    assert sorted(path.name for path in there.iterdir()) == ["_SUCCESS", "mine.json"]


@pytest.mark.parametrize("clock", ["", "2013-01-03T06:00Z"], ids=["real", "frozen"])
def test_it_needs_a_clock_that_runs(tmp_path: Path, clock: str) -> None:
    result = land(tmp_path, clock)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: this needs a clock that runs through 2013, when the flights were: "
        "set FALCON_CLOCK=2013-01-02T00:00Z@120x, for this command and for Dagster\n"
    )
    assert list(tmp_path.iterdir()) == []
