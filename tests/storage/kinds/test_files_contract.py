"""What both kinds of storage have to do whose instances are files at paths; the rest is in ``test_contract.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.staging import copies_folder
from tests.storage.kinds.samples import FILES, FIRST, FLAG, Sample, killed_while_publishing, sample

PATH, NEXT = "/raw/2013/01/01", "/raw/2013/01/02"
TARGET = OutputTarget(PATH, FLAG)
CONTENT = {"part-0": b"abc", "carrier=US/part-1": b"de"}


@pytest.fixture(params=FILES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)


@pytest.fixture
def kind(stored: Sample) -> StorageKind:
    return stored.kind


def write(kind: StorageKind, place: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        kind.store.fs.makedirs(f"{place}/{name}".rpartition("/")[0], exist_ok=True)
        kind.store.fs.pipe_file(f"{place}/{name}", content)


def publish(kind: StorageKind, files: dict[str, bytes], target: OutputTarget = TARGET) -> str:
    with kind.publish("daily", {"out": target}) as publication:
        write(kind, publication.staging("out"), files)
        return publication.commit("out").version


def found(kind: StorageKind, path: str = PATH) -> dict[str, bytes]:
    base = kind.store.path(path)
    kind.store.files.refresh()
    return {str(name)[len(base) + 1 :]: kind.store.fs.cat_file(name) for name in kind.store.fs.find(base)}


def test_an_instance_is_complete_once_its_flag_is_there(stored: Sample, kind: StorageKind) -> None:
    write(kind, kind.store.path(PATH), CONTENT)
    assert list(kind.instances(stored.feed, [(FIRST, FIRST)])) == [(FIRST, PATH)]
    assert not kind.is_available(stored.feed, PATH)
    assert kind.why_unavailable(stored.feed, PATH) == (True, f"there is no {FLAG} in {kind.store.shown(PATH)}")
    before = kind.version(PATH, FLAG)
    assert (before.files, before.bytes) == (2, 5)
    write(kind, kind.store.path(PATH), {FLAG: b""})
    assert kind.is_available(stored.feed, PATH)
    assert kind.version(PATH, FLAG) == before
    assert kind.listing(PATH, FLAG).modified


def test_an_output_is_exactly_what_was_written_and_the_flag(kind: StorageKind) -> None:
    publish(kind, CONTENT)
    assert found(kind) == {**CONTENT, FLAG: b""}
    publish(kind, {"part-2": b"f"})
    assert found(kind) == {"part-2": b"f", FLAG: b""}


def test_what_is_read_names_all_its_files(kind: StorageKind) -> None:
    publish(kind, CONTENT)
    with kind.reading(PATH, FLAG) as read:
        (folder,) = read.folders
        assert folder.files.sizes == {name: len(content) for name, content in CONTENT.items()}


def test_nothing_is_left_of_a_run_that_was_killed_before_there_was_anything(stored: Sample, kind: StorageKind) -> None:
    killed_while_publishing(stored)
    kind.copy_target(TARGET, "elsewhere").recover("daily")
    assert found(kind) == {}
    publish(kind, {"part-2": b"f"})
    staged = found(kind, kind.store.staging[len(kind.store.path("")) :])
    assert [name for name in staged if not name.startswith("replaced/")] == []


def test_with_a_location_go_its_copies_and_the_folders_that_it_leaves_empty(stored: Sample, kind: StorageKind) -> None:
    publish(kind, CONTENT)
    publish(kind, CONTENT, OutputTarget(NEXT, FLAG))
    staged = copies_folder(kind.store, PATH)
    write(kind, f"{staged}/backup", {"published.jsonl": b""})
    removal = kind.removal(FLAG)
    for day in (1, 2):
        with removal.held(stored.location(day)) as place:
            assert removal.measure(place) == (2, 5)
            removal.remove(stored.location(day), place)
    assert not stored.is_there(staged)
    assert not stored.is_there(kind.store.path("/raw/2013"))
    kind.purge(patience=0)
    assert found(kind, f"{kind.store.staging[len(kind.store.path('')) :]}/evicted") == {}


def test_modes_are_kept(kind: StorageKind) -> None:
    with kind.publish("daily", {"out": OutputTarget(PATH, FLAG, "0750")}) as publication:
        write(kind, publication.staging("out"), CONTENT)
        publication.commit("out")
    mode = kind.store.fs.info(f"{kind.store.path(PATH)}/part-0").get("mode")
    assert (mode is None) == (Ability.MODES in kind.cannot)
    assert mode is None or mode & 0o777 == 0o640


def test_nothing_is_moved_over_what_is_there(kind: StorageKind) -> None:
    publish(kind, CONTENT)
    write(kind, kind.store.path("/old/2"), CONTENT)
    assert not kind.move(PATH, kind, "/old/2")
    assert found(kind) == {**CONTENT, FLAG: b""}


def test_copies_on_object_stores_keep_no_versions(stored: Sample, kind: StorageKind) -> None:
    target = OutputTarget(PATH, FLAG, keeps=KeptAs(stored.feed.name, FIRST))
    if Ability.RENAME in kind.cannot:
        with pytest.raises(StorageError, match=f"{PATH} is copied to an object store, where copies keep no versions"):
            kind.copy_target(target, "east")
    else:
        kind.copy_target(target, "east")
