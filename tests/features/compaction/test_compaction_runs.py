"""Compaction as a workload: started when an instance is there, again for late files, and unnoticed by readers."""

from __future__ import annotations

import threading

import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import StorageError
from falcon_assets.features.compaction import run
from falcon_assets.features.compaction.readers import InstanceReaders
from falcon_assets.features.triage.operations import triage
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.installation import open_installation
from tests.features.compaction.compaction_world import clicks, folder, land, names, row_of, stale, state, users
from tests.hours import hour
from tests.operations.rows import process_row, write
from tests.orchestration.replication_world import ReplicationWorld
from tests.world import world_of

COMPACTION, COPY = "clicks compaction", "clicks from east"


world = world_of(clicks("target_file_size: 1MB, late_files: 1, retry: {delay: minutes(15)}"), ReplicationWorld)


def test_an_instance_is_compacted_when_it_is_there(world: ReplicationWorld) -> None:
    land(world, a=[5, 3], b=[4, 1], c=[2])
    assert sorted(world.step("01:00", "clicks")) == [
        "clicks compaction on east, 2013-01-01T01:00Z, attempt 1",
        "clicks from east on west, 2013-01-01T01:00Z, attempt 1",
    ]
    assert users(folder(world)) == [1, 2, 3, 4, 5]
    assert len(names(folder(world))) == 1
    assert (folder(world) / "_SUCCESS").exists()
    assert state(world, COMPACTION) == ("SUCCEEDED", 1)
    *_, last = world.published("east", "clicks", 1)
    first = world.published("east", "clicks", 1)[0]
    assert (last.process, last.records, last.files, last.same_rows_as) == (COMPACTION, 5, 1, first.version)


def test_nobody_who_read_what_was_there_before_runs_again(world: ReplicationWorld) -> None:
    assert stale(world) == []
    assert world.step("01:30", "clicks") == []
    before, now = world.published("east", "clicks", 1)[0], row_of(world)
    assert now.version != before.version
    assert now.same_rows == before.version
    assert users(folder(world, cluster="west")) != []


def test_few_late_files_are_left_and_more_are_compacted_with_the_rest(world: ReplicationWorld) -> None:
    land(world, d=[0])
    world.collect("01:40")
    assert stale(world) == [(COMPACTION, 1), (COPY, 1)]
    assert world.step("01:40", "clicks", "east") == []
    land(world, e=[9])
    assert world.step("01:45", "clicks", "east") == ["clicks compaction on east, 2013-01-01T01:00Z, attempt 2"]
    assert users(folder(world)) == [0, 1, 2, 3, 4, 5, 9]
    assert len(names(folder(world))) == 1
    assert stale(world) == [(COPY, 1)]


def test_late_files_are_copied_once(world: ReplicationWorld) -> None:
    assert world.step("05:00", "clicks") == ["clicks from east on west, 2013-01-01T01:00Z, attempt 2"]
    assert sorted(users(folder(world, cluster="west"))) == [0, 1, 2, 3, 4, 5, 9]
    assert stale(world) == []
    assert world.step("05:30", "clicks") == []


def test_a_rebuilt_ledger_says_the_same(world: ReplicationWorld) -> None:
    before = world.everything()
    world.ledger.rebuild()
    assert world.everything() == before


def test_the_columns_that_only_some_files_have_are_kept(world: ReplicationWorld) -> None:
    land(world, 2, a=[2])
    other = pq.read_table(folder(world, 2) / "a.parquet").rename_columns(["user_id", "new"])
    pq.write_table(other, folder(world, 2) / "b.parquet")
    world.step("02:00", "clicks", "east")
    (name,) = names(folder(world, 2))
    assert pq.read_table(folder(world, 2) / name).to_pylist() == [
        {"user_id": 2, "from": "a", "new": None},
        {"user_id": 2, "from": None, "new": "a"},
    ]


def test_one_that_was_published_and_not_recorded_is_no_late_data(
    world: ReplicationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(world, 4, a=[2, 1])
    world.step("04:00", "clicks", "west")
    with monkeypatch.context() as patch:
        patch.setattr(run, "kept_versions", _fails)
        coordinator = Coordinator(world.store, world.at("04:01"), world.chosen("clicks", "east"))
        (planned,) = [one for one in coordinator.decide(world.ledger).runs if one.launch.nominals == (hour(4),)]
        assert not world.execute(planned, "04:01").success
    assert users(folder(world, 4)) == [1, 2]
    world.collect("04:02")
    assert stale(world) == []
    assert world.step("04:20", "clicks") == ["clicks compaction on east, 2013-01-01T04:00Z, attempt 2"]
    assert stale(world) == []


def _fails(*given: object) -> None:
    raise StorageError("the run ends here")


def test_it_is_listed_explained_and_searched_for_causes(world: ReplicationWorld) -> None:
    with open_installation(world.at("05:30")) as installation:
        query = InstanceQuery(COMPACTION, start=hour(1), end=hour(2), cluster="east")
        found = {one.instance.hour: (one.kind, one.state.value) for one in list_instances(installation, query).items}
        assert found == {1: ("compaction", "SUCCEEDED"), 2: ("compaction", "SUCCEEDED")}
        details = instance_details(installation, COMPACTION, hour(1)).explanation
        assert details.inputs[0].instances[0].available
        assert details.properties["sort"] == "user_id"
        causes = triage(installation, COMPACTION, hour(5)).as_data()
        assert (causes["kind"], causes["state"]) == ("compaction", "WAITING")
        (cause,) = causes["causes"]
        assert (cause["entity"], cause["kind"]) == ("clicks", "feed")
        page = list_instances(installation, InstanceQuery("clicks", start=hour(1), end=hour(1), type="feed"))
        assert [one.state.value for one in page.items if one.cluster == "east"] == ["AVAILABLE"]


def test_files_are_not_replaced_while_an_instance_that_reads_them_runs(world: ReplicationWorld) -> None:
    (compaction,) = world.store.compactions
    readers = InstanceReaders(compaction, world.store, world.ledger)
    with open_installation(world.at("05:30")) as installation:
        write(installation, process_row(COPY, 7, "RUNNING", "west", nominal=hour(7)))
        assert [*readers.reading(hour(7))] == ["clicks from east 2013-01-01T07:00Z"]
        assert [*readers.reading(hour(1))] == []
        write(installation, process_row(COPY, 6, "WAITING", "west", nominal=hour(6), queued_run="a-run"))
        assert [*readers.reading(hour(6))] == ["clicks from east 2013-01-01T06:00Z"]
        assert [*readers.reading(hour(6), waited=60)] == []
        ended = threading.Timer(1, write, (installation, process_row(COPY, 7, "SUCCEEDED", "west", nominal=hour(7))))
        ended.start()
        readers.wait_for_none(hour(7))
        assert not ended.is_alive()


def test_what_cannot_be_compacted_stays_and_says_why(world: ReplicationWorld) -> None:
    land(world, 3, a=[2])
    (folder(world, 3) / "b.parquet").write_text("damaged")
    world.collect("03:00")
    coordinator = Coordinator(world.store, world.at("03:00"), world.chosen("clicks", "east"))
    (planned,) = coordinator.decide(world.ledger).runs
    assert not world.execute(planned, "03:00").success
    assert state(world, COMPACTION, 3) == ("FAILED", 1)
    assert names(folder(world, 3)) == ["a.parquet", "b.parquet"]
    for time, number in (("03:14", 0), ("03:16", 1)):  # as its `retry` says
        again = Coordinator(world.store, world.at(time), world.chosen("clicks", "east"))
        assert len(again.decide(world.ledger).runs) == number
