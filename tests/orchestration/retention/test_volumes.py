"""Instances of a cluster with several volumes: where they are published and found, and what a volume takes with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.errors import RootAwayError, StorageError, UnreachableError
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.retention.disks import RoomPass, disks_of
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.history.dagster_internals.events import Record
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.eviction import Space
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import output_target
from tests.builders import make_cluster
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.opening import OpenAt
from tests.processes import forked
from tests.versioned import TREE, kept, place, present, publish

FIRST, SECOND, THIRD = "vol one", "über/vol 2", "third"
WRITE = f'write: {{endpoints: ["{FIRST}", "{SECOND}", "{THIRD}"], max_usage: 50%}}'
ENTITIES = TREE["all.yaml"].replace("write: {endpoint: data/primary}", WRITE).replace(", for: hours(6)", "")
BEFORE, AFTER = ENTITIES.split("---\nkind: process")
LIMITED = f"{BEFORE}    retention: {{limit: hours(6)}}\n---\nkind: process{AFTER}"


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How much is free on each volume, which are folders of one disk here."""
    found = {FIRST: 1, SECOND: 3, THIRD: 2}

    def space(files: LocalFiles, root: str) -> Space:
        return Space(0, next(size for name, size in found.items() if root.endswith(name)))

    monkeypatch.setattr(LocalFiles, "space", space)
    return found


@pytest.fixture
def at(
    open_at: OpenAt,
    write_entities: Callable[[dict[str, str]], Path],
    instance: dg.DagsterInstance,
    free: dict[str, int],
) -> Iterator[Callable[[str], Installation]]:
    """The installation at a time; its volumes are empty folders at first."""
    write_entities({**TREE, "all.yaml": LIMITED})
    opened = []

    def opening(time: str) -> Installation:
        opened.append(manager := open_at(time))
        installation = manager.__enter__()
        if len(opened) == 1:
            instance.event_log_storage.wipe()
            empty(installation.ledger.engine)
            for name in free:
                shutil.rmtree(volume(installation, name), ignore_errors=True)
                volume(installation, name).mkdir(parents=True)
        return installation

    yield opening
    for manager in opened:
        manager.__exit__(None, None, None)


def volume(installation: Installation, name: str) -> Path:
    return installation.settings.home / name


def lies(installation: Installation, instance: datetime) -> list[str]:
    """The volumes with that instance."""
    below = f"totals/2013-01-01/{instance.hour:02}"
    return [name for name in (FIRST, SECOND, THIRD) if (volume(installation, name) / below).exists()]


def away(installation: Installation, name: str) -> Callable[[], object]:
    """As an unmounted disk: the mount point is empty; what is returned mounts it again."""
    there, elsewhere = volume(installation, name), installation.settings.home / "elsewhere"
    there.rename(elsewhere)
    there.mkdir()

    def back() -> None:
        there.rmdir()
        elsewhere.rename(there)

    return back


def states(installation: Installation) -> dict[int, str]:
    table = FEED_INSTANCES.c
    with installation.ledger.engine.connect() as connection:
        found = connection.execute(select(table.instance, table.state).where(table.feed == "totals"))
        return {instance.hour: state for instance, state in found}


def record(installation: Installation) -> Record:
    def recording(events: list[dg.AssetObservation]) -> None:
        for event in events:
            installation.ledger.instance.report_runless_asset_event(event)

    return recording


def passes(installation: Installation) -> PassResult:
    entities = installation.entities
    found = RetentionPass(entities, entities.cluster("primary"), [entities.feed("totals")], installation.settings, 0)
    passed = found.run(installation.ledger, "run", record(installation))
    installation.ledger.catch_up()
    return passed


def test_new_instances_go_to_the_roomiest_volume_and_old_ones_stay(
    at: Callable[[str], Installation], free: dict[str, int]
) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "first", hour(1))
    free[THIRD] = 5
    publish(now, "second", hour(2))
    again = publish(now, "first again", hour(1))
    assert (lies(now, hour(1)), lies(now, hour(2))) == ([SECOND], [THIRD])
    assert (present(now, hour(1)), present(now, hour(2))) == ("first again", "second")
    found = place(now)
    assert [one for one, _ in found.storage.instances(found.feed, [(hour(0), hour(9))])] == [hour(1), hour(2)]
    assert found.storage.version(place(now, hour(1)).path, "_SUCCESS").version == again
    (kept_one,) = kept(now, hour(1))
    done, is_new = found.storage.restore("x", output_target(found.feed, hour(1), place(now, hour(1)).path), kept_one)
    assert (done.version, is_new, present(now, hour(1)), lies(now, hour(1))) == (kept_one, True, "first", [SECOND])


def test_a_volume_that_is_away_takes_only_its_own_instances_away(
    at: Callable[[str], Installation], free: dict[str, int]
) -> None:
    now = at("2013-01-01T04:00Z")
    first = publish(now, "on the second", hour(1))
    publish(now, "a new one", hour(1))
    free[FIRST] = 9
    publish(now, "on the first", hour(2))
    back = away(now, SECOND)
    found = place(now, hour(1))
    with pytest.raises(RootAwayError, match="über/vol 2 is away"):
        found.storage.is_available(found.feed, found.path)
    with pytest.raises(RootAwayError):
        publish(now, "another", hour(1))
    assert present(now, hour(2)) == "on the first"
    assert not found.storage.is_available(found.feed, place(now, hour(3)).path)
    free[SECOND] = 99
    publish(now, "not on the second", hour(3))
    assert lies(now, hour(3)) == [FIRST]
    assert place(now).storage.kept_versions("totals") == []
    later = at("2013-01-01T10:00Z")
    passed = passes(later)
    assert passed.instances == 2
    assert [one.partition(": ")[0] for one in passed.problems] == ["cluster 'primary'"]
    assert states(later) == {1: "AVAILABLE", 2: "EVICTED", 3: "EVICTED"}
    back()
    assert present(later, hour(1)) == "a new one"
    assert kept(later, hour(1)) == {first}
    assert passes(later) == PassResult(1, len("a new one"), ())
    assert states(later)[1] == "EVICTED"
    assert lies(later, hour(1)) == []
    assert passes(later).versions == 1
    assert kept(later, hour(1)) == set()


def test_a_disk_that_fails_takes_only_its_own_instances_away(
    at: Callable[[str], Installation], free: dict[str, int]
) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "on the second", hour(1))
    free[FIRST] = 9
    publish(now, "on the first", hour(2))
    back = away(now, SECOND)
    folder = volume(now, SECOND)
    folder.rmdir()
    folder.symlink_to(folder)  # each look at it is an error, as with a disk that is broken
    found = place(now, hour(1))
    with pytest.raises(UnreachableError, match=r"cannot look for the root .*vol 2"):
        found.storage.is_available(found.feed, found.path)
    assert present(now, hour(2)) == "on the first"
    publish(now, "goes on", hour(3))
    assert lies(now, hour(3)) == [FIRST]
    folder.unlink()
    folder.mkdir()
    back()
    assert present(now, hour(1)) == "on the second"


def test_a_volume_that_was_moved_to_another_path_is_known_by_its_mark(
    at: Callable[[str], Installation], free: dict[str, int]
) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "on the second", hour(1))
    moved, elsewhere = volume(now, "moved"), volume(now, "moved away")
    volume(now, SECOND).rename(moved)
    (now.settings.entity_defs / "all.yaml").write_text(LIMITED.replace(SECOND, "moved"))
    now.forget_entities()
    free["moved"] = 3
    assert present(now, hour(1)) == "on the second"
    moved.rename(elsewhere)
    moved.mkdir()
    found = place(now, hour(1))
    with pytest.raises(RootAwayError, match="moved is away"):
        found.storage.is_available(found.feed, found.path)
    assert not found.storage.is_available(found.feed, place(now, hour(2)).path)
    shutil.rmtree(moved)
    shutil.rmtree(elsewhere)


def test_scratch_data_is_on_no_volume(at: Callable[[str], Installation], free: dict[str, int]) -> None:
    """Spark starts, too, where the first one is away."""
    now = at("2013-01-01T04:00Z")
    for name in free:
        (volume(now, name) / ".falcon/working").mkdir(parents=True)
    back = away(now, FIRST)
    home = str(now.settings.home)
    stores = place(now).storage.store, ClusterStore(now.entities.cluster("primary"), Path(home), {})
    assert {store.working for store in stores} == {f"{home}/working/primary"}
    back()


def test_what_lands_on_any_volume_is_collected(at: Callable[[str], Installation], free: dict[str, int]) -> None:
    now = at("2013-01-01T03:00Z")
    publish(now, "claims all", hour(0))
    for name, number in ((FIRST, 1), (THIRD, 2)):
        folder = volume(now, name) / f"raw/2013-01-01/{number:02}"
        folder.mkdir(parents=True)
        (folder / "part-0").write_text(name)
        (folder / "_SUCCESS").touch()
    back = away(now, SECOND)
    collected = Collector(now.entities, now.entities.cluster("primary"), now.settings).collect(now.ledger, 60)
    assert collected.problems == {}
    now.ledger.catch_up()
    table = FEED_INSTANCES.c
    with now.ledger.engine.connect() as connection:
        found = connection.execute(select(table.instance, table.state).where(table.feed == "raw")).all()
    assert {instance.hour: state for instance, state in found} == {1: "AVAILABLE", 2: "AVAILABLE"}
    back()


def test_what_comes_from_another_cluster_is_archived_on_the_roomiest_volume(
    at: Callable[[str], Installation], free: dict[str, int], tmp_path: Path
) -> None:
    now = at("2013-01-01T04:00Z")
    elsewhere, ours = kind_of(ClusterStore(make_cluster(), tmp_path, {})), place(now).storage
    assert ours.beside(elsewhere, "/archive/new").store.identity.path == str(volume(now, SECOND))
    (third,) = (one for one in ours.store.volumes if one.identity.path == str(volume(now, THIRD)))
    assert ours.beside(kind_of(third), "/archive/new").store is third  # one rename


def test_what_lies_on_two_volumes_is_said(at: Callable[[str], Installation], free: dict[str, int]) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "right", hour(1))
    wrong = volume(now, THIRD) / "totals/2013-01-01/01"
    wrong.mkdir(parents=True)
    found = place(now, hour(1))
    with pytest.raises(StorageError) as caught:
        found.storage.version(found.path, "_SUCCESS")
    home = now.settings.home
    assert str(caught.value) == (
        f"cluster 'primary': /totals/2013-01-01/01 lies at {home}/über/vol 2/totals/2013-01-01/01 and at "
        f"{home}/third/totals/2013-01-01/01: an instance is on one volume, so remove the one that is wrong"
    )
    wrong.rmdir()
    assert present(now, hour(1)) == "right"


@pytest.mark.parametrize("step", ["/ready", "/written"])
def test_a_killed_publication_is_completed_on_its_own_volume(
    at: Callable[[str], Installation], free: dict[str, int], step: str
) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "old", hour(1))
    original = LocalFiles.move

    def move(files: LocalFiles, path: str, place: str) -> None:
        if path.endswith(step):
            os._exit(7)
        original(files, path, place)

    def killed() -> None:
        LocalFiles.move = move  # type: ignore[method-assign]  # in a child only
        publish(now, "never", hour(1))

    assert os.waitstatus_to_exitcode(os.waitpid(forked(killed), 0)[1]) == 7
    assert lies(now, hour(1)) == ([] if step == "/ready" else [SECOND])
    free[FIRST] = 99
    publish(now, "new", hour(1))
    assert lies(now, hour(1)) == [SECOND]
    assert present(now, hour(1)) == "new"


def test_room_is_made_on_the_volume_that_is_too_full(
    at: Callable[[str], Installation], free: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = at("2013-01-01T04:00Z")
    publish(now, "old", hour(1))
    free[FIRST] = 9
    first = publish(now, "old", hour(2))
    publish(now, "new", hour(1))
    publish(now, "new", hour(2))
    full = {SECOND, THIRD}  # there is nothing on the third one that may go

    def space(files: LocalFiles, root: str) -> Space:
        return Space(90, 10) if any(root.endswith(name) for name in full) else Space(10, 90)

    monkeypatch.setattr(LocalFiles, "space", space)
    entities = now.entities
    disks = disks_of(entities, entities.cluster("primary"), now.settings)
    home = now.settings.home
    assert [disk.reason() for disk in disks if disk.excess()] == [
        f"the disk of {home}/{name} is 90% full, more than 50% (max_usage)" for name in (SECOND, THIRD)
    ]
    passed = [RoomPass(disk, 0).run(now.ledger, record(now)) for disk in disks]
    assert [one.versions for one in passed] == [0, 1, 0]
    assert (kept(now, hour(1)), kept(now, hour(2))) == (set(), {first})
    assert (present(now, hour(1)), present(now, hour(2))) == ("new", "new")


@contextmanager
def computed(installation: Installation, text: str) -> Iterator[InstancePublication]:
    """As a run whose output is checked before it is published."""
    found = place(installation, hour(1))
    target = replace(output_target(found.feed, hour(1), found.path), holds=True)
    with found.storage.publish("add-up", {"out": target}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir(parents=True)
        (folder / "part-0").write_text(text)
        yield publication


def hold(installation: Installation, text: str) -> HeldData:
    """What is held lies on the second volume."""
    with computed(installation, text) as publication:
        held = publication.hold("out")
    assert held.place.startswith(f"file://{volume(installation, SECOND)}/")
    return held


def test_what_is_kept_aside_is_published_where_it_lies(at: Callable[[str], Installation], free: dict[str, int]) -> None:
    now = at("2013-01-01T04:00Z")
    held = hold(now, "right after all")
    free[FIRST] = 99
    found = place(now, hour(1))
    outputs = {"out": output_target(found.feed, hour(1), found.path)}
    with found.storage.publish("add-up", outputs, None, {"out": held}) as publication:
        assert publication.commit("out") == held.version
    assert (lies(now, hour(1)), present(now, hour(1))) == ([SECOND], "right after all")


def test_another_attempt_takes_the_place_of_what_an_earlier_one_kept_aside(
    at: Callable[[str], Installation], free: dict[str, int]
) -> None:
    now = at("2013-01-01T04:00Z")
    held = Path(hold(now, "wrong").place.removeprefix("file://"))
    assert held.exists()
    free[FIRST] = 99
    with computed(now, "right") as publication:
        publication.commit("out")
    assert (lies(now, hour(1)), held.exists()) == ([SECOND], False)


@pytest.mark.parametrize("path", ["/../x", "/a/../../b"])
def test_no_path_leaves_a_volume(at: Callable[[str], Installation], path: str) -> None:
    with pytest.raises(StorageError, match="leaves the root"):
        place(at("2013-01-01T04:00Z")).storage.store.path(path)
