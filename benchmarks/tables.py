"""Tables of a Hive Metastore: 1,000 partitions published, against Spark's SQL; 10,000 partitions collected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Line
from benchmarks.tables_published import OWN, PLAIN, TOGETHER
from examples.tables import metastore

PUBLISHED_BAR = 0.05
"""Twenty times faster."""
COLLECTED_BAR = 5.0
COLLECTED = 10_000
_READY = " is ready\n"


def measure() -> list[Line]:
    """Both sides publish in turn into one table; Spark's publishes fewer, and is measured per partition as ours is."""
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder)) as endpoint:
        published = _told("benchmarks.tables_published", endpoint, folder)
        collected = _told("benchmarks.tables_collected", endpoint, folder, str(COLLECTED))
    plain = tuple(published["plain"])
    against = f"against ALTER TABLE ADD PARTITION (of {PLAIN} in between)"
    together = f"publish a partition, of {OWN:,} in instances of {TOGETHER}, {against}"
    return [
        Line(together, tuple(published["together"]), plain, PUBLISHED_BAR),
        Line(f"  of {OWN:,} instances in a row, each of them one", tuple(published["ours"]), plain),
        Line(f"find {COLLECTED:,} partitions and their versions", tuple(collected["seen"]), bar=COLLECTED_BAR),
        Line("  collect them for the first time, with an event of Dagster's for each", tuple(collected["first"])),
    ]


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """A metastore of its own; gives its endpoint."""
    command = [sys.executable, metastore.__file__, str(folder / "metastore"), "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder)
    assert server.stdout is not None
    try:
        said = server.stdout.readline()
        if not said.endswith(_READY):
            raise SystemExit("the metastore did not start")
        yield said.removesuffix(_READY)
    finally:
        server.terminate()
        server.wait(30)


def _told(module: str, endpoint: str, folder: str, *more: str) -> dict[str, list[float]]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
    environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
    command = [sys.executable, "-m", module, endpoint, folder, *more]
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr[-4000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found
