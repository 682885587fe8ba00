"""The Python API: definitions for a code location that has others as well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

import falcon_assets
from falcon_assets.errors import InvalidDefinitionsError, MissingDefinitionsError
from falcon_assets.first_entities import first_entities
from tests.docs.pages import run_blocks, section
from tests.processes import BIN, environ_with

START = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cluster ``lab``, where a process makes ``totals`` of ``orders``; the environment knows nothing of it."""
    for name in ("FALCON_ENTITY_DEFS", "FALCON_COLO", "FALCON_CLOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FALCON_HOME", str(tmp_path / "home"))
    entities = tmp_path / "lab"
    entities.mkdir()
    for name, text in first_entities("lab", START).items():
        (entities / name).write_text(text)
    return entities


@dg.asset(deps=[["lab", "totals"]], required_resource_keys={"spark"})
def report() -> None: ...


@dg.op
def nothing() -> None: ...


@dg.logger
def quiet(_: object) -> object: ...


def job_called(name: str) -> dg.JobDefinition:
    @dg.job(name=name)
    def job() -> None:
        nothing()

    return job


NIGHTLY = job_called("nightly")


def own_definitions() -> dg.Definitions:
    return dg.Definitions(
        assets=[report],
        jobs=[NIGHTLY],
        resources={"spark": object(), "io_manager": dg.mem_io_manager},
        executor=dg.multiprocess_executor,
        loggers={"console": quiet},
    )


@pytest.mark.parametrize("heading", ["With Python", "Options in Python"])
def test_the_page_shows_a_code_location_that_loads(folder: Path, heading: str) -> None:
    folder.rename(folder.parent / "entities")
    run_blocks(section(heading), folder.parent, environ_with(PATH=f"{BIN}:{os.environ['PATH']}"))


def test_the_package_brings_neither_dagster_nor_spark() -> None:
    program = (
        "import sys, falcon_assets\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'dagster', 'pyspark', 'pydantic'}))\n"
        "print({'FalconEntities', 'build_definitions'} <= set(dir(falcon_assets)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue\n"


def test_they_merge_with_others_and_each_side_keeps_what_it_has(folder: Path) -> None:
    merged = dg.Definitions.merge(own_definitions(), falcon_assets.build_definitions(folder))
    dg.Definitions.validate_loadable(merged)
    repository = merged.get_repository_def()
    assert sorted(key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()) == [
        "lab/orders",
        "lab/totals",
        "report",
    ]
    assert sorted(one.name for one in repository.get_all_jobs() if not one.name.startswith("__")) == [
        "lab__add_up_job",
        "lab__retention_leftovers",
        "nightly",
    ]
    assert [one.name for one in repository.schedule_defs] == ["lab__retention_leftovers_schedule"]
    assert sorted(one.name for one in repository.sensor_defs) == ["lab__collector", "lab__coordinator"]
    assert sorted(repository.get_top_level_resources()) == ["io_manager", "spark", "spark__lab"]
    assert {one.name: one.executor_def.name for one in repository.get_all_jobs()} == {
        "__ASSET_JOB": "multiprocess",
        "lab__add_up_job": "in_process",
        "lab__retention_leftovers": "in_process",
        "nightly": "multiprocess",
    }


@dg.sensor(name="lab__collector", target=[report])
def collector() -> None: ...


MINE = {
    "['lab', 'orders']": {"assets": [dg.AssetSpec(["lab", "orders"])]},
    "['lab', 'totals']": {"assets": [dg.AssetSpec(["lab", "totals"])]},
    "lab__add_up_job": {"jobs": [job_called("lab__add_up_job")]},
    "lab__collector": {"sensors": [collector]},
    "lab__retention_leftovers_schedule": {
        "schedules": [
            dg.ScheduleDefinition(name="lab__retention_leftovers_schedule", cron_schedule="0 0 * * *", target=NIGHTLY)
        ]
    },
    "spark__lab": {"resources": {"spark__lab": object()}},
}
"""Key or name of what the folder has, too -> what somebody else has under it."""


@pytest.mark.parametrize("name", MINE)
def test_what_both_sides_have_is_an_error_of_dagster(folder: Path, name: str) -> None:
    mine = dg.Definitions(**MINE[name])
    with pytest.raises(dg.DagsterError, match=re.escape(name)):
        dg.Definitions.validate_loadable(dg.Definitions.merge(mine, falcon_assets.build_definitions(folder)))


def test_two_folders_with_clusters_and_pipelines_of_their_own_merge(folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    for name, text in first_entities("other", START).items():
        (other / name).write_text(text)
    both = dg.Definitions.merge(*map(falcon_assets.build_definitions, (folder, other)))
    dg.Definitions.validate_loadable(both)
    assert sorted(one.name for one in both.sensors or ()) == [
        *("lab__collector", "lab__coordinator", "other__collector", "other__coordinator"),
    ]


def test_the_folder_is_a_path_as_anybody_writes_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(definitions: dg.Definitions) -> set[dg.AssetKey]:
        return set(definitions.resolve_all_asset_keys())

    expected = {dg.AssetKey(["lab", "orders"]), dg.AssetKey(["lab", "totals"])}
    monkeypatch.chdir(folder.parent)
    assert keys(falcon_assets.build_definitions("lab")) == expected
    monkeypatch.setenv("HOME", str(folder.parent))
    assert keys(falcon_assets.build_definitions("~/lab")) == expected
    monkeypatch.setenv("FALCON_ENTITY_DEFS", str(folder))
    assert keys(falcon_assets.build_definitions()) == expected


@pytest.mark.parametrize("name", ["falcon_entity_operation", "falcon_instance_operation"])
def test_where_commands_work_on_the_folder_a_job_does_what_they_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert not falcon_assets.build_definitions(folder).get_repository_def().has_job(name)
    monkeypatch.setenv("FALCON_ENTITY_DEFS", str(folder))
    assert falcon_assets.build_definitions(folder).get_repository_def().has_job(name)


def test_what_is_wrong_is_said_in_full(folder: Path) -> None:
    with pytest.raises(MissingDefinitionsError, match=r"there is no folder .*nowhere"):
        falcon_assets.build_definitions(folder.parent / "nowhere")
    (folder / "feeds.yaml").write_text("kind: feed\nname: orders\n")
    with pytest.raises(InvalidDefinitionsError, match=r"feeds\.yaml:1: .*frequency"):
        falcon_assets.build_definitions(folder)
