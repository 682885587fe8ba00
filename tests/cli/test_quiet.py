"""What workflows print goes to the log, not to the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from falcon_assets.errors import SettingsError
from falcon_assets.surface.cli.quiet import output_to, terminal_number


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


def test_the_log_of_the_first_command_of_all(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from falcon_assets.surface.cli.quiet import output_to
with output_to(Path({str(tmp_path)!r}, "home", "try.log")) as terminal:
    print("for the log")
    print("for people", file=terminal)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("for people\n", "")
    assert (tmp_path / "home" / "try.log").read_text() == "for the log\n"


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(SettingsError, match=r"^FALCON_HOME .*/file/x cannot be used: Not a directory"),
        output_to(tmp_path / "file" / "x" / "try.log"),
    ):
        pass
