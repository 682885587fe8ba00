"""What coordinators decide about a flow: what was missed and is skipped, and around which executors work goes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from falcon_assets.instances.store.executors import note_answer
from falcon_assets.planning.executor_health import Answer
from tests.builders import cluster_yaml
from tests.features.flows.shop_flow import can, flow_yaml
from tests.hours import hour
from tests.world import MakeWorld, World

CAPABILITIES = (("http", "file"), ("file", "file"), ("file", "postgresql"))
SERVICE = "http://127.0.0.1:9"
"""Nothing is read in these tests."""
WORK = ("orders import", "orders from one", "orders to store", "orders to reports")


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, database: str) -> World:
    executors = [can(*CAPABILITIES, name=name) for name in ("east", "west")]
    clusters = [cluster_yaml(name, executors=executors) for name in ("one", "two")]
    found: World = make_world({"all.yaml": "".join(clusters) + flow_yaml(SERVICE, database, catch_up="skip")})
    return found


def test_copies_and_exports_do_not_wait_for_what_is_skipped(world: World) -> None:
    (run,) = world.decide("04:10").runs
    assert (run.workload.name, run.launch.nominals) == ("orders import", (hour(4),))
    world.decide("04:10")  # the others see what was skipped
    for name in WORK:
        skipped = [row["nominal"] for row in world.rows(name).values() if row["state"] == "SKIPPED"]
        assert skipped == [hour(number) for number in range(4)], name
    waiting = {name: set(one.waiting) for (name, _), one in world.decide("04:10").decisions.items()}
    assert waiting == {name: set() if name == "orders import" else {hour(4)} for name in WORK}


def is_offline(world: World, executor: str) -> None:
    with world.ledger.engine.begin() as connection:
        note_answer(connection, world.store.cluster("one"), executor, Answer("refused"), datetime.now(UTC))


def test_work_goes_around_an_executor_that_is_offline(world: World) -> None:
    assert [run.launch.executor for run in world.decide("05:10").runs] == ["east"]
    is_offline(world, "east")
    assert [run.launch.executor for run in world.decide("06:10").runs] == ["west"]
    is_offline(world, "west")
    decided = world.decide("07:10")
    assert decided.runs == ()
    assert str(decided.decisions["orders import", "one"].waiting[hour(7)]) == (
        "waits for an executor: east is offline: refused; west is offline: refused"
    )
