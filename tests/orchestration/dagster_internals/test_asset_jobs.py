"""Jobs are resolved from few assets, and are what Dagster itself resolves from all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.dagster_internals.asset_jobs import AssetJob
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.surface.dagster.job_location import definitions_of_job
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.features.transfers.shop import datasource_yaml, export
from tests.processes import CHECKOUT

LANDING = 30
LOCATION_OF_A_RUN = """
import json, sys
from falcon_assets.history.platform.job_of_run import needs_only
needs_only(sys.argv[1])
from falcon_assets.definitions import defs
keys = defs.resolve_asset_graph().get_all_asset_keys()
print(json.dumps({"assets": len(keys), "job": defs.get_repository_def().get_job(sys.argv[1]).name}))
"""
EXAMPLE = CHECKOUT / "entity_defs"


def chain(root: Path) -> Path:
    """Every kind of workload: processes with two outputs, one, and none, a copy, a compaction, an export, an import."""
    root.mkdir()
    (root / "a.sql").write_text("SELECT * FROM raw")
    two = [{"name": name, "feed": name, "instance": "now(0,0)"} for name in ("left", "right")]
    lands = [feed_yaml(f"landing-{number}") for number in range(LANDING)]
    schema = {"format": "json", "schema": "id bigint, n string"}
    given = on("primary", export=[export(partition="hour")])
    brought = {"source": {"name": "shop", "table": "raw"}}
    copied = feed_yaml("compacted", compact={}, **schema) + feed_yaml("sent", given, **schema)
    copied += feed_yaml("brought", on("primary", **{"import": brought}), **schema)
    copied += datasource_yaml("postgresql://anna@localhost/shop") + feed_yaml(
        "copied", on("primary", type="source"), on("backup", type="target")
    )
    made = [feed_yaml("left"), feed_yaml("right"), feed_yaml("last")]
    processes = [
        process_yaml("both", "landing-3", None, outputs=two),
        process_yaml("reads", "left", "last"),
        process_yaml("tells", "last", None),
    ]
    text = "".join([cluster_yaml("primary"), cluster_yaml("backup"), *lands, copied, *made, *processes])
    (root / "all.yaml").write_text(text)
    return root


def definitions_at(root: Path, tmp_path: Path) -> dg.Definitions:
    settings = load_settings({"FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(root)})
    return definitions_of(load_entities(root), settings)


@pytest.fixture(params=["chain", "example"])
def definitions(request: pytest.FixtureRequest, tmp_path: Path) -> dg.Definitions:
    root = EXAMPLE if request.param == "example" else chain(tmp_path / "entities")
    return definitions_at(root, tmp_path)


def test_each_job_is_what_dagster_makes_of_all_assets(definitions: dg.Definitions) -> None:
    graph, repository = definitions.resolve_asset_graph(), definitions.get_repository_def()
    ours = [job for job in definitions.jobs or () if isinstance(job, AssetJob)]
    assert len(ours) >= 4
    for job in ours:
        declared = dg.define_asset_job(
            job.name, job.selection, description=job.description, tags=job.tags, executor_def=job.executor_def
        )
        whole = declared.resolve(graph, resource_defs=repository.get_top_level_resources())
        found = repository.get_job(job.name)
        assert found.get_job_snapshot_id() == whole.get_job_snapshot_id()
        assert found.asset_layer.selected_asset_keys == whole.asset_layer.selected_asset_keys
        mine, theirs = found.asset_layer.asset_graph, whole.asset_layer.asset_graph
        for key in mine.get_all_asset_keys():
            assert mine.get(key).partitions_def == theirs.get(key).partitions_def
            assert mine.get(key).partition_mappings == theirs.get(key).partition_mappings
            assert mine.get(key).metadata == theirs.get(key).metadata


def test_a_run_defines_its_job_alone_as_the_whole_location_does(definitions: dg.Definitions, tmp_path: Path) -> None:
    root = EXAMPLE if not (tmp_path / "entities").is_dir() else tmp_path / "entities"
    settings = load_settings({"FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(root)})
    whole = definitions.get_repository_def()
    for job in definitions.jobs or ():
        if not isinstance(job, AssetJob):
            continue
        alone = definitions_of_job(load_entities(root), settings, job.name)
        assert alone is not None
        found, expected = alone.get_repository_def().get_job(job.name), whole.get_job(job.name)
        assert found.get_job_snapshot_id() == expected.get_job_snapshot_id()
        assert found.tags == expected.tags
        mine, theirs = found.asset_layer.asset_graph, expected.asset_layer.asset_graph
        assert mine.executable_asset_keys == theirs.executable_asset_keys
        read = {key for one in mine.executable_asset_keys for key in mine.get(one).parent_keys}
        for key in mine.executable_asset_keys | read:
            assert mine.get(key).partitions_def == theirs.get(key).partitions_def
            assert mine.get(key).backfill_policy == theirs.get(key).backfill_policy or key in read
        for key in mine.executable_asset_keys:
            assert mine.get(key).partition_mappings == theirs.get(key).partition_mappings
            assert mine.get(key).metadata == theirs.get(key).metadata
    assert definitions_of_job(load_entities(root), settings, "primary__nobody_job") is None


def test_a_job_has_what_its_assets_read_and_nothing_else(tmp_path: Path) -> None:
    root = chain(tmp_path / "entities")
    found = definitions_at(root, tmp_path)
    repository = found.get_repository_def()
    # Dagster keeps the key of what an asset was made from that a job reads.
    for job, read in (("primary__both_job", ["landing-3"]), ("primary__tells_job", ["last", "left"])):
        graph = repository.get_job(job).asset_layer.asset_graph
        others = graph.get_all_asset_keys() - graph.executable_asset_keys
        assert others == {dg.AssetKey(["primary", name]) for name in read}


@pytest.mark.parametrize(("job", "known"), [("primary__reads_job", 2), ("falcon_instance_operation", LANDING + 11)])
def test_the_code_location_defines_in_a_run_what_its_job_needs(tmp_path: Path, job: str, known: int) -> None:
    root = chain(tmp_path / "entities")
    told = {"FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(root)}
    command = [sys.executable, "-c", LOCATION_OF_A_RUN, job]
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout or "{}") == {"assets": known, "job": job}, done.stderr[-2000:]


def test_a_part_of_a_job_can_be_chosen(tmp_path: Path) -> None:
    root = chain(tmp_path / "entities")
    found = definitions_at(root, tmp_path)
    job = found.get_repository_def().get_job("primary__reads_job")
    part = job.get_subset(asset_selection={dg.AssetKey(["primary", "last"])})
    assert part.asset_layer.selected_asset_keys == {dg.AssetKey(["primary", "last"])}
