"""What targets of the Makefile do that no other test runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.processes import CHECKOUT

MADE = (
    *(
        ".falcon/postgres",
        ".venv/bin",
        ".pytest_cache",
        ".tmp_dagster_home_1",
        "falcon_assets.egg-info",
        "build",
        "site",
    ),
    *("spark-warehouse", "package/__pycache__", "logs", ".logs_queue"),
)


def test_make_clean(tmp_path: Path) -> None:
    """It removes what was made in the checkout, and nothing else."""
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    for folder in (*MADE, "hello"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "derby.log").touch()
    (tmp_path / "package" / "mine.py").touch()
    (tmp_path / ".env").write_text(f"MINE=1\nDAGSTER_HOME={tmp_path}\n")
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == [".env", "Makefile", "hello", "package"]
    assert [one.name for one in (tmp_path / "package").iterdir()] == ["mine.py"]
    assert (tmp_path / ".env").read_text() == "MINE=1\n"
    (tmp_path / ".env").write_text(f"DAGSTER_HOME={tmp_path}\n")
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize(("target", "port"), [("up", "--port 3000"), ("metastore", "metastore 9083")])
def test_the_ports_that_make_help_tells(target: str, port: str) -> None:
    def would_run(*more: str) -> str:
        command = ["make", "--no-print-directory", "--dry-run", target, *more]
        return subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout

    assert would_run().strip().endswith(port)
    assert would_run("PORT=4711").strip().endswith("4711")
