"""A table that is replaced in place is copied in place, as a whole: to files and to a real S3 server."""

from __future__ import annotations

import os

import pytest
import yaml

from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, on
from tests.s3_server import ENVIRON, lake
from tests.world import MakeWorld

pytestmark = pytest.mark.soak

ENTITIES = (
    """---
kind: feed
name: carriers
snapshot: true
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(6)}
locations: {data: /carriers}
clusters:
"""
    + "\n".join((on("east", "source"), on("backup", "target"), on("lake", "target")))
    + """
schedule: true
---
kind: feed
name: sums
frequency: hours(1)
format: json
locations: {data: "/sums/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: backup, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: process
name: sum
clusters: [{name: backup, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: carriers, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: sums, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum.sql}
late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows}]}
schedule: true
"""
)


@pytest.fixture(scope="module")
def world(lake_url: str, make_world: MakeWorld) -> ReplicationWorld:
    clusters = cluster_yaml("east") + cluster_yaml("backup") + cluster_yaml(**lake(lake_url), colo="east")
    return make_world({"all.yaml": clusters + ENTITIES, "sum.sql": "SELECT sum(n) AS n FROM rows"}, ReplicationWorld)


def refresh(world: ReplicationWorld, time: str, **files: str) -> None:
    """Replaces the table on the source, as if at that time."""
    folder = world.settings.home / "data/east/carriers"
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    seconds = world.at(time).now().timestamp()
    for name, text in files.items():
        (folder / name).write_text(text)
        os.utime(folder / name, (seconds, seconds))
    (folder / "_SUCCESS").touch()


def there(world: ReplicationWorld, cluster: str) -> dict[str, str]:
    """What a complete copy holds; nothing where there is none."""
    store = ClusterStore(world.store.cluster(cluster), world.settings.home, ENVIRON)
    store.files.refresh()
    folder = store.path("/carriers")
    found = {str(path).rpartition("/")[2]: store.fs.cat_file(path).decode() for path in store.fs.find(folder)}
    return {name: text for name, text in found.items() if name != "_SUCCESS"} if "_SUCCESS" in found else {}


def versions(world: ReplicationWorld, cluster: str) -> list[str]:
    """Of the instances, from 00:00 on, as they were recorded last."""
    found = (world.published(cluster, "carriers", number) for number in range(8))
    return [one[-1].version for one in found if one]


def test_one_refresh_is_copied_once_for_all_instances_up_to_it(world: ReplicationWorld) -> None:
    refresh(world, "02:10", a='{"n": 1}\n', b='{"n": 2}\n')
    world.step("02:30", "carriers")
    for cluster in ("backup", "lake"):
        assert there(world, cluster) == {"a": '{"n": 1}\n', "b": '{"n": 2}\n'}
        assert len(versions(world, cluster)) == 3
        assert len(set(versions(world, cluster))) == 1
        copied = [world.copied(cluster, "carriers", number)[0] for number in range(3)]
        assert sorted(one.files_copied for one in copied) == [0, 0, 2]
    assert versions(world, "backup") == versions(world, "east")
    assert [one["n"] for one in sums(world)] == [3, 3, 3]


def sums(world: ReplicationWorld) -> list[dict[str, int]]:
    """What the process on the target made of it, by hour."""
    folders = sorted((world.settings.home / "data/backup/sums").iterdir())
    return [
        yaml.safe_load(line) for folder in folders for file in folder.glob("*.json") for line in file.open() if line
    ]


def test_what_is_not_refreshed_is_not_copied(world: ReplicationWorld) -> None:
    assert world.step("03:30", "carriers") == []
    waits = world.waiting("03:30", "carriers")
    why = "waits for source: carriers refreshed at or after 2013-01-01T03:00Z"
    assert waits["carriers from east", "backup"] == {3: why}
    assert waits["sum", "backup"] == {3: "waits for rows: carriers refreshed at or after 2013-01-01T03:00Z"}
    failed = world.run_job("backup__carriers__replication_job", "03:30", partition_key="2013-01-01T03:00Z")
    assert not failed.success
    said = str(failed.all_events)
    assert "snapshot last refreshed at 2013-01-01T02:10Z, needs >= 2013-01-01T03:00Z" in said


def test_the_next_refresh_replaces_it_as_a_whole(world: ReplicationWorld) -> None:
    refresh(world, "04:05", b='{"n": 2}\n', c='{"n": 5}\n')
    world.step("04:30", "carriers")
    for cluster in ("backup", "lake"):
        assert there(world, cluster) == {"b": '{"n": 2}\n', "c": '{"n": 5}\n'}
        found = versions(world, cluster)
        assert len(found) == 5
        assert found[3] == found[4] != found[2]
        copied = [world.copied(cluster, "carriers", number)[-1] for number in (3, 4)]
        assert sorted((one.files_copied, one.files_skipped) for one in copied) == [(0, 2), (1, 1)]
    assert [one["n"] for one in sums(world)] == [3, 3, 3, 7, 7]
    (read,) = world.published("backup", "carriers", 4)[-1].inputs["source"]
    assert (read.cluster, read.instance, read.version) == ("east", hour(4), versions(world, "east")[4])


def test_a_refresh_before_the_next_time_is_late_data_of_the_newest_instance(world: ReplicationWorld) -> None:
    refresh(world, "04:40", b='{"n": 20}\n')
    world.step("04:50", "carriers")
    before = versions(world, "backup")
    world.step("08:00", "carriers")
    after = versions(world, "backup")
    assert there(world, "backup") == {"b": '{"n": 20}\n'} == there(world, "lake")
    assert [number for number in range(5) if after[number] != before[number]] == [4]
    world.step("09:10", "carriers")
    assert [one["n"] for one in sums(world)] == [3, 3, 3, 7, 20]
