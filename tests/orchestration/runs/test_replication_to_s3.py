"""Archival as replication: from file systems of another colo to a real S3 server, late changes included."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import text

from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.world import MakeWorld

SOURCES = "".join(cluster_yaml(name, colo="us") for name in ("east", "west"))
BY_NAME = ', partition: "${cluster.name}"'
FEED = feed(
    "parts", on("east", "source", more=BY_NAME), on("west", "source", more=BY_NAME), on("lake", "target"),
    more="partitions: [site]\n",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(lake_url: str, make_world: MakeWorld) -> ReplicationWorld:
    target = cluster_yaml(**lake(lake_url), colo="eu")
    return make_world({"all.yaml": SOURCES + target + FEED}, ReplicationWorld)


def archived(world: ReplicationWorld, number: int) -> set[str]:
    store = ClusterStore(world.store.cluster("lake"), world.settings.home, ENVIRON)
    folder = store.path(f"/parts/2013-01-01-{number:02}")
    store.fs.invalidate_cache()
    return {str(name)[len(folder) + 1 :] for name in store.fs.find(folder)}


def test_an_instance_is_archived_when_all_sources_have_come(
    world: ReplicationWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.land("east", "parts", 1, east__a=1, east__b=2)
    assert len(world.step("01:00", "parts")) == 1
    assert archived(world, 1) == {"east/a.json", "east/b.json"}, "the flag is the switch"
    assert world.published("lake", "parts", 1) == []
    world.land("west", "parts", 1, west__a=3)
    assert len(world.step("01:10", "parts")) == 1
    assert archived(world, 1) == {"east/a.json", "east/b.json", "west/a.json", "_SUCCESS"}
    assert [one.files for one in world.published("lake", "parts", 1)] == [3]
    assert [one.verification for one in world.copied("lake", "parts", 1)] == ["etag"]
    for secret in (KEY, SECRET):
        assert secret not in caplog.text


def test_late_changes_move_only_what_changed(world: ReplicationWorld) -> None:
    world.land("east", "parts", 1, east__b=20)
    world.step("01:20", "parts")
    assert world.step("04:00", "parts") == ["parts from east on lake, 2013-01-01T01:00Z, attempt 2"]
    assert archived(world, 1) == {"east/a.json", "east/b.json", "west/a.json", "_SUCCESS"}
    again = world.copied("lake", "parts", 1)[-1]
    assert (again.files_copied, again.files_skipped) == (1, 1)
    assert len(world.published("lake", "parts", 1)[-1].late) == 1


def test_the_location_of_one_colo_replicates_from_another(world: ReplicationWorld) -> None:
    world.land("east", "parts", 2, east__a=1)
    world.land("west", "parts", 2, west__a=2)
    world.collect("02:00")
    there = ReplicationWorld(world.store.in_colo("eu"), world.settings, world.instance, world.ledger)
    assert sorted(there.step("02:00", "parts")) == [
        "parts from east on lake, 2013-01-01T02:00Z, attempt 1",
        "parts from west on lake, 2013-01-01T02:00Z, attempt 1",
    ]
    assert archived(world, 2) == {"east/a.json", "west/a.json", "_SUCCESS"}


def test_credentials_are_in_no_event_and_in_no_run(world: ReplicationWorld) -> None:
    with world.ledger.engine.connect() as connection:
        for table, column in (("event_logs", "event"), ("runs", "run_body")):
            rows = connection.execute(text(f"SELECT count(*), string_agg({column}, '') FROM {table}")).one()
            assert rows[0] > 0
            assert KEY not in rows[1]
            assert SECRET not in rows[1]
    assert SECRET not in repr(world)
