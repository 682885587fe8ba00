"""The demo, on real flights, as a whole: a day, and the same day again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.settings import Settings

CHECKOUT = Path(__file__).parents[2]
FALCON = str(Path(sys.executable).parent / "falcon")


@pytest.fixture(scope="module")
def outputs(settings: Settings) -> list[subprocess.CompletedProcess[str]]:
    """What ``falcon demo`` says about the second and third day of 2013, and then says again."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_ENTITY_DEFS", str(CHECKOUT / "entity_defs"))
        command = [FALCON, "demo", "--start", "2013-01-06T00:00Z", "--days", "1"]
        return [
            subprocess.run(command, check=False, capture_output=True, text=True, cwd=settings.home) for _ in range(2)
        ]


def rows(output: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    """The table at the end: (feed, cluster) -> instances, records, bytes."""
    found = re.findall(r"│ (\S+) +│ (\S+) +│ +(\S+) │ +(\S+) │ +([^│]+?) │", output)
    return {(feed, cluster): (count, records, size) for feed, cluster, count, records, size in found}


def test_it_lands_computes_and_tells(outputs: list[subprocess.CompletedProcess[str]]) -> None:
    first = outputs[0]
    assert first.returncode == 0, first.stdout + first.stderr
    table = rows(first.stdout)
    assert {key: row[0] for key, row in table.items()} == {
        ("raw-flights", "primary"): "24",
        ("raw-flights", "backup"): "0",
        ("raw-weather", "primary"): "24",
        ("raw-weather", "backup"): "24",
        ("delays-hourly", "primary"): "24",
        ("delays-daily", "primary"): "1",
        ("carriers-weekly", "primary"): "0",
        ("weather-daily", "primary"): "1",
        ("weather-daily", "backup"): "1",
    }
    assert table["weather-daily", "primary"][1] == "3"


def test_again_it_does_no_work_twice_and_says_so(
    outputs: list[subprocess.CompletedProcess[str]], instance: dg.DagsterInstance
) -> None:
    first, again = outputs
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Everything was there already: nothing landed, nothing was computed again." in again.stdout
    assert rows(again.stdout) == rows(first.stdout)
    key = dg.AssetKey(["primary", "delays-hourly"])
    assert len(instance.fetch_materializations(key, limit=100).records) == 24
