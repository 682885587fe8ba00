"""A run on another host than the code server: its worker has the database, the definitions and the stores, no more."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._grpc.types import ExecuteRunArgs

from falcon_assets.settings import Settings
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.processes import BIN
from tests.world import MakeWorld


@pytest.fixture
def world(make_world: MakeWorld, settings: Settings) -> ReplicationWorld:
    """One feed is copied; the stores have complete URLs."""

    def cluster(name: str) -> str:
        endpoint = (settings.home / "data" / name).as_uri()
        return cluster_yaml(name, interfaces={"write": {"endpoint": endpoint}, "execute": {"endpoint": "local[1]"}})

    entities = cluster("east") + cluster("backup") + feed("plain", on("east", "source"), on("backup", "target"))
    made: ReplicationWorld = make_world({"all.yaml": entities}, ReplicationWorld)
    return made


def test_a_run_needs_only_what_the_guide_lists(world: ReplicationWorld, tmp_path: Path) -> None:
    world.land("east", "plain", 0, a=7)
    world.collect("01:00")
    (planned,) = world.outlook("01:00", world.store.workloads).runs
    settings = world.settings
    location = ReconstructableRepository.for_module("falcon_assets.definitions", "defs", str(tmp_path))
    origin = location.get_reconstructable_job(planned.job_name).get_python_origin()
    job = world.definitions("01:00").resolve_job_def(planned.job_name)
    run = world.instance.create_run_for_job(job, tags=dict(planned.tags), job_code_origin=origin)
    command = ExecuteRunArgs(origin, run.run_id, world.instance.get_ref()).get_command_args()
    there = tmp_path / "there"
    shutil.copytree(settings.entity_defs, there / "definitions")
    environ = {
        **{name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME", "TMPDIR") if name in os.environ},
        "FALCON_DATABASE_URL": settings.database_url or "",
        "FALCON_ENTITY_DEFS": str(there / "definitions"),
        "FALCON_HOME": str(there / "home"),
    }
    hidden = settings.entity_defs.rename(settings.home / "elsewhere")  # of the host of the code server
    try:
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]], cwd=there, env=environ, capture_output=True, text=True, check=False
        )
    finally:
        hidden.rename(settings.entity_defs)
    ended = world.instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.SUCCESS, done.stderr
    assert world.files("backup", "plain", 0) == {"a.json": 7}
    assert world.step("01:00", "plain") == []
