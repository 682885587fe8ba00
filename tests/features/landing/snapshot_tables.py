"""Tables that are replaced in place, as if at some time, and what is done with them."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.foreground.foreground import ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display
from falcon_assets.surface.foreground.run import run_workloads


def refresh(home: Path, text: str, time: str) -> None:
    """Replaces the table of carriers, as if at that time."""
    folder = home / "data/primary/carriers"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_SUCCESS").unlink(missing_ok=True)
    (folder / "part.csv").write_text(text)
    seconds = parse_instant(time).timestamp()
    os.utime(folder / "part.csv", (seconds, seconds))
    (folder / "_SUCCESS").touch()


def run(installation: Installation) -> ForegroundResult:
    display = Display(*[lambda *told: None] * 5)
    given = (installation.entities.workloads, None)
    return run_workloads(installation, installation.ledger, display, lambda cluster: None, *given)


def said(*command: str) -> str:
    """What a command prints."""
    found = CliRunner().invoke(falcon, command)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.output
    return " ".join(found.output.split())
