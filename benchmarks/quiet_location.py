"""What ``dagster dev`` costs with thousands of entities of which nothing changes, and how fast it is when one does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from benchmarks.landing_sides import free_port, with_no_survivors
from benchmarks.measure import Line

BAR = 3.0
"""Per cent of a core."""
PIPELINES, CHAINS, LENGTH = 10, 100, 19
"""Chains of processes, each of which begins with a feed that lands: 2,000 feeds and 1,900 processes."""
HOURS = 171
"""How long nothing has landed: 325,000 instances wait."""
SECONDS = 60.0
_STEP_SECONDS, _SETTLED_PER_CENT, _GIVE_UP_SECONDS = 20.0, 20.0, 400.0
"""It has decided on all when it uses less than that in so long, with its web server and its daemon up."""
_BIN = Path(sys.executable).parent
_CHECKOUT = Path(__file__).parents[1]
_CLUSTER = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
"""
_VALIDITY = "clusters: [{{name: primary, validity: {{start: {first}, end: 2099-01-01T00:00Z}}}}]\n"
_FEED = (
    "---\nkind: feed\nname: feed-{number}-{step}\nfrequency: hours(1)\navailability_flag: _SUCCESS\n"
    'locations: {{data: "/feed-{number}-{step}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}\n' + _VALIDITY
)
_PROCESS = (
    "---\nkind: process\nname: process-{number}-{step}\nfrequency: hours(1)\ntimeout: days(60)\n"
    "pipelines: [pipeline-{pipeline}]\n"
    'inputs: [{{name: read, feed: feed-{number}-{step}, start: "now(0,0)", end: "now(0,0)"}}]\n'
    'outputs: [{{name: made, feed: feed-{number}-{following}, instance: "now(0,0)"}}]\n'
    "workflow: {{engine: spark-sql, path: copy.sql}}\nschedule: true\n" + _VALIDITY
)


def write_location(folder: Path) -> None:
    """The definitions, with ``dagster.yaml`` and ``workspace.yaml`` as we ship them."""
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS)
    root = folder / "entity_defs"
    root.mkdir(parents=True)
    (root / "cluster.yaml").write_text(_CLUSTER)
    (root / "copy.sql").write_text("SELECT * FROM read\n")
    for number in range(CHAINS):
        known = {"number": number, "pipeline": number % PIPELINES, "first": f"{first:%Y-%m-%dT%H:%MZ}"}
        parts = [_FEED.format(**known, step=step) for step in range(LENGTH + 1)]
        parts += [_PROCESS.format(**known, step=step, following=step + 1) for step in range(LENGTH)]
        (root / f"chain-{number}.yaml").write_text("".join(parts))
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(_CHECKOUT / name, folder)


def measure() -> list[Line]:
    """Its processor time, when all has been decided once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_location(folder)
        with dagster_dev(folder) as process:
            _settle(process.pid)
            used = used_by(process.pid)
            time.sleep(SECONDS)
            shares = {what: 100 * (now - used[what]) / SECONDS for what, now in used_by(process.pid).items()}
    whole = Line("quiet location of 2,000 feeds and 1,900 processes, of a core", (sum(shares.values()),), (), BAR, " %")
    return [whole, *(Line(f"  {what}", (share,), unit=" %") for what, share in shares.items())]


def _settle(pid: int) -> None:
    give_up, before = time.monotonic() + _GIVE_UP_SECONDS, used_by(pid)
    while time.monotonic() < give_up:
        time.sleep(_STEP_SECONDS)
        now = used_by(pid)
        if "daemon" in before and 100 * (now - before).total() / _STEP_SECONDS < _SETTLED_PER_CENT:
            return
        before = now
    raise SystemExit(f"the location did not come to rest in {_GIVE_UP_SECONDS:.0f} s")


@contextmanager
def dagster_dev(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``dagster dev`` in the folder."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
    with (folder / "dev.log").open("wb") as log:
        process = subprocess.Popen(
            [str(_BIN / "dagster"), "dev", "--host", "127.0.0.1", "--port", str(free_port()), "-w", "workspace.yaml"],
            cwd=folder,
            env=own | {"PYTHONPATH": str(_CHECKOUT), "DAGSTER_HOME": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            finally:
                with_no_survivors(process.pid)


def used_by(pid: int) -> Counter[str]:
    """Processor seconds of its processes until now, by what they are."""
    found = Counter[str]()
    for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        times, command = one.cpu_times(), " ".join(one.cmdline())
        words = {
            "-m dagster code-server": "code server",
            "-m dagster api grpc": "code server",
            "-m dagster_webserver": "webserver",
            "dagster._daemon": "daemon",
            "dagster dev": "dagster dev",
            "postgres": "postgres",
        }
        what = next((what for word, what in words.items() if word in command), "runs")
        found[what] += times.user + times.system + times.children_user + times.children_system
    return found
