"""Chains of processes that are longer than Python's stack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.builders import cluster_yaml, feed_yaml, process_yaml

LONG = 400
LOAD = """
import sys
import falcon_assets
defs = falcon_assets.build_definitions()
sys.setrecursionlimit(sys.getrecursionlimit() - 880)  # as a chain of 880 more would do
(job,) = (one for one in defs.get_repository_def().get_all_jobs() if one.name.startswith("__ASSET"))
print(len(job.nodes))
"""


def test_a_chain_is_no_problem_for_dagster(tmp_path: Path) -> None:
    feeds = [feed_yaml(f"f{number}") for number in range(LONG + 1)]
    processes = [process_yaml(f"p{number}", f"f{number}", f"f{number + 1}") for number in range(LONG)]
    entities = tmp_path / "entities"
    entities.mkdir()
    (entities / "all.yaml").write_text("".join([cluster_yaml("primary"), *feeds, *processes]))
    (entities / "a.sql").write_text("SELECT * FROM raw")
    told = {"FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(entities)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env={**os.environ, **told}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [str(LONG)], done.stderr[-2000:]
