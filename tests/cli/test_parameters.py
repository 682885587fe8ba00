"""Parameters of commands that cannot be are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from falcon_assets.surface.cli.parameters import PROPERTIES
from tests.processes import environ_with, falcon_here


@pytest.mark.parametrize("command", [["validate"], ["import", "xml"]], ids=["validate", "import"])
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, command: list[str]) -> None:
    said = falcon_here(environ_with(FALCON_HOME=str(tmp_path)), *command, "n" * 5000)
    assert said.returncode == 2
    assert said.stderr.endswith("no file can have this name: File name too long\n")


def test_properties_are_pairs_or_files_of_them(tmp_path: Path) -> None:
    file = tmp_path / "told.properties"
    file.write_text("# this time\n\nfactor = 3\nquery=a=b\n")
    assert PROPERTIES.convert("factor=3=4", None, None) == {"factor": "3=4"}
    assert PROPERTIES.convert(str(file), None, None) == {"factor": "3", "query": "a=b"}
    file.write_text("a=b\nno pair\n")
    with pytest.raises(click.BadParameter, match=r"told.properties:2: write KEY=VALUE$"):
        PROPERTIES.convert(str(file), None, None)
    with pytest.raises(click.BadParameter, match="'nowhere' is no KEY=VALUE, and no file that can be read: No such"):
        PROPERTIES.convert("nowhere", None, None)
