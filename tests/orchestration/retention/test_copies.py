"""What replications staged of instances that never came goes from their target when its limit has outlived them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.entities.status import Status, command, statuses
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.retention.plan import FeedPlan, plan_retention
from falcon_assets.history.database import try_lock, unlock
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.runs.run_locks import instance_lock
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import ReplicationOptions, contributions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_task import run_task
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.world import MakeWorld

CLUSTERS = "".join(map(cluster_yaml, ("east", "backup")))
LIMIT = ", retention: {limit: hours(7)}"
ARCHIVE = ', retention: {limit: hours(7), action: archive, archive_to: "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}"}'
NAMES = ("lost", "archived", "busy", "come", "idle", "other")


@dataclass(frozen=True)
class CopiedWorld(ReplicationWorld):
    """Feeds of eight hours on ``east``, replicated to ``backup``."""

    def begin_copy(self, name: str, number: int) -> None:
        """Lands an instance and copies it, as a run does that is killed before it has published."""
        self.land("east", name, number, a=1, b=2)
        declared, path = self.store.feed(name), f"/{name}/2013-01-01-{number:02}"
        (part,) = contributions(declared, "backup", self.store.clusters)
        stores = [ClusterStore(self.store.cluster(one), self.settings.home, {}) for one in ("east", "backup")]
        target = kind_of(stores[1]).copy_target(OutputTarget(path, "_SUCCESS"), "east")
        with InstanceCopy(kind_of(stores[0]), path, target, part.holds, ReplicationOptions()) as copy:
            for task in range(len(copy.plan.tasks)):
                list(run_task(copy.job, task))

    def lose(self, name: str, *numbers: int) -> None:
        """The source's instances go, and nobody waits for them any more."""
        for number in numbers:
            shutil.rmtree(self.folder("east", name, number))
        for time in ("14:00", "21:00", "21:01"):  # once to wait, to time out, and to see that all is settled
            Coordinator(self.store, self.at(time), self.chosen(name)).decide(self.ledger)
            self.ledger.catch_up()

    def plan(self, name: str, time: str) -> FeedPlan:
        self.ledger.catch_up()
        with self.ledger.engine.connect() as connection:
            feeds = [self.store.feed(name)]
            (plan,) = plan_retention(connection, self.store, self.stores("backup"), feeds, self.at(time).now())
        return plan

    def fates(self, name: str, time: str) -> dict[int, tuple[str, str]]:
        copies = self.plan(name, time).copies
        return {
            one.verdict.instance.nominal.hour: (one.verdict.action, one.verdict.reason)
            for one in copies
            if one.copy.sources == ("east",)
        }

    def run(self, name: str, time: str) -> PassResult:
        def record(events: Any) -> None:
            for event in events:
                self.instance.report_runless_asset_event(event)

        feeds = [self.store.feed(name)]
        return RetentionPass(self.store, self.store.cluster("backup"), feeds, self.at(time), 0).run(
            self.ledger, "run", record
        )

    def staged(self, name: str) -> set[int]:
        """The hours of which something is staged."""
        copies = self.settings.home / "data/backup/.falcon/staging/copies"
        found = {one.parent if one.parent.name == "unfinished" else one for one in copies.glob(f"{name}-*/*/*")}
        marks = copies.glob(f"unfinished/{name}-*")
        return {int(one.relative_to(copies).parts[0].split(".")[0][-2:]) for one in found} | {
            int(mark.name.split(".")[0][-2:]) for mark in marks
        }


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> CopiedWorld:
    limits = {name: ARCHIVE if name == "archived" else LIMIT for name in NAMES}
    feeds = [
        feed(name, on("east", "source"), on("backup", "target", more=more), schedule=str(name != "idle").lower())
        for name, more in limits.items()
    ]
    world = make_world({"all.yaml": "".join([CLUSTERS, *feeds])}, CopiedWorld)
    with world.ledger.engine.begin() as connection:  # all are scheduled before the first test turns its clock on
        statuses(connection, world.store.feeds.values(), world.at("14:00").now())
    return world


def test_it_goes_when_nobody_is_to_copy_it_any_more(world: CopiedWorld) -> None:
    for number in (0, 1):
        world.begin_copy("lost", number)
    assert world.staged("lost") == {0, 1}
    waits = "process lost from east 2013-01-01T0{}:00Z needs it: it has yet to run"
    assert world.fates("lost", "14:00") == {number: ("keep", waits.format(number)) for number in (0, 1)}
    assert world.run("lost", "14:00") == PassResult(0, 0, ())
    world.lose("lost", 0, 1)
    assert world.fates("lost", "21:01") == dict.fromkeys((0, 1), ("delete", "older than hours(7)"))
    assert world.fates("lost", "07:30") == {
        0: ("delete", "older than hours(7)"),
        1: ("keep", "not older than hours(7)"),
    }
    assert world.staged("lost") == {0, 1}  # planning changes nothing
    assert world.run("lost", "21:01") == PassResult(0, 0, (), 2)
    assert world.staged("lost") == set()
    assert list((world.settings.home / "data/backup/.falcon/staging/evicted").iterdir()) == []
    assert world.run("lost", "21:01") == PassResult(0, 0, ())
    assert world.instance.fetch_observations(dg.AssetKey(["backup", "lost"]), 9).records != []  # it timed out, said
    assert not world.folder("backup", "lost", 0).exists()


def test_it_is_not_archived(world: CopiedWorld) -> None:
    world.begin_copy("archived", 0)
    world.lose("archived", 0)
    assert world.fates("archived", "21:01") == {0: ("delete", "older than hours(7)")}
    assert world.run("archived", "21:01") == PassResult(0, 0, (), 1)
    assert not (world.settings.home / "data/backup/old").exists()


def test_what_a_run_has_in_hand_stays(world: CopiedWorld) -> None:
    """From the moment in which the run takes the instance to that in which it is recorded."""
    world.begin_copy("busy", 0)
    world.lose("busy", 0)
    with world.ledger.engine.connect() as run:
        name = instance_lock("busy from east", "backup", hour(0))
        assert try_lock(run, name)
        problem = (
            "busy 2013-01-01T00:00Z: cluster 'backup': cannot remove what was staged of /busy/2013-01-01-00: "
            "it is being copied by a run; it goes when that has ended"
        )
        assert world.run("busy", "21:01") == PassResult(0, 0, (problem,))
        assert world.staged("busy") == {0}
        unlock(run, name)
    assert world.run("busy", "21:01") == PassResult(0, 0, (), 1)
    assert world.staged("busy") == set()


def test_what_is_there_speaks_for_itself(world: CopiedWorld) -> None:
    world.begin_copy("come", 0)
    world.lose("come", 0)
    files = ClusterStore(world.store.cluster("backup"), world.settings.home, {})
    path = InstancePaths(world.store.feed("come"), files.cluster).data(hour(0))
    with kind_of(files).publish("by hand", {"out": OutputTarget(path, "_SUCCESS")}) as publication:
        Path(publication.staging("out")).mkdir(parents=True)
        publication.commit("out")
    assert world.plan("come", "21:01").copies == ()
    assert world.run("come", "21:01") == PassResult(1, 0, ())  # and what was staged goes with it
    assert world.run("come", "21:01") == PassResult(0, 0, (), 1)  # but for the mark
    assert world.staged("come") == set()


def test_nothing_goes_of_a_feed_that_is_not_running(world: CopiedWorld) -> None:
    world.begin_copy("idle", 0)
    assert world.run("idle", "21:01") == PassResult(0, 0, ())
    assert world.staged("idle") == {0}
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.RUNNING, hour(14))
    world.lose("idle", 0)
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.SUSPENDED, hour(14))
    assert world.run("idle", "21:01") == PassResult(0, 0, ())
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.RUNNING, hour(14))
    assert world.run("idle", "21:01") == PassResult(0, 0, (), 1)


def test_nothing_goes_of_another_feed(world: CopiedWorld) -> None:
    world.begin_copy("other", 0)
    world.lose("other", 0)
    assert world.run("lost", "21:01").copies == 0
    assert world.staged("other") == {0}
    assert world.run("other", "21:01").copies == 1
