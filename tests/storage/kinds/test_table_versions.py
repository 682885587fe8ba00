"""Versions of partitions that were replaced: which are kept, what restores them, and when their files go."""

from __future__ import annotations

import os
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.planning.eviction import StoredVersion, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.eviction.evicting import evict_versions
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders
from falcon_assets.storage.output_target import KeptAs
from tests.processes import killed_before
from tests.registries import CATALOGS, KINDS
from tests.storage.kinds.samples import InTable, sample

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "socket.connect"}
"""Audit events of what touches the table's folder or calls the catalog."""


@pytest.fixture(params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> InTable:
    return in_table(request, request.param, tmp_path)


def in_table(request: pytest.FixtureRequest, kind: str, home: Path) -> InTable:
    made = sample(request, kind, home)
    assert isinstance(made, InTable)
    return made


def kept(stored: InTable) -> set[str]:
    return {one.version for one in stored.kind.kept_versions(stored.feed.name)}


def restore(stored: InTable, version: str) -> str:
    return stored.kind.restore("numbers", stored.target(keeps=True), version)[0].version


def evict(stored: InTable, *found: StoredVersion) -> None:
    verdicts = [VersionVerdict(one, None, True, "") for one in found]
    outcomes = list(evict_versions(stored.store, InstancePaths(stored.feed, stored.cluster), verdicts))
    assert [error for _, error in outcomes] == [None] * len(found)


def files(stored: InTable) -> int:
    return len(list(folder(stored).rglob("*.parquet")))


def folder(stored: InTable) -> Path:
    uri = stored.tables.table
    assert uri is not None
    return stored.home / uri.table


def later(stored: InTable) -> None:
    """A day goes by, and a pass over the table."""
    for note in (folder(stored) / "_versions/_notes").iterdir():
        before = note.stat().st_mtime - GRACE_SECONDS - 1
        os.utime(note, (before, before))
    stored.kind.purge(0)


def test_a_version_stays_until_it_is_evicted_and_its_files_a_day_longer(stored: InTable) -> None:
    versions = [stored.publish(number, keeps=True) for number in (1, 2, 3)]
    later(stored)
    assert (kept(stored), files(stored)) == (set(versions[:2]), 3)
    one = next(one for one in stored.kind.kept_versions("numbers") if one.version == versions[0])
    assert Path(one.path).exists()
    evict(stored, one)
    assert (kept(stored), files(stored)) == ({versions[1]}, 3)  # somebody may be reading it
    evict(stored, one)  # as after a kill
    later(stored)
    assert (kept(stored), files(stored), stored.numbers()) == ({versions[1]}, 2, [3])
    assert not Path(one.path).exists()


def test_what_was_restored_is_no_version_and_stays(stored: InTable) -> None:
    first, second = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    (was_kept,) = stored.kind.kept_versions("numbers")
    assert restore(stored, first) == first
    evict(stored, was_kept)  # decided before it was restored
    later(stored)
    assert (kept(stored), stored.numbers()) == ({second}, [1])
    third = stored.publish(3, keeps=True)
    assert (kept(stored), stored.version()) == ({first, second}, third)
    assert restore(stored, second) == second
    assert stored.numbers() == [2]


def test_a_partition_that_others_wrote_is_kept_and_restored_too(stored: InTable) -> None:
    stored.land(1, 2)
    first = stored.version()
    stored.publish(3, keeps=True)
    assert kept(stored) == {first}
    assert restore(stored, first) == first
    assert stored.numbers() == [1, 2]


def test_versions_of_an_instance_that_went_can_be_restored_until_they_follow_it(stored: InTable) -> None:
    first, _ = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    stored.kind.removal(None).remove(stored.location(), stored.path())
    assert (stored.numbers(), kept(stored)) == (None, {first})
    assert restore(stored, first) == first
    assert stored.numbers() == [1]


def test_files_that_somebody_removed_are_told_and_the_partition_stays(stored: InTable) -> None:
    """As Spark's ``expire_snapshots`` does of those that no snapshot names."""
    first, second = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    note = KeptPartitions(VersionFolders.of(stored.store, _layout(stored))).get(KeptAs("numbers", stored.day(1)), first)
    assert note is not None
    places = note.partitions[0].places
    for place in places:
        path = Path("/" + place.removeprefix("file:").lstrip("/"))
        path.rename(f"{path}.gone")
    assert kept(stored) == set()
    with pytest.raises(StorageError) as caught:
        restore(stored, first)
    assert str(caught.value) == (
        f"numbers: version {first} cannot be restored: {places[0]} is not there any more: somebody removed it, by "
        "expiring snapshots of the table or otherwise"
    )
    assert (stored.version(), stored.numbers()) == (second, [2])


def test_of_two_that_change_it_the_slower_one_is_refused(stored: InTable, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    keep = KeptPartitions.keep

    def while_others_write(own: KeptPartitions, *told: object) -> None:
        keep(own, *told)  # type: ignore[arg-type]
        stored.land(3)

    monkeypatch.setattr(KeptPartitions, "keep", while_others_write)
    with pytest.raises(StorageError, match="was changed by somebody else meanwhile"):
        restore(stored, first)
    assert stored.numbers() == [3]
    assert first in kept(stored)


def test_a_folder_that_is_out_of_reach_is_not_taken_for_an_empty_one(stored: InTable) -> None:
    stored.publish(1, keeps=True)
    stored.publish(2, keeps=True)
    folder(stored).rename(stored.home / "unmounted")
    if stored.tables.catalog.keeps_history:
        with pytest.raises(StorageError):
            stored.kind.kept_versions("numbers")
    else:
        with pytest.raises(UnreachableError, match=r"^the folder of the table is not there: "):
            stored.kind.kept_versions("numbers")


def test_what_would_be_done_changes_nothing(stored: InTable) -> None:
    first, second = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    done, is_new = stored.kind.restore("numbers", stored.target(keeps=True), first, dry_run=True)
    assert (done.version, is_new) == (first, True)
    assert (stored.version(), kept(stored)) == (second, {first})


@pytest.mark.soak
@pytest.mark.parametrize("kind", CATALOGS)
def test_a_restore_killed_at_every_step(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """What was ever read is the partition or kept, and the same again completes it."""
    stored = in_table(request, kind, tmp_path)
    one, two = stored.publish(1, keeps=True), stored.publish(2, keeps=True)
    outcomes = set()
    for step in count(1):
        assert restore(stored, two) == two
        lived = not killed_before(step, STEPS, partial(restore, stored, one))
        now = stored.version()
        outcomes.add(now)
        assert stored.numbers() == ([1] if now == one else [2])
        assert kept(stored) == {one, two} - {now}
        later(stored)
        assert restore(stored, one) == one
        assert (stored.numbers(), kept(stored)) == ([1], {two})
        if lived:
            break
    assert outcomes == {one, two}


@pytest.mark.soak
@pytest.mark.parametrize("kind", CATALOGS)
def test_a_publication_killed_at_every_step_loses_no_version(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    stored = in_table(request, kind, tmp_path)
    seen = {stored.publish(0, keeps=True)}
    for step in count(1):
        lived = not killed_before(step, STEPS, partial(stored.publish, step, keeps=True))
        seen.add(stored.version())
        later(stored)
        assert kept(stored) | {stored.version()} == seen
        if lived:
            break
    assert len(seen) > 2
    assert files(stored) == len(seen)


def _layout(stored: InTable):  # type: ignore[no-untyped-def]
    return stored.tables.catalog.layout(*stored._name)
