"""The demo, on real flights, as a whole: a day, and the same day again; on a warm server and in a Spark of its own."""

from __future__ import annotations

import re
import subprocess

import dagster as dg
import pytest

from falcon_assets.compute.spark.connect_server import status
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.model.instant import parse_instant
from falcon_assets.settings import Settings
from tests.examples.sandbox import PROGRAM, copy_demo, example_environ
from tests.processes import falcon_here, free_port, listens
from tests.records import read_record

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def environ(settings: Settings, port: int) -> dict[str, str]:
    """The clock is the real one: it must not matter to the demo."""
    return example_environ(
        FALCON_HOME=str(settings.home),
        FALCON_ENTITY_DEFS=str(copy_demo(settings.home, primary=f"sc://127.0.0.1:{port}")),
        FALCON_DATABASE_URL=settings.database_url or "",
        COLUMNS="200",
    )


@pytest.fixture(scope="module")
def outputs(settings: Settings, environ: dict[str, str]) -> list[subprocess.CompletedProcess[str]]:
    """What ``make demo`` says about the first day of 2013, and then says again."""
    command = [*PROGRAM, "demo", "--days", "1"]
    return [
        subprocess.run(command, check=False, capture_output=True, text=True, cwd=settings.home, env=environ)
        for _ in range(2)
    ]


def rows(output: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    """The table at the end: (feed, cluster) -> instances, records, bytes."""
    found = re.findall(r"│ (\S+) +│ (\S+) +│ +(\S+) │ +(\S*) │ +([^│]+?) │", output)
    return {(feed, cluster): (count, records, size) for feed, cluster, count, records, size in found}


def test_it_lands_computes_and_tells(outputs: list[subprocess.CompletedProcess[str]]) -> None:
    first = outputs[0]
    assert (first.returncode, first.stderr) == (0, ""), first.stdout + first.stderr
    table = rows(first.stdout)
    assert {key: row[0] for key, row in table.items()} == {
        ("raw-flights", "primary"): "24",
        ("raw-flights", "backup"): "24",
        ("raw-weather", "primary"): "18",  # six hours of that day were never observed
        ("raw-weather", "backup"): "18",
        ("delays-hourly", "primary"): "24",
        ("delays-daily", "primary"): "1",
        ("carriers-weekly", "primary"): "0",
        ("weather-daily", "primary"): "1",
        ("weather-daily", "backup"): "1",
    }
    assert table["weather-daily", "primary"][1] == "3"
    assert "2013-01-01T22:30Z: flights came late: raw-flights 2013-01-01T20:00Z" in first.stdout
    assert "2013-01-01T22:30Z: flights were corrected, after the cut-off: raw-flights 2013-01-01T16:00Z" in first.stdout
    assert first.stdout.splitlines()[-1] == "62 instances landed, 53 were computed or copied. Look at them: make up"


def test_late_flights_are_computed_again_and_what_comes_after_the_cut_off_is_noted(
    outputs: list[subprocess.CompletedProcess[str]], instance: dg.DagsterInstance
) -> None:
    assert [one.returncode for one in outputs] == [0, 0]
    key = dg.AssetKey(["primary", "delays-hourly"])

    def of(hour: str) -> dg.AssetRecordsFilter:
        return dg.AssetRecordsFilter(key, asset_partitions=[f"2013-01-01T{hour}:00Z"])

    late, first = instance.fetch_materializations(of("20"), limit=10).records
    again, before = read_record(FeedInstanceAvailable, late), read_record(FeedInstanceAvailable, first)
    (cause,) = again.late
    assert (cause.input, cause.instance) == ("flights", parse_instant("2013-01-01T20:00Z"))
    assert again.version != before.version
    noted = [one.asset_observation for one in instance.fetch_observations(of("16"), limit=10).records]
    assert noted[0] and "after its cut-off" in (noted[0].description or "")
    assert len(instance.fetch_materializations(of("16"), limit=10).records) == 1


def test_again_it_does_no_work_twice_and_says_so(
    outputs: list[subprocess.CompletedProcess[str]], instance: dg.DagsterInstance
) -> None:
    first, again = outputs
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[-1] == (
        "Everything was there already: nothing landed, nothing was computed or copied again."
    )
    assert rows(again.stdout) == rows(first.stdout)
    key = dg.AssetKey(["primary", "delays-hourly"])
    assert len(instance.fetch_materializations(key, limit=100).records) == 25  # one hour for late flights


def test_nothing_timed_out_and_nothing_else_is_known(
    outputs: list[subprocess.CompletedProcess[str]], environ: dict[str, str]
) -> None:
    assert [one.returncode for one in outputs] == [0, 0]
    known = falcon_here(environ, "ledger", "status").stdout
    assert re.findall(r"│ (\S[^│]*?) +│ (\w+) +│ +(\d+) │\n", known.partition("Process instances")[2]) == [
        ("daily-delays", "primary", "1"),
        ("daily-weather", "backup", "1"),
        ("daily-weather", "primary", "1"),
        ("hourly-delays", "primary", "24"),
        ("raw-flights from primary", "backup", "24"),
    ]


def test_the_server_that_it_started_is_gone(
    outputs: list[subprocess.CompletedProcess[str]], settings: Settings, port: int
) -> None:
    assert outputs
    assert (settings.home / "spark" / "server.log").is_file()
    assert status(settings.home) is None
    assert not listens(port)
