"""Imports and exports are work as any other: what is late is an alert and a check, and people see what they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from sqlalchemy import select

from falcon_assets.errors import FalconError
from falcon_assets.features.sla.checks import SlaChecks
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.history.tables.sla import SLA_BREACHES
from falcon_assets.instances.views.details import explanation
from falcon_assets.instances.views.explain import ExplainedInput, ExplainedInstance, ExplainedOutput, Explanation
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import feed_yaml
from tests.features.transfers.worlds import ImportWorld, import_world, imported
from tests.hours import hour

URL = "postgresql+psycopg2://nobody@127.0.0.1:1/shop"
SLA = {"should_start_in": "minutes(80)", "should_end_in": "minutes(90)"}


@pytest.fixture(scope="module")
def world(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> ImportWorld:
    source = {"name": "shop", "table": "public.orders"}
    changes = {"extract": {"incremental": {"column": "at"}}, "merge": {"upsert": {"key": ["id"]}}}
    export = {"target": {"name": "shop", "table": "sums"}, "load": {"upsert": {"key": ["id"]}}, "sla": SLA}
    validity = {"start": "2013-01-01T00:00Z", "end": "2013-01-02T00:00Z"}
    sums = feed_yaml("sums", {"name": "primary", "validity": validity, "export": [export]}, schedule=True)
    return import_world(
        settings,
        instance,
        write_entities,
        URL,
        imported("orders", source=source, sla=SLA, **changes),
        sums,
        interfaces={"write": {"endpoint": "postgresql://127.0.0.1:1/shop"}},
    )


def explained(world: ImportWorld, name: str, instance: str = "2013-01-01T01:00Z") -> Explanation:
    with open_installation(world.settings) as installation:
        return explanation(installation, name, parse_instant(instance))


@pytest.mark.parametrize("name", ["orders import", "sums to shop"])
def test_what_is_late_is_an_alert(world: ImportWorld, name: str) -> None:
    SlaEvaluation(world.store, "primary", world.at("01:00").now).evaluate(world.ledger)
    SlaEvaluation(world.store, "primary", world.at("01:31").now).evaluate(world.ledger)
    row = SLA_BREACHES.c
    with world.ledger.engine.connect() as connection:
        own = (row.entity == name, row.level == "should_end_in")
        asked = select(row.level, row.instance, row.state).where(*own)
        found = [(one.level, f"{one.instance:%H:%M}", one.state) for one in connection.execute(asked)]
    assert found == [("should_end_in", "00:00", "OPEN")]


@pytest.mark.parametrize(
    ("name", "asset"), [("orders import", ["primary", "orders"]), ("sums to shop", ["primary", "sums__to__shop"])]
)
def test_its_asset_has_a_check(world: ImportWorld, name: str, asset: list[str]) -> None:
    check = SlaChecks(world.store, world.at("01:50")).find("process", name, "primary")
    assert check is not None
    assert check.key == dg.AssetKey(asset)
    graph = definitions_of(world.store, world.at("01:50")).get_repository_def().asset_graph
    assert check.key in {one.asset_key for one in graph.asset_check_keys}


def test_explain_says_what_an_import_reads_and_makes(world: ImportWorld) -> None:
    folder = f"{world.settings.home}/data/primary/orders"
    said = explained(world, "orders import")
    assert said.inputs == (
        ExplainedInput("before", "orders", False, (ExplainedInstance(hour(0), f"{folder}/2013-01-01-00", False),)),
    )
    assert said.outputs == (ExplainedOutput("target", "orders", hour(1), f"{folder}/2013-01-01-01"),)
    assert said.properties["source.table"] == "public.orders"
    assert said.properties["merge.upsert.key"] == "id"
    assert said.properties["written by"] == "Spark, as rows are merged by key"


def test_explain_says_what_an_export_reads_and_where_it_goes(world: ImportWorld) -> None:
    folder = f"{world.settings.home}/data/primary/sums/2013-01-01/01"
    said = explained(world, "sums to shop")
    assert said.inputs == (ExplainedInput("source", "sums", False, (ExplainedInstance(hour(1), folder, False),)),)
    assert (said.outputs, said.properties["target.table"]) == ((), "sums")


def test_explain_says_where_there_is_none(world: ImportWorld) -> None:
    with pytest.raises(FalconError, match="'orders import' on cluster 'primary' has no instance 2013-01-01T01:30Z"):
        explained(world, "orders import", "2013-01-01T01:30Z")
    with pytest.raises(FalconError, match="there is no process 'sum to shop'"):
        explained(world, "sum to shop")


def test_the_command_knows_transfers(world: ImportWorld) -> None:
    result = CliRunner().invoke(falcon, ["explain", "orders import", "2013-01-01T01:00Z", "--json"])
    (made,) = json.loads(result.output)["outputs"]
    assert (made["name"], made["feed"], made["instance"]) == ("target", "orders", "2013-01-01T01:00Z")
