"""Collectors are told by the operating system of what lands; where it does not tell, they look from time to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path

import dagster as dg
import fsspec
import psutil
import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from falcon_assets.features.landing import arrivals as landing
from falcon_assets.features.landing.arrivals import Arrivals
from falcon_assets.storage.files import local_files
from falcon_assets.storage.files.local_files import LocalFiles
from tests.builders import cluster_yaml
from tests.orchestration.old_world import FEED, OldWorld
from tests.world import MakeWorld

LONG = 60.0
FEEDS = ["first", "second"]
NUMBERS = count()


@pytest.fixture
def world(make_world: MakeWorld, patched: None) -> OldWorld:
    """Each test has a cluster of its own: the database and the folder are one."""
    name = f"told{next(NUMBERS)}"
    text = cluster_yaml(name) + "".join(FEED.format(name=feed, cluster=name) for feed in FEEDS)
    made = make_world({"all.yaml": text}, OldWorld)
    (made.settings.home / "data" / name).mkdir(parents=True)
    return made


def cluster_of(world: OldWorld) -> str:
    (name,) = world.store.clusters
    return name


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests lie on any file system, and looks at everything are an hour apart."""
    monkeypatch.setattr(LocalFiles, "is_own", lambda files, folder: True)
    monkeypatch.setattr(landing, "_POLL_WATCHED_SECONDS", 3600.0)


def looked(world: OldWorld, arrivals: Arrivals, *, everything: bool = False) -> Collection[str] | None:
    with arrivals.look(world.ledger.engine, everything=everything) as only:
        arrivals.collector.collect(world.ledger, LONG, only=only)
    return only


def waited(world: OldWorld, arrivals: Arrivals, happens: Callable[[], object]) -> None:
    """Something happens while it waits, which ends soon after."""
    waiting = threading.Thread(target=arrivals.wait, args=(world.ledger.engine, LONG))
    began = time.monotonic()
    waiting.start()
    happens()
    waiting.join()
    assert time.monotonic() - began < LONG / 2


def test_what_lands_is_looked_at_at_once(world: OldWorld) -> None:
    arrivals = Arrivals(world.collector(cluster_of(world)))
    assert looked(world, arrivals, everything=True) is None
    seen: list[Collection[str] | None] = []
    waited(world, arrivals, lambda: world.land(cluster_of(world), "first", "2013-01-01T00"))
    seen.append(looked(world, arrivals))
    while not world.recorded(cluster_of(world), "first"):  # its folders are made one after the other
        arrivals.wait(world.ledger.engine, LONG)
        seen.append(looked(world, arrivals))
    assert None not in seen
    assert world.recorded(cluster_of(world), "first") == ["2013-01-01T00"]


def test_the_flag_of_an_older_instance_is_seen(world: OldWorld) -> None:
    arrivals = Arrivals(world.collector(cluster_of(world)))
    world.land(cluster_of(world), "second", "2012-12-31T20")
    looked(world, arrivals, everything=True)
    world.land(cluster_of(world), "second", "2012-12-31T12", complete=False)
    while "second" not in arrivals._begun:
        arrivals.wait(world.ledger.engine, LONG)
        looked(world, arrivals)
    waited(world, arrivals, lambda: world.land(cluster_of(world), "second", "2012-12-31T12"))
    while "2012-12-31T12" not in world.recorded(cluster_of(world), "second"):
        arrivals.wait(world.ledger.engine, LONG)
        assert looked(world, arrivals) is not None


def test_the_other_feeds_are_left_alone(world: OldWorld) -> None:
    for feed in FEEDS:
        world.land(cluster_of(world), feed, "2013-01-01T00")
    arrivals = Arrivals(world.collector(cluster_of(world)))
    looked(world, arrivals, everything=True)
    waited(world, arrivals, (world.folder(cluster_of(world), "second", "2013-01-01T00") / "more.csv").touch)
    assert looked(world, arrivals) == {"second"}
    assert looked(world, arrivals) == set()


def test_a_report_ends_the_waiting(world: OldWorld) -> None:
    arrivals = Arrivals(world.collector(cluster_of(world)))
    looked(world, arrivals, everything=True)

    def report() -> None:
        event = dg.AssetMaterialization([cluster_of(world), "first"], partition="2012-03-01T00:00Z")
        world.instance.report_runless_asset_event(event)
        world.ledger.catch_up()

    waited(world, arrivals, report)
    assert looked(world, arrivals) == set()
    assert world.waiting("first") == []  # it has its answer


@pytest.mark.parametrize("error", [OSError, WatchfilesRustInternalError, FileNotFoundError])
def test_where_nothing_can_be_watched_everything_is_looked_at_often(
    world: OldWorld, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(folders: Sequence[str], *args: object) -> None:
        raise error

    monkeypatch.setattr(landing, "RustNotify", refuse)
    arrivals = Arrivals(world.collector(cluster_of(world)))
    looked(world, arrivals, everything=True)
    arrivals._took = 0.0
    arrivals.wait(world.ledger.engine, LONG)
    assert looked(world, arrivals) is None


def test_what_another_machine_may_write_is_looked_at_often(world: OldWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalFiles, "is_own", lambda files, folder: False)
    arrivals = Arrivals(world.collector(cluster_of(world)))
    looked(world, arrivals, everything=True)
    arrivals._took = 0.0
    arrivals.wait(world.ledger.engine, LONG)
    assert looked(world, arrivals) is None


def test_a_disk_of_this_machine_is_its_own(tmp_path: Path) -> None:
    files = LocalFiles(fsspec.filesystem("file"))
    kinds = {one.mountpoint: one.fstype for one in psutil.disk_partitions(all=True)}
    ours = next(str(one) for one in (tmp_path, *tmp_path.parents) if str(one) in kinds)
    assert files.is_own(str(tmp_path)) == (kinds[ours] in local_files._OWN)
    assert not files.is_own("/proc/self")
