"""Replication from the file that lands on a source to the instance on its targets: real files, runs and Spark."""

from __future__ import annotations

import dagster as dg
import pytest

from falcon_assets.history.events.process_instances import FilesCopied
from falcon_assets.model.instant import parse_instant
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.world import world_of

ENTITIES = "".join(
    [
        *(cluster_yaml(name, colo="us") for name in ("east", "west")),
        *(cluster_yaml(name, colo="eu") for name in ("backup", "archive")),
        feed(
            "plain",
            on("east", "source", "00", "06", ", delay: minutes(20)"),
            on("backup", "target", "02", "08"),
            on("archive", "target", "05", "06"),
            more="versions: {keep: 2}\n",
        ),
        feed(
            "parts",
            on("east", "source", more=', partition: "${cluster.name}"'),
            on("west", "source", "01", more=', partition: "${cluster.name}"'),
            on("backup", "target"),
            more="partitions: [site]\n",
        ),
        feed("idle", on("east", "source"), on("backup", "target"), schedule="false"),
        feed("made", on("backup", "source")),
        """---
kind: process
name: sum
clusters: [{name: backup, validity: {start: 2013-01-01T02:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: plain, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: made, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum.sql}
late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows}]}
schedule: true
""",
    ]
)


world = world_of({"all.yaml": ENTITIES, "sum.sql": "SELECT sum(n) AS n FROM rows"}, ReplicationWorld)


def test_assets_and_jobs_of_targets(world: ReplicationWorld) -> None:
    definitions = definitions_of(world.store, world.settings)
    spec = definitions.resolve_assets_def(dg.AssetKey(["backup", "plain"])).specs_by_key[
        dg.AssetKey(["backup", "plain"])
    ]
    assert [dep.asset_key.path for dep in spec.deps] == [["east", "plain"]]
    assert spec.partitions_def is not None
    # The overlap: the later start and the earlier end.
    assert spec.partitions_def.get_first_partition_key() == "2013-01-01T02:00Z"
    assert spec.partitions_def.get_partition_keys()[-1] == "2013-01-01T05:00Z"
    parts = definitions.resolve_assets_def(dg.AssetKey(["backup", "parts"])).specs_by_key[
        dg.AssetKey(["backup", "parts"])
    ]
    assert [dep.asset_key.path for dep in parts.deps] == [["east", "parts"], ["west", "parts"]]
    names = {sensor.name for sensor in definitions.sensors or ()}
    assert names >= {
        "backup_replication__coordinator",
        "backup_replication__late_arrival",
        "archive_replication__coordinator",
    }
    assert definitions.resolve_job_def("backup__plain__replication_job")


def test_an_instance_is_copied_when_its_delay_has_passed(world: ReplicationWorld) -> None:
    world.land("east", "plain", 4, a=1, b=2)
    assert world.step("04:10", "plain") == []
    assert world.step("04:20", "plain") == [
        "plain from east on backup, 2013-01-01T04:00Z, attempt 1",
        "sum on backup, 2013-01-01T04:00Z, attempt 1",
    ]
    assert world.files("backup", "plain", 4) == {"a.json": 1, "b.json": 2}
    assert world.waiting("04:30", "plain")["plain from east", "backup"] == {
        2: "waits for source: plain 2013-01-01T02:00Z",
        3: "waits for source: plain 2013-01-01T03:00Z",
    }
    (there,), (source,) = world.published("backup", "plain", 4), world.published("east", "plain", 4)
    assert there.version == source.version
    assert there.source_versions == {"east": source.version}
    assert world.copied("backup", "plain", 4) == [FilesCopied("east", 2, 0, 0, 18, "checksum")]
    progress = "plain from east 2013-01-01T04:00Z: 2 of 2 files, 0.0 of 0.0 MB, "
    last = world.messages("backup", "plain", 4)[-1]
    assert last.startswith(progress)
    assert last.endswith(" MB/s")


def test_late_changes_move_only_what_changed_and_the_cascade_follows(world: ReplicationWorld) -> None:
    world.land("east", "plain", 5, a=1, b=2)
    assert world.step("05:20", "plain", "backup") == [
        "plain from east on backup, 2013-01-01T05:00Z, attempt 1",
        "sum on backup, 2013-01-01T05:00Z, attempt 1",
    ]
    world.land("east", "plain", 5, b=20)
    assert world.step("05:40", "plain", "backup") == []
    assert world.step("08:00", "plain", "backup") == [
        "plain from east on backup, 2013-01-01T05:00Z, attempt 2",
        "sum on backup, 2013-01-01T05:00Z, attempt 2",
    ]
    assert world.files("backup", "plain", 5) == {"a.json": 1, "b.json": 20}
    _, second = world.copied("backup", "plain", 5)
    assert (second.files_copied, second.files_skipped) == (1, 1)
    published = world.published("backup", "plain", 5)
    (cause,) = published[1].late
    assert [cause.before, cause.after] == [(one.source_versions or {})["east"] for one in published]
    assert [one.version for one in published[1].kept_versions or ()] == [published[0].version]
    assert world.step("09:00", "plain", "backup") == []


@pytest.mark.soak
def test_what_is_replaced_just_before_it_is_listed_is_recorded_as_it_was_copied(
    world: ReplicationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.land("east", "plain", 3, a=1)
    enter = InstanceCopy.__enter__

    def replaced(copy: InstanceCopy) -> InstanceCopy:
        world.land("east", "plain", 3, a=30)
        return enter(copy)

    monkeypatch.setattr(InstanceCopy, "__enter__", replaced)
    world.step("03:20", "plain", "backup")
    assert world.files("backup", "plain", 3) == {"a.json": 30}
    (there,) = world.published("backup", "plain", 3)
    assert there.source_versions == {"east": there.version}  # two files of the same content have one version


def test_the_target_is_complete_when_all_sources_have_come(world: ReplicationWorld) -> None:
    world.land("east", "parts", 1, east__a=1, other=5)
    assert world.step("01:00", "parts") == ["parts from east on backup, 2013-01-01T01:00Z, attempt 1"]
    assert world.files("backup", "parts", 1) is None
    assert world.published("backup", "parts", 1) == []
    world.land("west", "parts", 1, west__a=2, east__not_its=9)
    assert world.step("01:10", "parts") == ["parts from west on backup, 2013-01-01T01:00Z, attempt 1"]
    assert world.files("backup", "parts", 1) == {"east/a.json": 1, "west/a.json": 2}
    (copied,) = world.published("backup", "parts", 1)
    assert copied.source_versions == {
        source: world.published(source, "parts", 1)[0].version for source in ("east", "west")
    }
    # Before 01:00 there is no west: east alone is everything.
    world.land("east", "parts", 0, east__a=3)
    assert world.step("01:20", "parts") == ["parts from east on backup, 2013-01-01T00:00Z, attempt 1"]
    assert world.files("backup", "parts", 0) == {"east/a.json": 3}


def test_a_late_change_of_one_source_leaves_the_other_alone(world: ReplicationWorld) -> None:
    world.land("east", "parts", 2, east__a=1)
    world.land("west", "parts", 2, west__a=2)
    assert len(world.step("02:00", "parts")) == 2
    world.land("west", "parts", 2, west__a=20)
    world.step("02:10", "parts")
    assert world.step("05:00", "parts") == ["parts from west on backup, 2013-01-01T02:00Z, attempt 2"]
    assert world.files("backup", "parts", 2) == {"east/a.json": 1, "west/a.json": 20}
    (_, again) = world.published("backup", "parts", 2)
    assert [one.instance for one in again.late] == [parse_instant("2013-01-01T02:00Z")]


def test_an_empty_instance_is_replicated_as_empty(world: ReplicationWorld) -> None:
    world.land("east", "parts", 3)
    world.land("west", "parts", 3)
    assert len(world.step("03:00", "parts")) == 2
    assert world.files("backup", "parts", 3) == {}
    assert world.copied("backup", "parts", 3)[-1].verification == "nothing to verify"


def test_a_person_replicates_from_all_sources(world: ReplicationWorld) -> None:
    world.land("east", "parts", 4, east__a=1)
    world.land("west", "parts", 4, west__a=2)
    done = world.run_job("backup__parts__replication_job", "04:00", partition_key="2013-01-01T04:00Z")
    assert done.success
    assert world.files("backup", "parts", 4) == {"east/a.json": 1, "west/a.json": 2}
    assert [one for one in world.step("04:10", "parts") if "04:00Z" in one] == []


def test_a_person_is_told_what_is_missing(world: ReplicationWorld) -> None:
    done = world.run_job("backup__parts__replication_job", "05:00", partition_key="2013-01-01T05:00Z")
    assert not done.success
    (failure,) = [event for event in done.all_events if event.is_step_failure]
    said = failure.step_failure_data.user_failure_data
    assert said is not None
    where = world.folder("east", "parts", 5)
    assert (
        "parts from east on backup at 2013-01-01T05:00Z waits for 1 input instance(s):\n"
        f"parts 2013-01-01T05:00Z at {where}" in str(said.description)
    )
    assert "parts from west" in str(said.description)


def test_what_is_only_submitted_is_not_replicated(world: ReplicationWorld) -> None:
    world.land("east", "idle", 1, a=1)
    assert world.step("02:00", "idle") == []
    assert (
        world.waiting("02:00", "idle")["idle from east", "backup"][1]
        == "does not run by itself: it is not scheduled, or suspended"
    )


def test_targets_know_nothing_of_each_other(world: ReplicationWorld) -> None:
    """The archive starts when the backup has the second version already, and is up to date at once."""
    assert world.files("archive", "plain", 5) is None
    assert world.step("09:10", "plain", "archive") == ["plain from east on archive, 2013-01-01T05:00Z, attempt 1"]
    assert world.files("archive", "plain", 5) == world.files("backup", "plain", 5)
    assert len(world.published("archive", "plain", 5)) == 1


def test_the_ledger_is_what_a_rebuild_makes_of_history(world: ReplicationWorld) -> None:
    world.ledger.catch_up()
    before = world.everything()
    world.ledger.rebuild()
    assert world.everything() == before
    read = {(row.process, row.cluster, row.input_cluster) for row in before["consumed"]}
    assert read >= {("plain from east", "backup", "east"), ("sum", "backup", "backup")}
