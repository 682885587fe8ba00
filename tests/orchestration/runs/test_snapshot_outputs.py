"""A process that replaces a table in place, on files and on a real S3 server; its copy, and who reads it."""

from __future__ import annotations

import json
import os

import pytest
from sqlalchemy import select

from falcon_assets.features.triage.answers import TriageAnswers
from falcon_assets.features.triage.known import Work
from falcon_assets.features.triage.tree import Cause, causes_of
from falcon_assets.features.triage.walk import Search
from falcon_assets.history.tables import CONSUMED
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.s3_server import ENVIRON, lake
from tests.world import MakeWorld

pytestmark = pytest.mark.soak

VALIDITY = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}"
SNAPSHOT = """---
kind: feed
name: %s
snapshot: true
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
locations: {data: /%s}
clusters:
%s
schedule: true
"""
PROCESS = f"""---
kind: process
name: %s
clusters: [{{name: east, {VALIDITY}}}]
frequency: hours(1)
parallel: 3
inputs: [{{name: rows, feed: %s, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: %s, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: all.sql}}
schedule: true
"""


@pytest.fixture(scope="module")
def world(lake_url: str, make_world: MakeWorld) -> ReplicationWorld:
    target = cluster_yaml(**lake(lake_url), colo="east")
    on_lake = f"  - {{name: lake, {VALIDITY}}}"
    entities = [
        cluster_yaml("east"),
        target,
        feed("raw", f"  - {{name: east, {VALIDITY}}}"),
        SNAPSHOT % ("current", "current", "\n".join((on("east", "source"), on("lake", "target")))),
        SNAPSHOT % ("far", "far", on_lake),
        feed("used", f"  - {{name: east, {VALIDITY}}}"),
        PROCESS % ("keep", "raw", "current"),
        PROCESS % ("use", "current", "used"),
        (PROCESS % ("again", "current", "far")).replace("name: east", "name: lake"),
    ]
    return make_world({"all.yaml": "".join(entities), "all.sql": "SELECT n FROM rows"}, ReplicationWorld)


def there(world: ReplicationWorld, cluster: str, folder: str) -> list[int]:
    """The rows of a complete table."""
    store = ClusterStore(world.store.cluster(cluster), world.settings.home, ENVIRON)
    store.files.refresh()
    found = {str(path).rpartition("/")[2]: store.fs.cat_file(path) for path in store.fs.find(store.path(f"/{folder}"))}
    assert "_SUCCESS" in found
    lines = (line for name, text in found.items() if name.endswith(".json") for line in text.splitlines())
    return sorted(json.loads(line)["n"] for line in lines)


def versions(world: ReplicationWorld, cluster: str, name: str) -> dict[int, str]:
    """Of the instances by hour, as they were recorded last."""
    found = ((number, world.published(cluster, name, number)) for number in range(8))
    return {number: one[-1].version for number, one in found if one}


def state(world: ReplicationWorld, process: str, number: int) -> tuple[str, str]:
    world.ledger.catch_up()
    key = (process, "east", hour(number))
    with world.ledger.engine.connect() as connection:
        record = PROCESS_ROWS.some(connection, [key])[key]
        return record.state.value, record.reason


def cause_of(world: ReplicationWorld, process: str, number: int) -> Cause:
    work = Work(process, "east", hour(number))
    now = hour(7)
    with world.ledger.engine.connect() as connection:
        search = Search(world.store, TriageAnswers(connection, world.store, world.settings, now), now)
        search.run([work], [])
        return causes_of(search, work)


def test_each_instance_replaces_what_the_one_before_wrote(world: ReplicationWorld) -> None:
    for number in range(3):
        world.land("east", "raw", number, a=number)
    assert len(world.step("02:30", "raw")) == 1
    assert there(world, "east", "current") == [2]
    own = versions(world, "east", "current")
    assert list(own) == [0, 1, 2]
    assert len(set(own.values())) == 3


def test_what_reads_it_reads_what_is_there(world: ReplicationWorld) -> None:
    for file in (world.settings.home / "data/east/current").iterdir():
        os.utime(file, (0, 0))  # whatever the clock of the store says: it is known what there is
    world.step("02:30", "current")
    newest = versions(world, "east", "current")[2]
    with world.ledger.engine.connect() as connection:
        assert not connection.execute(select(CONSUMED).where(CONSUMED.c.stale)).all(), "nothing of it is late"
    for number in range(3):
        (used,) = world.published("east", "used", number)
        assert [one.version for one in used.inputs["rows"]] == [newest]
        assert len(set(versions(world, "lake", "current").values())) == 1
    assert there(world, "lake", "current") == there(world, "lake", "far") == [2]
    assert list(versions(world, "lake", "far")) == [0, 1, 2]


def test_an_instance_that_a_later_one_passed_is_skipped(world: ReplicationWorld) -> None:
    world.land("east", "raw", 4, a=4)
    assert len(world.step("04:30", "raw")) == 1
    world.land("east", "raw", 3, a=3)
    assert world.step("04:40", "raw") == []
    why = "snapshot current has its instance 2013-01-01T04:00Z already, which an earlier one does not replace"
    assert state(world, "keep", 3) == ("SKIPPED", why)
    cause = cause_of(world, "keep", 3)
    assert (str(cause.reason), cause.fix) == (why, None), "to run it again would come to nothing"
    assert there(world, "east", "current") == [4]


def test_what_a_later_one_wrote_is_there_for_it(world: ReplicationWorld) -> None:
    (passed,) = world.published("east", "current", 3)
    assert passed.version == versions(world, "east", "current")[4]
    assert (passed.process, passed.nominal) == ("keep", hour(4))
    world.step("04:45", "current")
    assert list(versions(world, "lake", "current")) == [0, 1, 2, 3, 4]
    assert [one.version for one in world.published("east", "used", 3)[0].inputs["rows"]] == [passed.version]


def test_an_earlier_instance_that_somebody_runs_fails_and_replaces_nothing(world: ReplicationWorld) -> None:
    assert not world.run_job("east__keep_job", "04:50", partition_key="2013-01-01T02:00Z").success
    failed, why = state(world, "keep", 2)
    assert failed == "FAILED"
    assert "has its instance 2013-01-01T04:00Z already, which an earlier one does not replace" in why
    assert there(world, "east", "current") == [4]


def test_the_newest_may_be_run_again(world: ReplicationWorld) -> None:
    world.land("east", "raw", 4, a=40)
    assert world.run_job("east__keep_job", "04:50", partition_key="2013-01-01T04:00Z").success
    assert there(world, "east", "current") == [40]
    own = versions(world, "east", "current")
    assert own[4] != own[3]
    world.land("east", "raw", 5, a=50)
    assert len(world.step("05:30", "raw")) == 1
    world.step("05:30", "current")
    assert there(world, "lake", "current") == [50]
