"""Gobblin's paths for flows: configurations and statuses, as its clients ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.model.access import Role
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.gobblin import PATHS
from falcon_assets.surface.served import open_served
from tests.builders import cluster_yaml, datasource_yaml
from tests.processes import CHECKOUT
from tests.surface.rest.servers import Client, serving

FLOW = """\
source: {datasource: shop, dataset: {table: orders}}
destinations: [{cluster: primary}]
"""
KEY = "(flowGroup:sales,flowName:orders)"


def config(cron: str = "0 30 2 * * ?", **more: Any) -> dict[str, Any]:
    """As Gobblin's clients send it."""
    return {
        "id": {"flowGroup": "sales", "flowName": "orders"},
        "schedule": {"cronSchedule": cron, "runImmediately": True},
        "properties": {"falcon.flow": FLOW, **more},
        "templateUris": "",
    }


@pytest.fixture
def root(
    settings: Settings, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    folder = write_entities({"all.yaml": cluster_yaml("primary") + datasource_yaml("shop")})
    (folder / "flows" / "orders.yaml").unlink(missing_ok=True)
    monkeypatch.setenv("FALCON_CLOCK", "2024-05-15T10:07Z")
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    with open_served(seconds=30) as served, serving(served) as client:
        yield client


def test_a_flow_is_configured_watched_run_killed_and_removed(root: Client) -> None:
    made = root.ask("POST", "/flowconfigs", json=config())
    assert (made.status_code, made.headers["Location"]) == (201, f"/flowconfigs/{KEY}"), made.text
    found = root.ask("GET", f"/flowconfigs/{KEY}").json()
    assert found["id"] == {"flowGroup": "sales", "flowName": "orders"}
    assert found["schedule"] == {"cronSchedule": "30 2 * * *"}
    assert "table: orders" in found["properties"]["falcon.flow"]
    status = root.ask("GET", f"/flowstatuses/{KEY}").json()
    assert status["executionStatus"] == "PENDING"
    assert [one["jobGroup"] for one in status["jobStatuses"]] == ["sales"]
    number = status["id"]["flowExecutionId"]
    assert number == 1715740200000  # 2024-05-15T02:30Z
    latest = root.ask("GET", "/flowstatuses", params={"q": "latestFlowStatus", "flowId": KEY}).json()
    assert latest["elements"] == [status]
    one = f"(flowGroup:sales,flowName:orders,flowExecutionId:{number})"
    assert root.ask("DELETE", f"/flowstatuses/{one}").status_code == 200
    assert root.ask("GET", f"/flowstatuses/{one}").json()["executionStatus"] == "CANCELLED"
    assert root.ask("POST", f"/flowconfigs/{KEY}?action=runImmediately").json() == {"value": str(number)}
    changed = config(**{"falcon.flow": f"{FLOW}description: changed\n"})
    assert root.ask("PUT", f"/flowconfigs/{KEY}", json=changed).status_code == 200
    assert "changed" in root.ask("GET", f"/flowconfigs/{KEY}").json()["properties"]["falcon.flow"]
    moved = root.ask("PUT", f"/flowconfigs/{KEY}", json=config("0 0 3 ? * *"))
    assert (moved.status_code, "validity" in moved.json()["message"]) == (409, True)
    assert root.ask("DELETE", f"/flowconfigs/{KEY}").status_code == 200
    assert root.ask("GET", f"/flowconfigs/{KEY}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "how", "status", "text"),
    [
        ("POST", "/flowconfigs", {"json": {"id": {}}}, 400, "falcon.flow"),
        ("POST", "/flowconfigs", {"json": {**config(), "properties": {}}}, 400, "falcon.flow is missing"),
        ("POST", "/flowconfigs", {"json": config("5 30 2 * * ?")}, 400, "no seconds"),
        ("POST", "/flowconfigs", {"data": "{"}, 400, "no JSON"),
        ("GET", "/flowconfigs/orders", {}, 400, "flowName"),
        ("GET", "/flowconfigs/(flowGroup:x,flowName:none)", {}, 404, "'none'"),
        ("GET", "/flowstatuses", {"params": {"q": "other"}}, 400, "latestFlowStatus"),
        ("GET", "/flowstatuses/(flowName:none,flowExecutionId:x)", {}, 404, "'none'"),
    ],
)
def test_what_is_refused(root: Client, method: str, path: str, how: dict[str, Any], status: int, text: str) -> None:
    answer = root.ask(method, path, **how)
    assert (answer.status_code, answer.json()["status"]) == (status, status), answer.text
    assert text in answer.json()["message"]


def test_roles_hold_here_too(root: Client) -> None:
    assert root.ask("POST", "/flowconfigs", json=config()).status_code == 201
    viewer = root.called("eve", Role.VIEWER)
    bodies = {"/flowconfigs": config(), "/flowconfigs/{key}": config()}
    for method, path in PATHS:
        how = {"json": bodies[path]} if method in ("POST", "PUT") else {}
        if method != "GET":
            assert viewer.ask(method, path.replace("{key}", KEY), **how).status_code == 403, (method, path)
    assert Client(root.url, None).ask("GET", "/flowstatuses").status_code == 401


def test_the_reference_has_each_path() -> None:
    page = (CHECKOUT / "docs" / "reference" / "rest.md").read_text()
    assert [path for path in PATHS if f"`{path[0]} {path[1]}" not in page] == []
