"""The environment for a newer Dagster."""

from __future__ import annotations

import subprocess
from pathlib import Path

import falcon_assets
from tests.orchestration.dagster_internals.newest import layer


def test_what_is_installed_in_the_layer_comes_first(tmp_path: Path) -> None:
    python = layer(tmp_path / "layer")
    (own,) = (tmp_path / "layer").glob("lib/*/site-packages")
    (own / "dagster_shared.py").write_text("")
    program = "import dagster_shared, falcon_assets, pytest; print(dagster_shared.__file__, falcon_assets.__file__)"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert found.split() == [str(own / "dagster_shared.py"), falcon_assets.__file__]
