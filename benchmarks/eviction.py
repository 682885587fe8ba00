"""Retention: planning it for 100,000 instances; deleting 10,000 instances, and ``rm -rf`` of the same tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.measure import Line, Steps, alternate, line_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.kinds.kind_of import kind_of

PLANNED, DELETED = 100_000, 10_000
PLAN_BAR_SECONDS = 2
DELETE_BAR = 2.0
"""Half the speed of ``rm -rf``."""
ROUNDS = 3
START = parse_instant("2000-01-01T00:00Z")
VALIDITY = {"start": "2000-01-01T00:00Z", "end": "2099-01-01T00:00Z"}
CLUSTER = Cluster.model_validate(
    {
        "kind": "cluster",
        "name": "primary",
        "interfaces": {"write": {"endpoint": "data"}, "execute": {"endpoint": "local[2]"}},
    }
)


def measure() -> list[Line]:
    """Both actions are planned; deleting includes listing the tree, the plan, and freeing the space."""
    lines = [
        Line(f"plan retention of {PLANNED:,} instances, {action}", tuple(_plan(action) for _ in range(ROUNDS)), bar=bar)
        for action, bar in (("delete", PLAN_BAR_SECONDS), ("archive", PLAN_BAR_SECONDS))
    ]
    with tempfile.TemporaryDirectory() as folder:
        rounds = list(alternate(ROUNDS, lambda: _evict(Path(folder)), lambda: _rm(Path(folder))))
    passes = [_pass() for _ in range(ROUNDS)]
    return [
        *lines,
        line_of(f"delete {DELETED:,} instances, against rm -rf", rounds, ["evict", "purge"], DELETE_BAR),
        line_of("  until readers see none of them", rounds, ["evict"]),
        line_of("  with finding and planning them", rounds, ["find", "evict", "purge"]),
        Line("  as a run, with an event for each", tuple(one["pass"] for one in passes)),
        Line("  until the ledger knows them", tuple(one["fold"] for one in passes)),
    ]


def _feed(action: str) -> Feed:
    archive = {"archive_to": "/old/${YEAR}/${MONTH}/${DAY}/${HOUR}"} if action == "archive" else {}
    retention = {"limit": "months(3)", "action": action, "keep_last": 10, "minimum_age": "hours(6)", **archive}
    return Feed.model_validate(
        {
            "kind": "feed",
            "name": "raw",
            "frequency": "hours(1)",
            "availability_flag": "_SUCCESS",
            "schedule": True,
            "locations": {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
            "clusters": [{"name": CLUSTER.name, "validity": VALIDITY, "retention": retention}],
        }
    )


def _plan(action: str) -> float:
    """Seconds, with two holds and a landing time for each instance."""
    paths = InstancePaths(_feed(action), CLUSTER)
    hours = [START + timedelta(hours=hour) for hour in range(PLANNED)]
    found = [StoredInstance(hour, (StoredLocation("data", paths.data(hour), "/raw"),)) for hour in hours]
    needed, unreplicated = dict.fromkeys(hours[::100], "needed"), dict.fromkeys(hours[50::100], "not replicated")
    landed = {hour: hour + timedelta(minutes=5) for hour in hours}
    started = time.perf_counter()
    verdicts = plan_eviction(paths, found, hours[-1], [needed.get, unreplicated.get], landed.get)
    seconds = time.perf_counter() - started
    assert sum(verdict.action == action for verdict in verdicts) > PLANNED * 0.9
    return seconds


def _evict(folder: Path) -> Steps:
    root = _tree(folder)
    store, feed = ClusterStore(CLUSTER, folder, {}), _feed("delete")
    started = time.perf_counter()
    found = stored_instances(store, feed)
    verdicts = plan_eviction(InstancePaths(feed, CLUSTER), found, START + timedelta(days=9000))
    planned = time.perf_counter()
    gone = [one for one in evict(store, verdicts, feed.availability_flag) if not one.error]
    evicted = time.perf_counter()
    kind_of(store).purge(patience=0)
    purged = time.perf_counter()
    assert len(gone) == DELETED
    subprocess.run(["rm", "-rf", root], check=True)
    return {"find": planned - started, "evict": evicted - planned, "purge": purged - evicted}


def _pass() -> Steps:
    with tempfile.TemporaryDirectory() as folder:
        _tree(Path(folder, "home"))
        entities = Path(folder, "entities", "all.yaml")
        entities.parent.mkdir()
        documents = [CLUSTER, _feed("delete")]
        entities.write_text("\n---\n".join(one.model_dump_json(exclude_unset=True, by_alias=True) for one in documents))
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": str(entities.parent),
            "FALCON_CLOCK": "2024-01-01T00:00Z",
        }
        command = [sys.executable, "-m", "benchmarks.eviction_pass"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"eviction_pass failed:\n{done.stderr[-4000:]}")
    steps: Steps = json.loads(done.stdout.splitlines()[-1])
    return steps


def _rm(folder: Path) -> Steps:
    root = _tree(folder)
    started = time.perf_counter()
    subprocess.run(["rm", "-rf", root], check=True)
    return {"find": 0.0, "evict": time.perf_counter() - started, "purge": 0.0}


def _tree(folder: Path) -> Path:
    """The instances to delete, and ten more for ``keep_last``: two files of 1 kB and a flag each."""
    root = folder / "data"
    for hour in range(DELETED + 10):
        instance = root / (START + timedelta(hours=hour)).strftime("raw/%Y/%m/%d/%H")
        instance.mkdir(parents=True)
        for number in range(2):
            (instance / f"part-{number:05}.json").write_bytes(b"x" * 1000)
        (instance / "_SUCCESS").touch()
    return root
