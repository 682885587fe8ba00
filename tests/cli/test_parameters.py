"""Parameters of commands that cannot be are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import environ_with, falcon_here


@pytest.mark.parametrize("command", [["validate"], ["import", "xml"]], ids=["validate", "import"])
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, command: list[str]) -> None:
    said = falcon_here(environ_with(FALCON_HOME=str(tmp_path)), *command, "n" * 5000)
    assert said.returncode == 2
    assert said.stderr.endswith("no file can have this name: File name too long\n")
