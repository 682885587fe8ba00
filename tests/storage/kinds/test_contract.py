"""What every kind of storage has to do, done with each of them."""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.landing.old_folders import FolderPass
from falcon_assets.planning.retention.eviction import StoredInstance, StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.staging import copies_folder
from tests.builders import make_cluster, make_feed
from tests.s3_server import ENVIRON, lake, s3_server

FLAG = "_SUCCESS"
FEED = make_feed(locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"}, frequency="days(1)", availability_flag=FLAG)
DAY, NEXT = (parse_instant(f"2013-01-0{day}T00:00Z") for day in (1, 2))
PATH = "/raw/2013/01/01"
TARGET = OutputTarget(PATH, FLAG, None)
LOCATION = StoredLocation("data", PATH, "/raw")
FILES = {"part-0": b"abc", "carrier=US/part-1": b"de"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(params=["renaming", "objects"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> StorageKind:
    if request.param == "renaming":
        return kind_of(ClusterStore(make_cluster(), tmp_path, {}))
    bucket = f"kinds-{uuid.uuid4()}"
    url = request.getfixturevalue("url")
    store = ClusterStore(make_cluster(**lake(url, name="primary", bucket=bucket)), Path("/"), ENVIRON)
    store.fs.mkdir(bucket)
    return kind_of(store)


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


def test_instances_are_found_available_and_versioned(kind: StorageKind) -> None:
    assert list(kind.instances(FEED, [(DAY, NEXT)])) == []
    assert not kind.is_available(FEED, PATH)
    with pytest.raises(StorageError, match="there is nothing at /raw/2013/01/01"):
        kind.version(PATH, FLAG)
    write(kind, kind.store.path(PATH), FILES)
    assert list(kind.instances(FEED, [(DAY, NEXT)])) == [(DAY, PATH)]
    assert list(kind.instances(FEED, [(NEXT, NEXT)])) == []
    assert not kind.is_available(FEED, PATH)
    before = kind.version(PATH, FLAG)
    assert (before.files, before.bytes) == (2, 5)
    write(kind, kind.store.path(PATH), {FLAG: b""})
    assert kind.is_available(FEED, PATH)
    assert kind.version(PATH, FLAG) == before
    write(kind, kind.store.path(PATH), {"part-0": b"abd"})
    assert kind.version(PATH, FLAG).version != before.version


def test_what_is_stored_and_what_it_lacks(kind: StorageKind) -> None:
    place = kind.store.shown(PATH)
    assert kind.stored(FEED) == []
    assert kind.why_unavailable(FEED, PATH) == (False, f"there is nothing at {place}")
    write(kind, kind.store.path(PATH), FILES)
    kind.require_there()
    assert kind.stored(FEED) == [StoredInstance(DAY, (LOCATION,))]
    assert kind.why_unavailable(FEED, PATH) == (True, f"there is no {FLAG} in {place}")
    write(kind, kind.store.path(PATH), {FLAG: b""})
    assert kind.why_unavailable(FEED, PATH)[0]


def test_a_listing_shows_what_was_written_anew(kind: StorageKind) -> None:
    with pytest.raises(StorageError, match="there is nothing at /raw/2013/01/01"):
        kind.listing(PATH, FLAG)
    publish(kind, FILES)
    before = kind.listing(PATH, FLAG)
    assert kind.listing(PATH, FLAG) == before
    publish(kind, {**FILES, "part-0": b"abd"})
    assert kind.listing(PATH, FLAG).signature != before.signature
    assert before.modified


def test_an_output_takes_the_place_of_the_one_before(kind: StorageKind) -> None:
    first = publish(kind, FILES)
    assert found(kind) == {**FILES, FLAG: b""}
    assert kind.version(PATH, FLAG).version == first
    assert publish(kind, {"part-2": b"f"}) != first
    assert found(kind) == {"part-2": b"f", FLAG: b""}
    assert kind.is_available(FEED, PATH)


def test_what_is_staged_can_be_named_for_spark(kind: StorageKind) -> None:
    with kind.publish("daily", {"out": TARGET}) as publication:
        url = publication.staging_url("out")
        assert re.fullmatch(r"(file|s3a)://(.*)", url)[2] == publication.staging("out")
        assert not kind.store.fs.exists(publication.staging("out"))


def test_what_is_read_has_its_version_and_all_its_files(kind: StorageKind) -> None:
    with pytest.raises(StorageError, match="there is nothing at /raw/2013/01/01"), kind.reading(PATH, FLAG):
        pass
    publish(kind, FILES)
    with kind.reading(PATH, FLAG) as read:
        assert read.version == kind.version(PATH, FLAG)
        (folder,) = read.folders
        assert re.fullmatch(r"(file|s3a)://(.*)", folder.url)[2] == kind.store.path(PATH)
        assert folder.files.sizes == {name: len(content) for name, content in FILES.items()}


def test_what_is_not_committed_never_was(kind: StorageKind) -> None:
    version = publish(kind, FILES)
    with pytest.raises(InterruptedError), kind.publish("daily", {"out": TARGET}) as publication:
        write(kind, publication.staging("out"), {"part-9": b"x"})
        raise InterruptedError
    assert not kind.store.fs.exists(publication.staging("out"))
    assert found(kind) == {**FILES, FLAG: b""}
    assert kind.version(PATH, FLAG).version == version


def test_nothing_written_is_no_output(kind: StorageKind) -> None:
    publish(kind, FILES)
    with (
        pytest.raises(StorageError, match="cannot publish /raw/2013/01/01: nothing was written to "),
        kind.publish("daily", {"out": TARGET}) as publication,
    ):
        publication.commit("out")
    assert found(kind) == {**FILES, FLAG: b""}


def test_of_two_runs_that_write_the_same_only_one_publishes(kind: StorageKind) -> None:
    with (
        pytest.raises(StorageError, match=r"/raw/2013/01/01.* is being written by another run"),
        kind.publish("first", {"out": TARGET}) as first,
    ):
        write(kind, first.staging("out"), FILES)
        publish(kind, {"part-2": b"f"})
        first.commit("out")
    assert found(kind) in ({"part-2": b"f", FLAG: b""}, {})


PROGRAM = """
import os, signal, sys, pickle
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.cluster_store import ClusterStore
cluster, home, environ, target, files = pickle.loads(sys.stdin.buffer.read())
kind = kind_of(ClusterStore(cluster, home, environ))
with kind.publish("daily", {"out": target}) as publication:
    for name, content in files.items():
        path = publication.staging("out") + "/" + name
        kind.store.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        kind.store.fs.pipe_file(path, content)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("old", [{}, FILES], ids=["first", "again"])
def test_what_a_killed_run_left_is_put_right(kind: StorageKind, tmp_path: Path, old: dict[str, bytes]) -> None:
    if old:
        publish(kind, old)
    given = pickle.dumps((kind.store.cluster, tmp_path, ENVIRON, TARGET, {"part-9": b"x"}))
    killed = subprocess.run([sys.executable, "-c", PROGRAM], input=given, check=False)
    assert killed.returncode == -signal.SIGKILL
    kind.copy_target(TARGET, "elsewhere").recover("daily")
    assert found(kind) == ({**old, FLAG: b""} if old else {})
    publish(kind, {"part-2": b"f"})
    assert found(kind) == {"part-2": b"f", FLAG: b""}
    staged = found(kind, kind.store.staging[len(kind.store.path("")) :])
    assert [name for name in staged if not name.startswith("replaced/")] == []


def test_a_location_goes_and_its_space_is_freed(kind: StorageKind) -> None:
    publish(kind, FILES)
    other = OutputTarget("/raw/2013/01/02", FLAG)
    publish(kind, FILES, other)
    staged = copies_folder(kind.store, PATH)
    write(kind, f"{staged}/backup", {"published.jsonl": b""})
    assert kind.is_untouched(LOCATION, FLAG)
    removal = kind.removal(FLAG)
    with removal.held(LOCATION) as place:
        assert removal.measure(place) == (2, 5)
        removal.remove(LOCATION, place)
        assert removal.measure(place) == (0, 0)
        removal.remove(LOCATION, place)  # as after a crash
    assert not kind.is_untouched(LOCATION, FLAG)
    assert list(kind.instances(FEED, [(DAY, NEXT)])) == [(NEXT, other.path)]
    assert not kind.store.fs.exists(staged)
    with removal.held(other_location := StoredLocation("data", other.path, "/raw")) as place:
        removal.remove(other_location, place)
    assert not kind.store.fs.exists(kind.store.path("/raw/2013"))
    kind.purge(patience=0)
    assert kind.is_purged()
    assert found(kind, f"{kind.store.staging[len(kind.store.path('')) :]}/evicted") == {}


def test_nothing_is_set_aside_where_nothing_is(kind: StorageKind) -> None:
    kind.removal(FLAG).set_aside(kind.store.path(PATH))
    kind.purge()
    assert kind.is_purged()


@pytest.mark.parametrize("path", ["/raw", "/other/2013/01/01", "/raw/../data"])
def test_what_is_not_below_the_prefix_stays(kind: StorageKind, path: str) -> None:
    with (
        pytest.raises(StorageError, match="it is not below /raw"),
        kind.removal(FLAG).held(StoredLocation("data", path, "/raw")),
    ):
        pass


def test_locks_keep_others_away(kind: StorageKind) -> None:
    removal = kind.removal(FLAG)
    with kind.publish("daily", {"out": TARGET}):
        if Ability.LOCK in kind.cannot:
            with removal.held(LOCATION):
                pass
        else:
            with pytest.raises(StorageError, match="it is being written by a run"), removal.held(LOCATION):
                pass


def test_modes_are_kept(kind: StorageKind) -> None:
    with kind.publish("daily", {"out": OutputTarget(PATH, FLAG, "0750")}) as publication:
        write(kind, publication.staging("out"), FILES)
        publication.commit("out")
    mode = kind.store.fs.info(f"{kind.store.path(PATH)}/part-0").get("mode")
    assert (mode is None) == (Ability.MODES in kind.cannot)
    assert mode is None or mode & 0o777 == 0o640


def test_a_pass_over_all_places_finds_what_is_there(kind: StorageKind) -> None:
    begun = FolderPass(PATH).next(DAY, tells_changes=kind.tells_changes)
    assert begun is not None
    assert [visit.found for visit in kind.visits(FEED, NEXT, begun) if visit.found] == []
    write(kind, kind.store.path(PATH), FILES)
    visits = list(kind.visits(FEED, NEXT, begun))
    assert [visit.found for visit in visits if visit.found] == [((DAY, PATH),)]
    assert [visit.problem for visit in visits if visit.problem] == []


def test_what_is_moved_is_whole_and_moved_once(kind: StorageKind) -> None:
    publish(kind, FILES)
    assert kind.move(PATH, kind, "/old/1") == (Ability.RENAME not in kind.cannot)
    here, there = found(kind), found(kind, "/old/1")
    assert sorted([here, there], key=len) == [{}, {**FILES, FLAG: b""}]
    publish(kind, FILES)
    write(kind, kind.store.path("/old/2"), FILES)
    assert not kind.move(PATH, kind, "/old/2")
    assert found(kind) == {**FILES, FLAG: b""}


def test_what_is_replaced_is_kept_and_restored(kind: StorageKind) -> None:
    target = OutputTarget(PATH, FLAG, keeps=KeptAs(FEED.name, DAY))
    if Ability.RENAME in kind.cannot:
        with pytest.raises(StorageError, match=f"{PATH} is copied to an object store, where copies keep no versions"):
            kind.copy_target(target, "east")
    first, second = publish(kind, FILES, target), publish(kind, {"part-2": b"f"}, target)
    assert [one[:2] for one in kind.kept_versions(FEED.name, DAY)] == [(DAY, first)]
    done, is_new = kind.restore("daily", target, first)
    assert (done.version, is_new) == (first, True)
    assert kind.version(PATH, FLAG).version == first
    assert [one.version for one in kind.kept_versions(FEED.name)] == [second]
    assert [one.nominal for one in kind.stored(FEED)] == [DAY]


def test_every_operation_is_in_this_contract() -> None:
    done = Path(__file__).read_text()
    assert [name for name in sorted(StorageKind.__abstractmethods__) if f"kind.{name}" not in done] == []
