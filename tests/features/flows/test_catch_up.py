"""A flow that skips what was missed: neither copies nor exports wait for what was never imported."""

from __future__ import annotations

import pytest

from tests.builders import cluster_yaml
from tests.features.flows.shop_flow import can, flow_yaml
from tests.hours import hour
from tests.world import MakeWorld, World

READS = (("http", "file"), ("file", "file"), ("file", "postgresql"))
SERVICE = "http://127.0.0.1:9"
"""Nothing is read in this test."""
WORK = ("orders import", "orders from one", "orders to store", "orders to reports")


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, database: str) -> World:
    clusters = [cluster_yaml(name, executors=[can(*READS)]) for name in ("one", "two")]
    found: World = make_world({"all.yaml": "".join(clusters) + flow_yaml(SERVICE, database, catch_up="skip")})
    return found


def test_only_the_newest_is_left_to_do(world: World) -> None:
    (run,) = world.decide("04:10").runs
    assert (run.workload.name, run.launch.nominals) == ("orders import", (hour(4),))
    world.decide("04:10")  # the others see what was skipped
    skipped = {
        name: [row["nominal"] for row in world.rows(name).values() if row["state"] == "SKIPPED"] for name in WORK
    }
    assert skipped == {key: [hour(number) for number in range(4)] for key in WORK}
    waiting = {name: set(one.waiting) for (name, _), one in world.decide("04:10").decisions.items()}
    assert waiting == {**{key: {hour(4)} for key in WORK}, WORK[0]: set()}
