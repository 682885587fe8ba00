"""A compaction has an SLA as a process has: what is late to start and to end is an alert, and a check of its asset."""

from __future__ import annotations

import dagster as dg
from sqlalchemy import select

from falcon_assets.features.sla.checks import SlaChecks
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.history.tables.sla import SLA_BREACHES
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.features.compaction.compaction_world import clicks, land
from tests.orchestration.replication_world import ReplicationWorld
from tests.world import world_of

world = world_of(
    clicks("sla: {should_start_in: minutes(10), should_end_in: minutes(30)}"),
    ReplicationWorld,
)


def _breaches(world: ReplicationWorld, time: str) -> set[tuple[str, str, str, str]]:
    """Entity, level, hour and state of the breaches on the cluster as of that time."""
    settings = world.at(time)
    SlaEvaluation(world.store, "east", settings.now).evaluate(world.ledger)
    row = SLA_BREACHES.c
    with world.ledger.engine.connect() as connection:
        found = connection.execute(select(row.entity, row.level, row.instance, row.state))
        return {(one.entity, one.level, f"{one.instance:%H:%M}", one.state) for one in found}


def test_what_is_late_is_an_alert_until_it_is_done(world: ReplicationWorld) -> None:
    land(world, 1, a=[2, 1], b=[3])
    _breaches(world, "01:05")
    late = _breaches(world, "01:35")
    assert ("clicks compaction", "should_start_in", "01:00", "OPEN") in late
    assert ("clicks compaction", "should_end_in", "01:00", "OPEN") in late
    assert world.step("01:40", "clicks", "east") == ["clicks compaction on east, 2013-01-01T01:00Z, attempt 1"]
    assert ("clicks compaction", "should_end_in", "01:00", "MET") in _breaches(world, "01:45")


def test_its_asset_has_a_check(world: ReplicationWorld) -> None:
    found = SlaChecks(world.store, world.at("01:50")).find("process", "clicks compaction", "east")
    assert found is not None
    assert found.key == dg.AssetKey(["east", "clicks__compaction"])
    graph = definitions_of(world.store, world.at("01:50")).get_repository_def().asset_graph
    assert found.key in {one.asset_key for one in graph.asset_check_keys}
