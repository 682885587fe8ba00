"""The component, used as its page says: with ``dg``, in a project that ``create-dagster`` has made."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from falcon_assets.settings import Settings
from tests.docs.pages import run_blocks, section
from tests.processes import BIN, environ_with

pytestmark = pytest.mark.soak


class Project:
    """A fresh project, in whose environment this package is installed."""

    def __init__(self, parent: Path, database_url: str) -> None:
        self.environ = environ_with(
            PATH=f"{BIN}:{os.environ['PATH']}",
            VIRTUAL_ENV=str(BIN.parent),
            PYTHONPATH=str(parent / "shop" / "src"),  # stands for the installation of the project
            PYTHONWARNINGS="ignore",  # of what other packages bring as preview
            FALCON_HOME=str(parent / "home"),
            FALCON_DATABASE_URL=database_url,
            DAGSTER_DISABLE_TELEMETRY="1",
            DAGSTER_DG_UPDATE_CHECK_ENABLED="0",
            COLUMNS="200",
        )
        self.folder = parent
        self.run("create-dagster", "project", "shop", "--no-uv-sync")
        self.folder = parent / "shop"
        self.entities = self.folder / "src" / "shop" / "defs" / "my_pipelines"

    def run(self, *command: str, code: int = 0) -> str:
        """What the command prints, and that it ends with that code."""
        done = subprocess.run(command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def changed(self, file: str, before: str, after: str) -> Iterator[None]:
        """The file with another text meanwhile."""
        path = self.entities / file
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after, 1))
        yield
        path.write_text(text)


@pytest.fixture(scope="module")
def project(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("projects"), settings.database_url or "")


@pytest.fixture(scope="module")
def said(project: Project) -> str:
    """What the commands of the page print."""
    return run_blocks(section("With dg"), project.folder, project.environ)


def test_the_commands_of_the_page_do_what_it_says(project: Project, said: str) -> None:
    assert "falcon_assets.FalconEntities" in said
    assert "All component YAML validated successfully." in said
    assert "All definitions loaded successfully." in said
    assert "my_pipelines/totals" in said
    assert sorted(str(file.relative_to(project.entities)) for file in project.entities.rglob("*.*")) == [
        "defs.yaml",
        *(f"entities/{name}" for name in ("add_up.sql", "cluster.yaml", "feeds.yaml", "processes.yaml")),
    ]


def test_several_of_them_load_beside_each_other(project: Project, said: str) -> None:
    assert said
    project.run("dg", "scaffold", "defs", "falcon_assets.FalconEntities", "more/2024 sales", "--format", "python")
    listed = json.loads(project.run("dg", "list", "defs", "--json"))
    assert {kind: [one.get("asset_key", one.get("name")) for one in found] for kind, found in listed.items()} == {
        "assets": ["c-2024-sales/orders", "c-2024-sales/totals", "my_pipelines/orders", "my_pipelines/totals"],
        "asset_checks": [],
        "jobs": [
            *("c_2024_sales__add_up_job", "c_2024_sales__retention_leftovers"),
            *("my_pipelines__add_up_job", "my_pipelines__retention_leftovers"),
        ],
        "resources": ["spark__c_2024_sales", "spark__my_pipelines"],
        "schedules": ["c_2024_sales__retention_leftovers_schedule", "my_pipelines__retention_leftovers_schedule"],
        "sensors": [
            *("c_2024_sales__collector", "c_2024_sales__coordinator"),
            *("my_pipelines__collector", "my_pipelines__coordinator"),
        ],
    }


def test_dg_checks_what_the_component_is_told(project: Project, said: str) -> None:
    assert said
    with project.changed("defs.yaml", "path:", "folder:"):
        refused = project.run("dg", "check", "yaml", code=1)
    assert "defs.yaml:4" in refused
    assert "'folder' was unexpected" in refused


def test_dg_says_what_is_wrong_in_an_entity(project: Project, said: str) -> None:
    assert said
    with project.changed("entities/feeds.yaml", "frequency", "frequenzy"):
        refused = project.run("dg", "check", "defs", code=1)
    assert "entities/feeds.yaml:3: frequenzy: unknown key 'frequenzy' (did you mean 'frequency'?)" in refused


@pytest.fixture(scope="module")
def shaped(project: Project, said: str) -> Iterator[str]:
    """What the commands print with the options of the page, which the project keeps for other tests."""
    assert said
    file = project.entities / "defs.yaml"
    before = file.read_text()
    yield run_blocks(section("Options in YAML"), project.folder, project.environ)
    file.write_text(before)


def test_options_of_the_component_are_seen_in_the_assets(project: Project, shaped: str) -> None:
    assert "All component YAML validated successfully." in shaped
    assert "All definitions loaded successfully." in shaped
    listed = json.loads(project.run("dg", "list", "defs", "--json"))
    totals = next(one for one in listed["assets"] if one["asset_key"] == "my_pipelines/totals")
    assert {key: totals[key] for key in ("group_name", "kinds", "owners", "description")} == {
        "group_name": "my_pipelines_sales",
        "kinds": ["parquet"],
        "owners": [{"team": "sales"}],
        "description": "Sums per item",
    }
    assert {"key": "made_by", "value": "add-up"} in totals["tags"]
    assert {"key": "falcon/process", "value": "add-up"} in totals["tags"]


def test_what_is_left_out_is_not_listed_and_what_is_kept_materializes(project: Project, shaped: str) -> None:
    assert shaped
    hour = datetime.now(UTC).replace(hour=0, minute=0)
    orders = project.folder.parent / "home" / "data" / "my_pipelines" / "orders" / f"{hour:%Y-%m-%d}" / "00"
    orders.mkdir(parents=True)
    (orders / "orders.json").write_text('{"item": "tea", "amount": 2.5}\n')
    (orders / "_SUCCESS").touch()
    (project.folder / "dagster.yaml").write_text(
        "storage: {custom: {module: falcon_assets.dagster_instance, class: FalconStorage, config: {}}}\n"
    )
    with project.changed("defs.yaml", 'tag:"stage"="draft"', 'key:"my_pipelines/orders"'):
        listed = json.loads(project.run("dg", "list", "defs", "--json"))
        own = [one for one in listed["assets"] if one["asset_key_parts"][0] == "my_pipelines"]
        assert {one["asset_key"]: one["is_executable"] for one in own} == {
            "my_pipelines/orders": False,  # named as what the other one reads
            "my_pipelines/totals": True,
        }
        launch = ("dg", "launch", "--assets", "my_pipelines/totals", "--partition", f"{hour:%Y-%m-%dT%H:%MZ}")
        home = f"DAGSTER_HOME={project.folder}"
        assert "RUN_SUCCESS" in project.run("env", home, *launch)
    assert list((project.folder.parent / "home" / "data" / "my_pipelines" / "totals").rglob("*.parquet"))
