"""The reference of metrics, its alerts and the dashboard name what is printed, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from falcon_assets.features.metrics.declared import METRICS
from tests.docs.pages import page
from tests.processes import CHECKOUT

PAGE = "docs/reference/metrics.md"
DASHBOARD: dict[str, Any] = json.loads((CHECKOUT / "docs" / "grafana" / "falcon.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
LABELS = {one.name: set(one.labels) for one in METRICS}
UNITS = {"_seconds": {"s"}, "_bytes_total": {"Bps"}}


def assert_known(expression: str) -> None:
    """Metrics, and labels of exactly those."""
    names = re.findall(r"falcon_\w+", expression)
    assert names
    assert set(names) <= set(LABELS), expression
    labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", expression))
    labels |= {one.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for one in group.split(",")}
    assert labels <= set.union(*(LABELS[name] for name in names)), expression


def test_the_table_has_every_metric_as_it_is_printed() -> None:
    rows = re.findall(r"^\| `(falcon_\w+)` \| (\w+) \| (.*?)\| (.+?) \|$", (CHECKOUT / PAGE).read_text(), re.MULTILINE)
    found = [(name, type_, tuple(re.findall(r"`(\w+)`", labels)), text) for name, type_, labels, text in rows]
    assert found == [(one.name, one.type.value, one.labels, one.help) for one in METRICS]


def test_alerts() -> None:
    (alerts,) = (yaml.safe_load(block.text) for block in page(PAGE) if block.language == "yaml")
    expressions = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    for expression in expressions:
        if "node_textfile" not in expression:
            assert_known(expression)


@pytest.mark.parametrize("panel", PANELS, ids=lambda one: one["title"])
def test_a_panel(panel: dict[str, Any]) -> None:
    assert panel["title"] and panel["description"]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        expression = target["expr"]
        assert_known(expression)
        assert panel["datasource"]["uid"] == target["datasource"]["uid"] == "${datasource}"
        for suffix, units in UNITS.items():
            assert unit in units or f"{suffix}" not in expression, panel["title"]
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert shown <= set.union(*(LABELS[name] for name in re.findall(r"falcon_\w+", expression)))


def test_the_dashboard_as_a_whole() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert set(re.findall(r"\$(\w+)", json.dumps(PANELS))) <= {*variables, "__rate_interval"}
    assert len({one["id"] for one in PANELS}) == len({one["title"] for one in PANELS}) == len(PANELS)
    places = [one["gridPos"] for one in PANELS]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells)), "panels lie over each other"
    shown = set(re.findall(r"falcon_\w+", json.dumps(PANELS)))
    assert {one.name for one in METRICS} - shown == {
        "falcon_feed_completeness_ratio",
        "falcon_feed_watermark_timestamp_seconds",
        "falcon_up",
        "falcon_build_info",
        "falcon_feed_newest_instance_timestamp_seconds",
    }
