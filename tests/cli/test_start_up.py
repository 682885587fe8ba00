"""Commands that only read start without what takes seconds to load."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.features.lineage.lineage_rows import version_row, write_versions
from tests.operations.entities import RETAINED

CHECKING = {"yaml", "falcon_assets.catalog.checks"}
"""What needs only who reads definitions that are not kept."""
READING = (
    "validate",
    "entity show reader",
    "notification list",
    "events tail --cluster primary",
    "lineage show raw 2013-01-01T00:00Z",
)
"""Who reads definitions in any case: those of the tree, or recorded ones."""
LOOKING = ("explain reader 2013-01-01T02:00Z", "instance params reader 2013-01-01T02:00Z")
"""Who asks stores what is there."""
CLOCK = "2013-01-01T05:30Z"
HEAVY = {"dagster", "pyspark", "networkx", "alembic", "fsspec", "babel"}
PROGRAM = """
import atexit, sys
from falcon_assets.surface.cli.main import main
atexit.register(lambda: print(sorted({heavy} & sys.modules.keys()), file=sys.stderr))
main()
"""


@pytest.fixture(scope="module")
def environ(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dict[str, str]:
    """Of an installation whose ledger has all of Dagster's history."""
    write_entities({"all.yaml": RETAINED, "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", CLOCK)
        with open_installation() as installation:
            installation.ledger.catch_up()
            assert installation.all_entities.processes  # and they are kept
            write_versions(installation, [version_row(1, "raw", "v1")], {})
    return {**os.environ, "FALCON_CLOCK": CLOCK}


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "validate",
        "entity list",
        "entity show reader",
        "entity status reader",
        "entity dependency reader",
        "entity summary",
        "instance list",
        "instance list --type feed",
        "instance status reader",
        *LOOKING,
        "instance running",
        "instance summary",
        "instance search read",
        "metrics",
        "notification list",
        "events tail --cluster primary",
        "lineage show raw 2013-01-01T00:00Z",
    ],
)
def test_what_a_command_does_not_load(environ: dict[str, str], words: str) -> None:
    heavy = (HEAVY | (CHECKING if words not in READING else set())) - ({"fsspec"} if words in LOOKING else set())
    command = [sys.executable, "-c", PROGRAM.format(heavy=heavy), *words.split()]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
