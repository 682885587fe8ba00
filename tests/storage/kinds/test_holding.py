"""Outputs that are kept aside, and published from there, on every kind of storage."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD
from falcon_assets.storage.staging import HELD_SECONDS
from tests.storage.kinds.samples import KINDS, InTable, InTableOnS3, Sample, place_of, sample

SLOW = ["hdfs", "hive on hdfs"]
NOBODY_KNOWS = "what was held is not at "


@pytest.fixture(params=[*KINDS, "volumes", *(pytest.param(one, marks=pytest.mark.soak) for one in SLOW)])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)


@contextmanager
def publication(
    stored: Sample, held: HeldData | None = None, *, keeps: bool = False, makes_table: bool = False
) -> Iterator[InstancePublication]:
    target = replace(stored.target(keeps=keeps), holds=held is None, makes_table=makes_table)
    with_held = NOTHING_HELD if held is None else {"out": held}
    with stored.kind.publish("daily", {"out": target}, None if held else stored.staging, with_held) as made:
        yield made


def hold(stored: Sample, *numbers: int) -> HeldData:
    with publication(stored) as made:
        stored.write(made.staging("out"), *numbers)
        return made.hold("out")


def publish_held(stored: Sample, held: HeldData, *, keeps: bool = False) -> str:
    with publication(stored, held, keeps=keeps) as made:
        return made.commit("out").version


def lies(stored: Sample, held: HeldData) -> int:
    """How many files lie where it says, as fsspec finds them."""
    fs, place = _fs(stored), place_of(held.place)
    fs.invalidate_cache()
    return len([one for one in fs.find(place) if not one.endswith("_SUCCESS")])


def _fs(stored: Sample) -> AbstractFileSystem:
    return stored.tables.without_tables.fs if isinstance(stored, InTable) else stored.store.fs


def test_what_is_held_is_no_instance_until_it_is_published(stored: Sample) -> None:
    stored.publish(1, 2)
    before = stored.version()
    held = hold(stored, 3)
    assert (stored.numbers(), stored.version(), lies(stored, held)) == ([1, 2], before, 1)
    version = publish_held(stored, held)
    assert (stored.numbers(), stored.version()) == ([3], version)
    stored.publish(4)
    with pytest.raises(StorageError, match=NOBODY_KNOWS):
        publish_held(stored, held)
    assert stored.numbers() == [4]


def test_the_first_instance_may_be_a_held_one(stored: Sample) -> None:
    held = hold(stored, 3)
    assert stored.numbers() is None
    publish_held(stored, held)
    assert stored.numbers() == [3]


def test_until_it_is_recorded_it_can_be_published_again(stored: Sample) -> None:
    held = hold(stored, 3)
    with pytest.raises(InterruptedError), publication(stored, held) as made:
        version = made.commit("out")
        raise InterruptedError
    assert stored.numbers() == [3]
    with publication(stored, held) as made:
        assert made.commit("out") == version
    assert stored.numbers() == [3]


def test_what_it_replaces_is_kept(stored: Sample) -> None:
    if Ability.VERSIONS in stored.kind.cannot:
        return
    stored.publish(1, keeps=True)
    before = stored.version()
    publish_held(stored, hold(stored, 3), keeps=True)
    assert stored.numbers() == [3]
    assert [one.version for one in stored.kind.kept_versions(stored.feed.name)] == [before]
    stored.kind.restore("daily", stored.target(keeps=True), before)
    assert stored.numbers() == [1]


def test_the_next_output_goes_in_its_place(stored: Sample) -> None:
    first = hold(stored, 3)
    with pytest.raises(InterruptedError), publication(stored):
        raise InterruptedError
    assert lies(stored, first) == 1, "an attempt that fails leaves it"
    second = hold(stored, 4, 6)
    with pytest.raises(StorageError, match=NOBODY_KNOWS if "_versions" in first.place else "somebody changed what is"):
        publish_held(stored, first)
    assert stored.numbers() is None
    with publication(stored) as made:
        stored.write(made.staging("out"), 5)
        made.commit("out")
    assert (stored.numbers(), lies(stored, first), lies(stored, second)) == ([5], 0, 0)


def test_what_somebody_changed_is_not_published(stored: Sample) -> None:
    stored.publish(1)
    held, fs = hold(stored, 3, 5), _fs(stored)
    (file, *_) = [one for one in fs.find(place_of(held.place)) if not one.endswith("_SUCCESS")]
    fs.pipe_file(file, fs.cat_file(file) + b"7")
    for _ in range(2):
        with pytest.raises(StorageError, match="somebody changed what is held at "):
            publish_held(stored, held)
        assert stored.numbers() == [1]


def test_nothing_is_not_held(stored: Sample) -> None:
    with pytest.raises(StorageError, match="nothing was written to "), publication(stored) as made:
        made.hold("out")


def test_it_is_kept_for_days(stored: Sample) -> None:
    held = hold(stored, 3)
    stored.kind.purge(0)
    assert lies(stored, held) == 1
    if isinstance(stored, InTableOnS3) or not (folder := Path(place_of(held.place))).is_dir():
        return  # nobody can change the times there
    notes = folder.parents[1] / "_notes"
    for one in (folder.parent, *(notes.glob("held-*") if notes.is_dir() else ())):
        long_ago = time.time() - HELD_SECONDS - 60
        os.utime(one, (long_ago, long_ago))
    stored.kind.purge(0)
    assert (lies(stored, held), list(notes.glob("*"))) == (0, [])


@pytest.mark.parametrize("kind", ["hive", "iceberg"])
def test_of_a_table_that_is_not_there_yet_nothing_stays(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    stored = sample(request, kind, tmp_path)
    assert stored.feed.table
    new = stored.feed.table.model_copy(update={"uri": stored.feed.table.uri.replace("numbers_", "new_")})
    stored = replace(stored, feed=stored.feed.model_copy(update={"table": new}))

    def hold_first(*numbers: int) -> HeldData:
        with publication(stored, makes_table=True) as made:
            stored.write(made.staging("out"), *numbers)
            return made.hold("out")

    folder = Path(place_of(hold_first(1).place)).parents[1]
    for number in (2, 3):
        held = hold_first(number)
        assert [one.name for one in folder.glob("*/*") if one.is_dir()] == [Path(held.place).name]
    (note,) = (folder / "_notes").iterdir()
    long_ago = time.time() - HELD_SECONDS - 60
    os.utime(note, (long_ago, long_ago))
    assert not stored.kind.is_purged()
    stored.kind.purge()
    assert [one for one in folder.rglob("*") if one.is_file()] == []
    assert stored.kind.is_purged()
    with publication(stored, hold_first(4), makes_table=True) as made:
        made.commit("out")
    assert stored.numbers() == [4]
    assert list((folder / "_notes").iterdir()) == []
