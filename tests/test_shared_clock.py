"""The start of a running clock is the same for every process of an installation."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from falcon_assets.errors import SettingsError
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import database_name, load_settings
from falcon_assets.shared_clock import home_clock, keep_clock, shared_start

CLOCK = "2013-01-03T06:00Z@60x"
PROGRAM = "from falcon_assets.settings import load_settings; print(load_settings().clock.tag)"


def environment(home: Path, clock: str = CLOCK) -> dict[str, str]:
    return {"FALCON_HOME": str(home), "FALCON_CLOCK": clock}


def tags_of_processes(home: Path, count: int) -> list[str]:
    """What that many processes, started at once, say about the clock."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [error for _, error in outputs] == [""] * count
    return [output.strip() for output, _ in outputs]


def started(home: Path, clock: str = CLOCK) -> datetime:
    found = load_settings(environment(home, clock)).clock.started
    assert found is not None
    return found


STALE = '{"clock": "2013-01-03T06:00Z@30x", "started": "2020-01-01T00:00:00+00:00"}'


@pytest.mark.parametrize("before", [None, STALE, "{not json"], ids=["new", "another-clock", "damaged"])
def test_processes_that_start_at_once_agree_with_the_file(tmp_path: Path, before: str | None) -> None:
    home = tmp_path / "home"
    if before is not None:
        home.mkdir()
        (home / "clock.json").write_text(before)
    tags = tags_of_processes(home, 4)
    assert len(set(tags)) == 1
    noted = json.loads((home / "clock.json").read_text())
    assert noted["clock"] == CLOCK
    assert tags[0] == load_settings(environment(home)).clock.tag
    assert datetime.fromisoformat(noted["started"]) == started(home)


def test_a_start_that_is_noted_counts(tmp_path: Path) -> None:
    (tmp_path / "clock.json").write_text(json.dumps({"clock": CLOCK, "started": "2026-01-01T12:00:00+00:00"}))
    settings = load_settings(environment(tmp_path, f" {CLOCK} "))
    assert settings.clock.tag == "2013-01-03T06:00:00Z@60x since 2026-01-01T12:00:00Z"
    assert [path.name for path in tmp_path.iterdir()] == ["clock.json"]


@pytest.mark.parametrize(
    "content",
    ["", "\0", b"\xff", "[]", "null", '{"clock": "' + CLOCK + '"}', '{"clock": "' + CLOCK + '", "started": 5}',
     '{"clock": "' + CLOCK + '", "started": "soon"}', '{"clock": "' + CLOCK + '", "started": "2026-01-01T12:00:00"}',
     "[" * 100_000],
    ids=["empty", "nul", "no-utf8", "list", "null", "no-start", "number", "no-time", "no-zone", "deep"],
)  # fmt: skip
def test_a_damaged_file_is_replaced(tmp_path: Path, content: str | bytes) -> None:
    before = datetime.now(UTC)
    (tmp_path / "clock.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert before <= started(tmp_path) <= datetime.now(UTC)
    assert json.loads((tmp_path / "clock.json").read_text())["started"] == started(tmp_path).isoformat()


def test_a_process_stays_with_the_start_that_it_was_told(tmp_path: Path) -> None:
    first = started(tmp_path)
    (tmp_path / "clock.json").unlink()
    assert started(tmp_path) == first


def keep(home: Path, clock: Clock, url: str | None = None) -> None:
    home_clock.cache_clear()
    keep_clock(home, clock, database_name(url))


def untold(home: Path, url: str = "") -> str:
    """The clock of a process that FALCON_CLOCK tells nothing."""
    home_clock.cache_clear()
    return load_settings({"FALCON_HOME": str(home), "FALCON_DATABASE_URL": url}).clock.tag


@pytest.mark.parametrize("clock", [CLOCK, "2013-01-03T06:00Z"], ids=["runs", "stands"])
def test_who_is_told_no_clock_goes_by_the_one_of_the_database(tmp_path: Path, clock: str) -> None:
    told = load_settings(environment(tmp_path, clock)).clock
    assert untold(tmp_path) == ""
    keep(tmp_path, told)
    assert untold(tmp_path) == told.tag
    assert untold(tmp_path, "postgresql://u:hush@h/other") == ""


def test_databases_are_told_apart_without_their_secrets(tmp_path: Path) -> None:
    url = "postgresql://u:hush@h:5432/d"
    keep(tmp_path, Clock(datetime(2013, 1, 3, tzinfo=UTC)), url)
    assert "hush" not in (tmp_path / "clock.json").read_text()
    assert untold(tmp_path, "postgresql+psycopg2://v:other@h:5432/d?connect_timeout=5") == "2013-01-03T00:00:00Z"


def test_another_clock_does_not_take_over_the_one_of_the_database(tmp_path: Path) -> None:
    """Whoever comes with it is refused by the database; those that come later with the old one must find its start."""
    clock = load_settings(environment(tmp_path)).clock
    keep(tmp_path, clock)
    assert started(tmp_path, "2013-06-01T00:00Z@30x") > clock.started  # type: ignore[operator]  # it runs
    shared_start.cache_clear()
    assert load_settings(environment(tmp_path)).clock == clock


@pytest.mark.parametrize("clock", ["", "2013-01-03T06:00Z"], ids=["real", "frozen"])
def test_other_clocks_need_no_file(tmp_path: Path, clock: str) -> None:
    load_settings(environment(tmp_path / "home", clock))
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(SettingsError) as caught:
        load_settings(environment(tmp_path / "home"))
    assert str(caught.value) == (
        f"FALCON_CLOCK: the start of {CLOCK} cannot be kept in {tmp_path}/home/clock.json: Not a directory; "
        "make FALCON_HOME writable"
    )
