"""What workflows print goes to the log, not to the terminal."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click
import pytest

from falcon_assets.cli.quiet import output_to, terminal_number


def test_only_what_is_meant_for_the_terminal_goes_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    click.echo("before")
    with output_to(log) as terminal:
        click.echo("printed by a workflow")
        subprocess.run(["/bin/echo", "by a program"], check=True)
        click.echo("shown", file=terminal)
        os.write(terminal_number(), b"last words\n")
    click.echo("after")
    assert sorted(capfd.readouterr().out.splitlines()) == ["after", "before", "last words", "shown"]
    assert sorted(log.read_text().splitlines()) == ["by a program", "printed by a workflow"]
    assert log.stat().st_mode & 0o777 == 0o600
    assert terminal_number() == 1
