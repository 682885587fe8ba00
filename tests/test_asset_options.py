"""Options of a code location: how its assets look, which of them it has, and how their ops run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import falcon_assets
from falcon_assets import AssetSource, OpOptions
from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import UsageError
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.sla.checks import SlaChecks
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.settings import load_settings

_VALID = "validity: {start: 2024-05-01T00:00Z, end: 2025-01-01T00:00Z}"
_RETENTION = "retention: {limit: days(3), action: delete}"
_ENTITIES = f"""\
kind: cluster
name: lab
interfaces: {{write: {{endpoint: lab}}, execute: {{endpoint: "local[1]"}}}}
---
kind: cluster
name: mirror
interfaces: {{write: {{endpoint: mirror}}, execute: {{endpoint: "local[1]"}}}}
---
kind: feed
name: orders
groups: [landing]
format: json
frequency: hours(1)
late_arrival: {{cut_off: hours(6)}}
sla: {{low: hours(1), high: hours(2)}}
notification: {{on: [SLA], to: [{{url: {{env: TEAM_WEBHOOK}}}}]}}
locations: {{data: "/orders/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters:
  - {{name: lab, type: source, {_VALID}, {_RETENTION}}}
  - {{name: mirror, type: target, {_VALID}}}
---
kind: feed
name: totals
format: json
frequency: hours(1)
locations: {{data: "/totals/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: lab, {_VALID}}}]
---
kind: feed
name: counts
format: json
frequency: hours(1)
locations: {{data: "/counts/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: lab, {_VALID}}}]
---
kind: process
name: add-up
pipelines: [sums]
clusters: [{{name: lab, {_VALID}}}]
frequency: hours(1)
inputs: [{{name: orders, feed: orders, start: "now(0,0)", end: "now(0,0)"}}]
outputs:
  - {{name: totals, feed: totals, instance: "now(0,0)"}}
  - {{name: counts, feed: counts, instance: "now(0,0)"}}
workflow: {{engine: spark-sql, path: add_up.sql}}
late_process: {{policy: backoff, delay: hours(1), inputs: [{{input: orders}}]}}
schedule: true
---
kind: process
name: greet
pipelines: [hello]
clusters: [{{name: lab, {_VALID}}}]
frequency: hours(1)
workflow: {{engine: pyspark, path: greet.py}}
"""
_SQL = "-- totals\nSELECT * FROM orders;\n-- counts\nSELECT count(*) FROM orders"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Process ``add-up`` makes two feeds of ``orders``, which is copied to ``mirror``; ``greet`` has no outputs."""
    monkeypatch.setenv("TEAM_WEBHOOK", "json://localhost:9")
    for name in ("FALCON_ENTITY_DEFS", "FALCON_COLO", "FALCON_CLOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FALCON_HOME", str(tmp_path / "home"))
    entities = tmp_path / "entities"
    entities.mkdir()
    (entities / "entities.yaml").write_text(_ENTITIES)
    (entities / "add_up.sql").write_text(_SQL)
    (entities / "greet.py").write_text("def run(spark, inputs, instance): ...\n")
    return entities


def names(definitions: dg.Definitions) -> dict[str, list[str]]:
    """What a code location has; assets without those that are only named as dependencies."""
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    own = [
        key for one in definitions.assets or () for key in ([one.key] if isinstance(one, dg.AssetSpec) else one.keys)
    ]
    return {
        "assets": sorted(key.to_user_string() for key in own),
        "jobs": sorted(one.name for one in repository.get_all_jobs() if not one.name.startswith("__")),
        "sensors": sorted(one.name for one in repository.sensor_defs),
        "checks": sorted(key.asset_key.to_user_string() for key in repository.asset_graph.asset_check_keys),
        "resources": sorted(repository.get_top_level_resources()),
    }


ALL = {
    "assets": ["lab/counts", "lab/greet", "lab/orders", "lab/totals", "mirror/orders"],
    "jobs": [
        *("lab__add_up_job", "lab__greet_job", "lab__retention_hours_24"),
        *("mirror__orders__replication_job", "mirror__retention_leftovers"),
    ],
    "sensors": [
        *("hello__coordinator", "lab__collector", "lab__notifications", "lab__retention_at_once", "lab__sla"),
        *("mirror__collector", "mirror__sla", "mirror_replication__coordinator", "mirror_replication__late_arrival"),
        *("sums__coordinator", "sums__late_arrival"),
    ],
    "checks": ["lab/orders", "mirror/orders"],
    "resources": ["spark__lab", "spark__mirror"],
}
LEFT_OUT: dict[str, tuple[dict[str, str], dict[str, list[str]], dict[str, list[str]]]] = {
    "a feed from outside": (
        {"exclude": 'key:"lab/orders"'},
        {
            "assets": ["lab/orders"],
            "jobs": ["lab__retention_hours_24"],
            "sensors": ["lab__retention_at_once", "lab__sla"],
            "checks": ["lab/orders"],
        },
        {"jobs": ["lab__retention_leftovers"]},
    ),
    "a process": (
        {"exclude": 'key:"lab/totals" or key:"lab/counts"'},
        {
            "assets": ["lab/counts", "lab/totals"],
            "jobs": ["lab__add_up_job"],
            "sensors": ["sums__coordinator", "sums__late_arrival"],
        },
        {},
    ),
    "a process without outputs": (
        {"exclude": 'kind:"pyspark"'},
        {"assets": ["lab/greet"], "jobs": ["lab__greet_job"], "sensors": ["hello__coordinator"]},
        {},
    ),
    "a cluster": (
        {"select": 'key:"lab/*"'},
        {
            "assets": ["mirror/orders"],
            "jobs": ["mirror__orders__replication_job", "mirror__retention_leftovers"],
            "sensors": [
                *("mirror__collector", "mirror__sla"),
                *("mirror_replication__coordinator", "mirror_replication__late_arrival"),
            ],
            "checks": ["mirror/orders"],
            "resources": ["spark__mirror"],
        },
        {},
    ),
}
"""What is left out -> options, what goes, and what comes in its place."""


def test_without_options_everything_is_there(folder: Path) -> None:
    assert names(falcon_assets.build_definitions(folder)) == ALL


@pytest.mark.parametrize("what", LEFT_OUT)
def test_nothing_acts_on_what_is_left_out(folder: Path, what: str) -> None:
    options, gone, instead = LEFT_OUT[what]
    found = names(falcon_assets.build_definitions(folder, **options))
    assert found == {
        kind: sorted({*there, *instead.get(kind, ())} - {*gone.get(kind, ())}) for kind, there in ALL.items()
    }


def test_a_selection_follows_the_graph(folder: Path) -> None:
    found = falcon_assets.build_definitions(folder, select='key:"lab/orders"+', exclude='key:"mirror/*"')
    assert names(found)["assets"] == ["lab/counts", "lab/orders", "lab/totals"]


def test_sensors_of_a_cluster_leave_alone_what_is_left_out(folder: Path) -> None:
    excluded = frozenset({("lab", "orders"), ("lab", "greet")})
    settings, store = load_settings(), load_entities(folder).without(excluded, {"lab", "mirror"})
    assert Collector(store, store.cluster("lab"), settings).feeds == {}
    assert set(EventRecording(store, settings).wanted) == {
        ("feed", "orders", "mirror"),
        ("process", "orders from lab", "mirror"),
    }
    checks = SlaChecks(store, settings)
    assert checks.find("feed", "orders", "lab") is None
    assert checks.find("feed", "orders", "mirror") is not None
    assert [one.name for one in store.active_workloads] == ["add-up", "orders from lab"]


def test_a_part_of_what_a_process_makes_cannot_be_left_out(folder: Path) -> None:
    said = "select and exclude keep lab/counts and leave out lab/totals: one process makes them together"
    with pytest.raises(UsageError, match=re.escape(said)):
        falcon_assets.build_definitions(folder, exclude='key:"lab/totals"')


def test_a_translation_sees_the_entities_and_is_what_is_selected_by(folder: Path) -> None:
    seen: dict[str, tuple[str, str | None, str | None]] = {}

    def translation(spec: dg.AssetSpec, source: AssetSource) -> dg.AssetSpec:
        feed, process = source.feed and source.feed.name, source.process and source.process.name
        seen[spec.key.to_user_string()] = (source.cluster.name, feed, process)
        group = "made" if process else "landed"
        return spec.replace_attributes(group_name=group, owners=["team:sales"], kinds={"tea"}, description="shaped")

    found = falcon_assets.build_definitions(folder, translation=translation, select='group:"made"')
    assert seen == {
        "lab/counts": ("lab", "counts", "add-up"),
        "lab/greet": ("lab", None, "greet"),
        "lab/orders": ("lab", "orders", None),
        "lab/totals": ("lab", "totals", "add-up"),
        "mirror/orders": ("mirror", "orders", None),
    }
    assert names(found)["assets"] == ["lab/counts", "lab/greet", "lab/totals"]
    spec = found.resolve_assets_def(["lab", "totals"]).get_asset_spec(dg.AssetKey(["lab", "totals"]))
    assert (spec.group_name, spec.owners, spec.kinds, spec.description) == ("made", ["team:sales"], {"tea"}, "shaped")


FIXED: dict[str, dict[str, Any]] = {
    "key": {"key": ["other", "totals"]},
    "dependencies": {"deps": []},
    "partitions": {"partitions_def": None},
    "value of skippable": {"skippable": False},
}
"""What a translation cannot change -> what it tries."""


@pytest.mark.parametrize("what", FIXED)
def test_what_follows_from_the_entity_cannot_be_translated(folder: Path, what: str) -> None:
    def translation(spec: dg.AssetSpec, source: AssetSource) -> dg.AssetSpec:
        is_totals = source.feed is not None and source.feed.name == "totals"
        return spec.replace_attributes(**FIXED[what]) if is_totals else spec

    said = f"the translation of lab/totals changes its {what}, which follows from its entity"
    with pytest.raises(UsageError, match=re.escape(said)):
        falcon_assets.build_definitions(folder, translation=translation)


@pytest.mark.parametrize(("key", "own"), [("lab/totals", "falcon/process"), ("mirror/orders", "falcon/feed")])
def test_ops_have_the_pool_and_the_tags(folder: Path, key: str, own: str) -> None:
    op = OpOptions(pool="warehouse", tags={"team": "sales", own: "mine"})
    found = falcon_assets.build_definitions(folder, op=op).resolve_assets_def(key.split("/")).op
    assert (found.pool, found.tags["team"]) == ("warehouse", "sales")
    assert found.tags[own] != "mine"
