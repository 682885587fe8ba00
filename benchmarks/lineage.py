"""Questions about a graph of 1,000,000 version edges, and the same with networkx; how fast history is folded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

BAR_SECONDS, BAR_PLAN, BAR_FOLD = 1.0, 5.0, 5.0
LAYERS, FEEDS, HOURS, FOLDED = 10, 28, 1_000, 10_000
_CLUSTER = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
"""


def measure() -> list[Line]:
    """Each version is made from two feeds of the layer below, of its hour and of the one before.

    With networkx the edges are loaded, and then asked; ours asks the database, versions included.
    """
    found = _measured()
    up, down, fold = f"lineage show over {found['edges']:,.0f} edges", "  lineage impact", "  folded once"
    lines = []
    for what, ours, plain in ((up, "up", "networkx up"), (down, "down", "networkx down")):
        lines.append(Line(f"{what}: {found[f'{ours} versions']:,.0f} versions", (found[ours],), bar=BAR_SECONDS))
        lines.append(Line("  against networkx, loading included", (found[ours],), (found[plain],)))
    lines.append(Line("  prune-plan", (found["prune"],), bar=BAR_PLAN))
    lines.append(Line("  expire --dry-run, half of the versions gone", (found["expire"],), bar=BAR_PLAN))
    return [*lines, Line(f"{fold}: {FOLDED:,} instances made from two each", (found["fold"],), bar=BAR_FOLD)]


def _measured() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        environ["FALCON_LINEAGE_RETENTION"] = "days(30)"
        Path(folder, "entities").mkdir()
        Path(folder, "entities", "all.yaml").write_text(_CLUSTER)
        command = [sys.executable, "-m", "benchmarks.lineage_graph"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lineage_graph failed:\n{done.stderr[-4000:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured
