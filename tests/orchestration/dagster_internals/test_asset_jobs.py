"""Jobs are resolved from few assets, and are what Dagster itself resolves from all of them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.dagster_internals.asset_jobs import AssetJob
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.processes import CHECKOUT

LANDING = 30
EXAMPLE = CHECKOUT / "entity_defs"


def chain(root: Path) -> Path:
    """Feeds that land, of which one is read, and is copied; a process with two outputs, and one with an effect only."""
    root.mkdir()
    (root / "a.sql").write_text("SELECT * FROM raw")
    two = [{"name": name, "feed": name, "instance": "now(0,0)"} for name in ("left", "right")]
    lands = [feed_yaml(f"landing-{number}") for number in range(LANDING)]
    copied = feed_yaml("copied", on("primary", type="source"), on("backup", type="target"))
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
    assert ours
    for job in ours:
        told = {"name": job.name, "selection": job.selection, "description": job.description, "tags": job.tags}
        whole = dg.define_asset_job(**told, executor_def=job.executor_def).resolve(  # type: ignore[arg-type]
            graph, resource_defs=repository.get_top_level_resources()
        )
        found = repository.get_job(job.name)
        assert found.get_job_snapshot_id() == whole.get_job_snapshot_id()
        assert found.asset_layer.selected_asset_keys == whole.asset_layer.selected_asset_keys
        mine, theirs = found.asset_layer.asset_graph, whole.asset_layer.asset_graph
        for key in mine.get_all_asset_keys():
            assert mine.get(key).partitions_def == theirs.get(key).partitions_def
            assert mine.get(key).partition_mappings == theirs.get(key).partition_mappings
            assert mine.get(key).metadata == theirs.get(key).metadata


def test_a_job_has_what_its_assets_read_and_nothing_else(tmp_path: Path) -> None:
    root = chain(tmp_path / "entities")
    found = definitions_at(root, tmp_path)
    repository = found.get_repository_def()
    # Dagster keeps the key of what an asset was made from that a job reads.
    for job, read in (("primary__both_job", ["landing-3"]), ("primary__tells_job", ["last", "left"])):
        graph = repository.get_job(job).asset_layer.asset_graph
        others = graph.get_all_asset_keys() - graph.executable_asset_keys
        assert others == {dg.AssetKey(["primary", name]) for name in read}


def test_a_part_of_a_job_can_be_chosen(tmp_path: Path) -> None:
    root = chain(tmp_path / "entities")
    found = definitions_at(root, tmp_path)
    job = found.get_repository_def().get_job("primary__reads_job")
    part = job.get_subset(asset_selection={dg.AssetKey(["primary", "last"])})
    assert part.asset_layer.selected_asset_keys == {dg.AssetKey(["primary", "last"])}
