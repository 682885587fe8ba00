"""Datasources as entities: submitted, shown, updated, and kept as long as feeds need them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.doctor.all_checks import CHECKS
from falcon_assets.doctor.diagnosis import CheckContext
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, datasource_yaml, feed_yaml, on, process_yaml
from tests.operations.rows import NOW

READ = {"source": {"name": "shop", "table": "orders"}}
SEND = {"target": {"name": "shop", "table": "sums"}, "partition": "hour"}


@pytest.fixture
def call(
    write_entities: Callable[[dict[str, str]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """A command of ``falcon entity`` where only a cluster is declared; definitions are given as text."""
    root = write_entities({"a.yaml": cluster_yaml(), "a.sql": "SELECT 1"})
    for folder in ("datasources", "feeds", "processes"):
        shutil.rmtree(root / folder, ignore_errors=True)
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")

    def entity(operation: str, *words: str, text: str = "") -> Result:
        if text:
            (tmp_path / "given.yaml").write_text(text)
            words = (*words, str(tmp_path / "given.yaml"))
        return CliRunner().invoke(falcon, ["entity", operation, *words])

    return entity


def feeds() -> str:
    return feed_yaml("orders", on("primary", **{"import": READ})) + feed_yaml("sums", on("primary", export=SEND))


def test_one_is_submitted_with_the_feeds_that_need_it_and_deleted_with_them(call: Callable[..., Result]) -> None:
    submitted = call("submit", text=feeds() + datasource_yaml())
    assert "datasource shop is submitted" in submitted.output
    assert (load_settings().entity_defs / "datasources" / "shop.yaml").is_file()
    refused = call("delete", "shop")
    assert "datasource 'shop' is needed by feed 'orders'" in str(refused.exception)
    assert "feed 'sums'" in str(refused.exception)
    assert call("delete", "shop", "orders", "sums").exit_code == 0
    assert not (load_settings().entity_defs / "datasources" / "shop.yaml").exists()


def test_it_is_listed_shown_and_updated(call: Callable[..., Result]) -> None:
    call("submit", text=datasource_yaml(tags={"team": "sales"}, acl={"owner": load_settings().user}))
    listed = json.loads(call("list", "--kind", "datasource", "--json").output)["items"]
    assert [(one["name"], one["kind"], one["status"], one["owner"]) for one in listed] == [
        ("shop", "datasource", "SUBMITTED", load_settings().user)
    ]
    tagged = json.loads(call("list", "--filter", "tag=team=sales", "--json").output)["items"]
    assert [one["name"] for one in tagged] == ["shop"]
    assert call("status", "shop").output == "datasource shop is SUBMITTED\n"
    assert "type: postgresql" in call("show", "shop").output
    updated = call("update", text=datasource_yaml(colo="east", acl={"owner": load_settings().user}))
    assert "datasource shop is updated" in updated.output
    assert json.loads(call("show", "shop", "--json").output)["definition"]["colo"] == "east"


def test_dependencies_name_it_as_import_and_export(call: Callable[..., Result]) -> None:
    call("submit", text=feeds() + datasource_yaml())
    assert "datasource shop (import)" in call("dependency", "orders").output
    needed = call("dependency", "shop").output
    assert "datasource shop needs nothing" in needed
    assert "feed orders (import)" in needed and "feed sums (export)" in needed


@pytest.mark.parametrize("operation", ["schedule", "suspend", "resume"])
def test_it_is_not_scheduled(call: Callable[..., Result], operation: str) -> None:
    call("submit", text=datasource_yaml())
    assert str(call(operation, "shop").exception) == "'shop' is a datasource: only feeds and processes are scheduled"


def test_submit_and_schedule_schedules_the_feeds_only(call: Callable[..., Result]) -> None:
    done = call("submit-and-schedule", text=feeds() + datasource_yaml())
    assert "feed orders is RUNNING now" in done.output
    assert "datasource shop is submitted" in done.output and "datasource shop is RUNNING" not in done.output


def test_validate_counts_them(call: Callable[..., Result]) -> None:
    def counts() -> str:
        return CliRunner().invoke(falcon, ["validate"]).output

    assert counts() == "1 cluster, 0 feeds, 0 processes: no problems\n"
    call("submit", text=datasource_yaml())
    assert counts() == "1 cluster, 1 datasource, 0 feeds, 0 processes: no problems\n"


def test_a_queue_of_others_takes_no_transfers(
    call: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queues.yaml").write_text("ours: {users: [ann]}\n")
    monkeypatch.setenv("FALCON_QUEUES", str(tmp_path / "queues.yaml"))
    call("submit", text=datasource_yaml())
    denied = f"{load_settings().user} may not put feed 'orders' into the queue 'ours', which is for ann"
    for transfer in ({"import": {**READ, "queue": "ours"}}, {"export": [{**SEND, "queue": "ours"}]}):
        assert str(call("submit", text=feed_yaml("orders", on("primary", **transfer))).exception) == denied
    theirs = feed_yaml("orders", on("primary", **{"import": {**READ, "queue": "nowhere"}}))
    assert call("submit", text=theirs).exit_code == 0
    assert [one.text for one in CHECKS["queues"](CheckContext(load_settings(), NOW))] == [
        "import 'orders import' waits for the queue nowhere, which FALCON_QUEUES does not have"
    ]


def test_a_queue_is_for_processes_or_for_transfers(call: Callable[..., Result]) -> None:
    transfer = feed_yaml("orders", on("primary", **{"import": {**READ, "queue": "etl"}}))
    both = transfer + process_yaml("make", None, None, queue="etl")
    refused = str(call("submit", text=both + datasource_yaml()).exception)
    assert "clusters[0].import.queue: queue 'etl' is used in pipeline 'default' (process 'make'): " in refused
    assert "imports and exports need one of their own" in refused
