"""Replication from and to clusters with several volumes, and what is done with the copies, with real files and runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from falcon_assets.instances.coordination.coordinator import PlannedRun
from falcon_assets.instances.runs.run_locks import RunLocks
from falcon_assets.planning.eviction import Space
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.files.local_files import LocalFiles
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.world import world_of


def _spread(name: str) -> str:
    write = {"endpoints": [f"data/{name}", f"data/{name} ü"]}
    return cluster_yaml(name, interfaces={"write": write, "execute": {"endpoint": "local[2]"}})


ENTITIES = "".join(
    [
        *map(_spread, ("east", "backup")),
        *map(cluster_yaml, ("west", "plain")),
        feed("gathered", on("east", "source"), on("plain", "target")),
        feed("shared", on("west", "source"), on("backup", "target"), more="versions: {keep: 2}\n"),
        feed("moved", on("east", "source"), on("backup", "target")),
        feed(
            "parts",
            on("east", "source", more=', partition: "${cluster.name}"'),
            on("west", "source", more=', partition: "${cluster.name}"'),
            on("backup", "target"),
            more="partitions: [site]\n",
        ),
    ]
)


@dataclass(frozen=True)
class Volumes(ReplicationWorld):
    """Each cluster of two volumes has a first one and a second one, a folder each."""

    def folder(self, cluster: str, feed: str, number: int) -> Path:
        """Where an instance lies; on the first volume, if it lies nowhere."""
        first = super().folder(cluster, feed, number)
        there = [one for one in (first, self.second(cluster) / first.relative_to(self.first(cluster))) if one.exists()]
        assert len(there) < 2
        return there[0] if there else first

    def first(self, cluster: str) -> Path:
        return self.settings.home / f"data/{cluster}"

    def second(self, cluster: str) -> Path:
        return self.settings.home / f"data/{cluster} ü"

    def land_on(self, volume: Path, feed: str, number: int, **files: int) -> None:
        (volume / f"{feed}/2013-01-01-{number:02}").mkdir(parents=True, exist_ok=True)
        self.land(volume.name.partition(" ")[0], feed, number, **files)

    def lies_on(self, volume: Path, feed: str, *numbers: int) -> list[bool]:
        return [(volume / f"{feed}/2013-01-01-{number:02}/_SUCCESS").exists() for number in numbers]


world = world_of({"all.yaml": ENTITIES}, Volumes)


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch, world: Volumes) -> Callable[[str], None]:
    """Says the end of the names of the volumes that have more room than others."""
    chosen = [""]
    for made in (world.first("backup"), world.second("backup")):
        made.mkdir(parents=True, exist_ok=True)

    def space(files: LocalFiles, root: str) -> Space:
        return Space(0, 2 if Path(root).name == chosen[0] else 1)

    monkeypatch.setattr(LocalFiles, "space", space)
    return lambda name: chosen.__setitem__(0, name)


@pytest.fixture
def away() -> Iterator[Callable[[Path], Callable[[], object]]]:
    """Takes a volume away, as an unmounted disk, and returns how it comes back."""
    gone = dict[Path, Path]()

    def back(volume: Path) -> None:
        if elsewhere := gone.pop(volume, None):
            volume.rmdir()
            elsewhere.rename(volume)

    def take(volume: Path) -> Callable[[], object]:
        gone[volume] = volume.with_name(f"{volume.name} is away")
        volume.rename(gone[volume])
        volume.mkdir()
        return lambda: back(volume)

    yield take
    for volume in list(gone):
        back(volume)


def _runs(feed: str, source: str, target: str, *attempts: tuple[int, int]) -> list[str]:
    return [f"{feed} from {source} on {target}, 2013-01-01T{hour:02}:00Z, attempt {n}" for hour, n in attempts]


def test_only_instances_of_a_source_volume_that_is_away_wait(
    world: Volumes, away: Callable[[Path], Callable[[], object]]
) -> None:
    world.land_on(world.first("east"), "gathered", 0, a=1)
    world.land_on(world.second("east"), "gathered", 1, a=2)
    world.collect("01:00")
    back = away(world.second("east"))
    world.land_on(world.first("east"), "gathered", 2, a=3)
    world.step("02:00", "gathered")
    assert [world.files("plain", "gathered", one) for one in range(3)] == [{"a.json": 1}, None, {"a.json": 3}]
    assert "found a store away" in world.waiting("02:00", "gathered")["gathered from east", "plain"][1]
    back()
    world.step("03:00", "gathered")
    assert world.files("plain", "gathered", 1) == {"a.json": 2}


def test_copies_go_to_the_roomiest_volume_and_stay_on_theirs(
    world: Volumes, roomy: Callable[[str], None], away: Callable[[Path], Callable[[], object]]
) -> None:
    first, second = world.first("backup"), world.second("backup")
    roomy(second.name)
    world.land("west", "shared", 0, a=1, b=1)
    world.step("00:10", "shared")
    roomy(first.name)
    world.land("west", "shared", 1, a=2)
    world.step("01:10", "shared")
    assert (world.lies_on(second, "shared", 0, 1), world.lies_on(first, "shared", 0, 1)) == (
        [True, False],
        [False, True],
    )
    world.land("west", "shared", 0, b=10)  # late
    world.step("04:00", "shared")
    assert world.files("backup", "shared", 0) == {"a.json": 1, "b.json": 10}
    assert (world.lies_on(second, "shared", 0), world.lies_on(first, "shared", 0)) == ([True], [False])
    assert [one.files_copied for one in world.copied("backup", "shared", 0)] == [2, 1]
    assert len(world.published("backup", "shared", 0)[-1].kept_versions or ()) == 1
    back = away(second)
    world.land("west", "shared", 0, b=100)
    world.land("west", "shared", 2, a=3)
    world.step("05:59", "shared")
    assert world.lies_on(first, "shared", 0, 2) == [False, True]
    back()
    world.step("06:10", "shared")
    assert (world.files("backup", "shared", 0), world.files("backup", "shared", 2)) == (
        {"a.json": 1, "b.json": 100},
        {"a.json": 3},
    )


def test_from_volumes_to_volumes(world: Volumes, roomy: Callable[[str], None]) -> None:
    world.land_on(world.first("east"), "moved", 0, a=1, deep__b=2)
    world.land_on(world.second("east"), "moved", 1, a=3)
    roomy(world.second("backup").name)
    world.step("01:00", "moved")
    assert world.lies_on(world.second("backup"), "moved", 0, 1) == [True, True]
    assert (world.files("backup", "moved", 0), world.files("backup", "moved", 1)) == (
        {"a.json": 1, "deep/b.json": 2},
        {"a.json": 3},
    )
    (there,), (source,) = world.published("backup", "moved", 0), world.published("east", "moved", 0)
    assert (there.version, there.path) == (source.version, str(world.folder("backup", "moved", 0)))


def test_parts_of_two_sources_meet_on_one_volume(
    world: Volumes, roomy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the other volume has more room when the second source begins, and the first has written nothing."""
    world.land_on(world.first("east"), "parts", 0, east__a=1)
    world.land("west", "parts", 0, west__a=2)
    roomy(world.first("backup").name)
    enter, release, done = InstanceCopy.__enter__, RunLocks.wait_for, list[bool]()
    waits = threading.Event()
    first, second = _both(world)

    def other() -> None:
        done.append(world.execute(second, "00:10").success)
        waits.set()

    thread = threading.Thread(target=other)

    def entered(copy: InstanceCopy) -> InstanceCopy:
        if not thread.ident:
            roomy(world.second("backup").name)
            thread.start()
            assert waits.wait(120)
        return enter(copy)

    def wait_for(locks: RunLocks, name: str) -> None:
        if threading.current_thread() is not threading.main_thread() and name.startswith("falcon copy"):
            waits.set()
        release(locks, name)

    monkeypatch.setattr(InstanceCopy, "__enter__", entered)
    monkeypatch.setattr(RunLocks, "wait_for", wait_for)
    assert world.execute(first, "00:10").success
    thread.join()
    assert done == [True]
    assert world.files("backup", "parts", 0) == {"east/a.json": 1, "west/a.json": 2}
    left = [folder for folder, _, files in os.walk(world.second("backup")) if "parts" in folder and files]
    assert left == []


def _both(world: Volumes) -> tuple[PlannedRun, PlannedRun]:
    world.collect("00:10")
    first, second = world.outlook("00:10", world.chosen("parts")).runs
    return first, second
