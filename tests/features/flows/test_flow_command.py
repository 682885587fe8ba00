"""``falcon flow``: submit, update, compile, show, list, delete; what they are made of follows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from falcon_assets.catalog.store import load_entities
from falcon_assets.operations import acting
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, datasource_yaml

NIGHTLY = """\
kind: flow
name: orders
# every night
schedule: "30 2 * * *"
source: {datasource: shop, dataset: {table: orders}}
destinations:
  - {cluster: primary}
  - {datasource: store, dataset: {table: orders}, export: {load: {upsert: {key: [id]}}}}
"""


@pytest.fixture
def call(
    write_entities: Callable[[dict[str, str]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """A command of ``falcon`` where a cluster and two datasources are declared; a flow is given as a file."""
    root = write_entities({"a.yaml": cluster_yaml() + datasource_yaml("shop") + datasource_yaml("store")})
    for folder in ("datasources", "feeds", "flows", "processes"):
        shutil.rmtree(root / folder, ignore_errors=True)
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    monkeypatch.setenv("FALCON_CLOCK", "2024-05-15T10:07Z")

    def run(*words: str, text: str = "") -> Result:
        if text:
            (tmp_path / "given.yaml").write_text(text)
            words = (*words, str(tmp_path / "given.yaml"))
        return CliRunner().invoke(falcon, words)

    return run


def stored() -> dict[str, Any]:
    text = (load_settings().entity_defs / "flows" / "orders.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_a_submitted_flow_begins_with_its_next_time(call: Callable[..., Result]) -> None:
    done = call("flow", "submit", text=NIGHTLY)
    assert "flow orders is submitted" in done.output
    assert "# every night" in (load_settings().entity_defs / "flows" / "orders.yaml").read_text()
    assert stored()["validity"] == {"start": "2024-05-16T02:30Z", "end": "9999-12-31T23:59Z"}
    store = load_entities(load_settings().entity_defs)
    assert [*store.feeds] == ["orders"]
    assert {one.name for one in store.workloads} == {"orders import", "orders to store"}
    assert "flow orders is unchanged" in call("flow", "submit", text=NIGHTLY).output


def test_one_that_runs_immediately_begins_with_the_time_before(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=NIGHTLY + "run_immediately: true\n")
    assert stored()["validity"]["start"] == "2024-05-15T02:30Z"


def test_one_on_a_single_line_is_submitted_too(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=json.dumps(yaml.safe_load(NIGHTLY)))
    assert stored()["validity"]["start"] == "2024-05-16T02:30Z"


def test_an_update_keeps_the_validity(call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    call("flow", "submit", text=NIGHTLY)
    monkeypatch.setenv("FALCON_CLOCK", "2024-06-01T00:00Z")
    updated = call(
        "flow", "update", text=NIGHTLY.replace("cluster: primary}", "cluster: primary, retention: {limit: days(9)}}")
    )
    assert "flow orders is updated" in updated.output
    assert stored()["validity"]["start"] == "2024-05-16T02:30Z"
    (entry,) = load_entities(load_settings().entity_defs).feeds["orders"].clusters
    assert entry.retention
    refused = call("flow", "submit", text=NIGHTLY)
    assert "is submitted already, with another definition: use falcon flow update" in str(refused.exception)


def test_compile_draws_it_and_submits_nothing(call: Callable[..., Result]) -> None:
    done = call("flow", "compile", text=NIGHTLY)
    assert done.output.splitlines()[:4] == [
        "# orders",
        "# datasource shop",
        "# └─ cluster primary, imported by executor default of cluster primary",
        "#    └─ datasource store, exported by executor default of cluster primary",
    ]
    (feed,) = yaml.safe_load_all(done.output)
    assert feed["clusters"][0]["import"] == {"source": {"name": "shop", "table": "orders"}}
    assert not (load_settings().entity_defs / "flows").exists()
    call("flow", "submit", text=NIGHTLY)
    assert call("flow", "compile", "orders").output == done.output
    data = json.loads(call("flow", "compile", "orders", "--json").output)
    assert [one["name"] for one in data["items"]] == ["orders"]


def test_what_cannot_be_made_waits_and_says_why(call: Callable[..., Result]) -> None:
    root = load_settings().entity_defs
    (root / "a.yaml").write_text(
        cluster_yaml(executors=[{"name": "one", "endpoint": "local[1]", "capabilities": [["file", "file"]]}])
        + datasource_yaml("shop")
        + datasource_yaml("store")
    )
    why = (
        "no executor of cluster 'primary' can import from datasource 'shop': "
        "one of them needs the capability [postgresql, file]"
    )
    compiled = call("flow", "compile", text=NIGHTLY)
    assert (compiled.exit_code, compiled.output) == (1, f"# orders\n# waits: {why}\n")
    assert why in call("flow", "submit", text=NIGHTLY).output
    assert [*load_entities(root).feeds] == []
    (listed,) = json.loads(call("flow", "list", "--json").output)["items"]
    assert (listed["status"], listed["message"]) == ("WAITING", why)
    shown = json.loads(call("flow", "status", "orders", "--json").output)
    assert (shown["status"], shown["message"], shown["jobs"]) == ("WAITING", why, [])
    assert f"flow 'orders' waits: {why}" in str(call("flow", "run", "orders").exception)
    assert f"orders waits: {why}" in call("flow", "explain", "orders").output


def test_it_is_listed_and_shown_with_what_it_is_made_of(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=NIGHTLY)
    (listed,) = json.loads(call("flow", "list", "--json").output)["items"]
    assert {key: listed[key] for key in ("name", "source", "destinations", "every", "status")} == {
        "name": "orders",
        "source": "datasource shop",
        "destinations": ["cluster primary", "datasource store"],
        "every": "30 2 * * *",
        "status": "RUNNING",
    }
    assert "# made of feed orders" in call("flow", "show", "orders").output
    assert "kind: flow" in call("entity", "show", "orders").output, "the flow is meant, not its feed"
    feed = yaml.safe_load(call("entity", "show", "orders", "--kind", "feed").output)
    assert feed["tags"] == {"falcon/flow": "orders"}
    assert "datasource shop (source)" in call("entity", "dependency", "orders").output


def test_its_feed_is_suspended_like_any_other(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=NIGHTLY)
    assert call("entity", "suspend", "orders").exit_code == 0
    (listed,) = json.loads(call("flow", "list", "--json").output)["items"]
    assert listed["status"] == "SUSPENDED"
    call("entity", "resume", "orders")


def test_nothing_that_it_needs_is_deleted_and_nothing_of_it_by_itself(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=NIGHTLY)
    refused = str(call("entity", "delete", "shop").exception)
    assert refused.startswith("datasource 'shop' is needed by flow 'orders' (")
    assert "feed 'orders'" not in refused
    assert "feed 'orders' is made of flow 'orders', which is to be changed instead" in str(
        call("entity", "touch", "orders", "--kind", "feed").exception
    )
    assert "flow orders is deleted" in call("flow", "delete", "orders").output
    assert [*load_entities(load_settings().entity_defs).feeds] == []


def test_versions_of_both_are_recorded(call: Callable[..., Result]) -> None:
    call("flow", "submit", text=NIGHTLY)
    call("flow", "update", text=NIGHTLY.replace("[id]", "[id, line]"))
    of_flow = json.loads(call("entity", "history", "orders", "--json").output)["items"]
    assert [one["operation"] for one in of_flow[-2:]] == ["flow submit", "flow update"]
    call("entity", "touch", "orders")  # records what came with it, too
    of_feed = json.loads(call("entity", "history", "orders", "--kind", "feed", "--json").output)["items"]
    assert "key: [id, line]" in of_feed[-1]["text"]


def test_a_queue_of_others_takes_nothing_of_it(
    call: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queues.yaml").write_text("ours: {users: [ann]}\n")
    monkeypatch.setenv("FALCON_QUEUES", str(tmp_path / "queues.yaml"))
    denied = f"{load_settings().user} may not put flow 'orders' into the queue 'ours', which is for ann"
    of_all = NIGHTLY + "queue: ours\n"
    of_one = NIGHTLY.replace("export: {", "export: {queue: ours, ")
    for text in (of_all, of_one):
        assert str(call("flow", "submit", text=text).exception) == denied


PRIVATE = NIGHTLY + 'acl: {owner: somebody-else, permission: "0700"}\n'


def test_it_belongs_to_its_owner_with_the_feeds_that_make_it(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    me, root = load_settings().user, load_settings().entity_defs
    monkeypatch.setenv("FALCON_SUPERUSERS", me)
    call("flow", "submit", text=PRIVATE)
    assert [one.acl.owner for one in load_entities(root).feeds.values() if one.acl] == ["somebody-else"]
    monkeypatch.setenv("FALCON_SUPERUSERS", "")
    monkeypatch.setattr(acting, "_groups", lambda name, own: frozenset())
    assert json.loads(call("flow", "list", "--json").output)["items"] == []
    for command in ("show", "status", "run", "kill", "explain"):
        assert f"{me} may not read flow 'orders'" in str(call("flow", command, "orders").exception), command
    assert f"{me} may not delete flow 'orders'" in str(call("flow", "delete", "orders").exception)
    changed = call("flow", "update", text=PRIVATE.replace("30 2", "30 3"))
    assert f"{me} may not update flow 'orders'" in str(changed.exception)


FLOWS_OF_TABLES = """\
kind: template
name: nightly
description: A flow for each table
version: 1
parameters:
  tables: {type: names}
  start: {type: instant}
entities:
  - for: table
    in: tables
    entities:
      - kind: flow
        name: "{{ table }}"
        schedule: "30 2 * * *"
        source: {datasource: shop, dataset: {table: "{{ table }}"}}
        destinations: [{cluster: primary}]
        validity: {start: "{{ start }}", end: 9999-12-31T23:59Z}
"""


def test_templates_make_flows(call: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packs" / "ops").mkdir(parents=True)
    (tmp_path / "packs" / "ops" / "nightly.yaml").write_text(f"kind: pack\nname: ops\n---\n{FLOWS_OF_TABLES}")
    monkeypatch.setenv("FALCON_PACKS", str(tmp_path / "packs"))
    done = call("template", "submit", "ops/nightly", "-p", "tables=orders,customers", "-p", "start=2024-05-15T00:00Z")
    assert "flow customers is submitted" in done.output, done.exception
    store = load_entities(load_settings().entity_defs)
    assert sorted(store.flows) == sorted(store.feeds) == ["customers", "orders"]
    assert {one.template and one.template.name for one in store.flows.values()} == {"ops/nightly"}
    assert {one.template for one in store.feeds.values()} == {None}, "the flows are what it made"
