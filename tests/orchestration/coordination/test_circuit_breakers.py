"""A store that does not answer costs a tick one or two of its feeds, not its whole budget."""

from __future__ import annotations

import socket

import dagster as dg
import pytest

from falcon_assets.features.landing import circuit_breakers as breakers
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.landing.old_instances import OldInstances
from falcon_assets.features.landing.rules import FIRST_SECONDS
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.orchestration.old_world import FEED, OldWorld
from tests.world import MakeWorld

DEAD = [f"dead-{number}" for number in range(9)]


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
    return found


@pytest.fixture(scope="module")
def world(port: int, make_world: MakeWorld) -> OldWorld:
    away = cluster_yaml("away").replace("data/away", f"webhdfs://127.0.0.1:{port}/data")
    near = cluster_yaml("near") + FEED.format(name="alive", cluster="near")
    feeds = "".join(FEED.format(name=name, cluster="away") for name in DEAD)
    return make_world({"away.yaml": away + feeds, "near.yaml": near}, OldWorld)


class Seconds:
    """The clock of the breakers."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(breakers, "time", clock)
    return clock


def test_after_two_failures_the_others_are_left_out(world: OldWorld, port: int, seconds: Seconds) -> None:
    collector = world.collector("away")
    found = collector.collect(world.ledger, 60)
    assert list(found.problems) == DEAD[:2]
    assert (found.recorded, found.left) == (0, 0)
    ((why, feeds),) = found.left_out.items()
    assert feeds == len(DEAD) - 2
    assert why.startswith(
        f"webhdfs://127.0.0.1:{port} does not answer and is asked again in 15 s: "
        f"cluster 'away': cannot look for the root webhdfs://127.0.0.1:{port}/data: the namenode at"
    )
    seconds.now = FIRST_SECONDS - 1
    again = collector.collect(world.ledger, 60)
    assert (again.problems, list(again.left_out.values())) == ({}, [len(DEAD)])
    assert list(OldInstances(collector).collect(world.ledger).left_out.values()) == [len(DEAD)]
    seconds.now = FIRST_SECONDS
    probe = collector.collect(world.ledger, 60)
    assert (len(probe.problems), list(probe.left_out.values())) == (1, [len(DEAD) - 1])
    assert next(iter(probe.left_out)).startswith(
        f"webhdfs://127.0.0.1:{port} does not answer and is asked again in 30 s"
    )


def test_what_was_pushed_waits_until_the_store_answers(world: OldWorld, seconds: Seconds) -> None:
    collector = world.collector("away")
    collector.collect(world.ledger, 60)
    event = dg.AssetMaterialization(["away", "dead-3"], partition="2012-03-01T00:00Z")
    world.instance.report_runless_asset_event(event)
    for time in (1.0, FIRST_SECONDS):
        seconds.now = time
        collector.collect(world.ledger, 60)
    assert world.waiting("dead-3") == ["2012-03-01T00:00Z"]


def test_the_tick_says_what_is_left_out_and_other_clusters_go_on(world: OldWorld, port: int) -> None:
    repository = definitions_of(world.store, world.at("00:30")).get_repository_def()
    world.land("near", "alive", "2012-03-01T00")

    def tick(cluster: str) -> str | None:
        with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
            return repository.get_sensor_def(f"{cluster}__collector").evaluate_tick(context).skip_message

    with pytest.raises(dg.Failure) as failed:
        tick("away")
    lines = (failed.value.description or "").splitlines()
    assert lines[0].startswith("dead-0: cluster 'away': cannot look for the root webhdfs://")
    assert f" feeds are left out: webhdfs://127.0.0.1:{port} does not answer" in lines[-1]
    said = tick("away")
    assert said is not None
    assert said.startswith(f"0 instances landed; 9 feeds are left out: webhdfs://127.0.0.1:{port} does not answer")
    assert tick("near") == "1 instance landed"


def test_feeds_that_are_refused_say_nothing_about_their_store(world: OldWorld) -> None:
    collector = Collector(world.store, world.store.cluster("near"), world.at("00:30"))
    bad = world.settings.home / "data/near/alive/2012-03-02"
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.symlink_to(bad)
    with world.ledger.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM falcon.collected WHERE cluster = 'near'")
    for _ in range(3):
        found = collector.collect(world.ledger, 60)
        assert (list(found.problems), found.left_out) == (["alive"], {})
