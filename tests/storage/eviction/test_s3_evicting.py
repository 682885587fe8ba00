"""Retention on a real S3 server: the flag goes first, and nothing but what was decided on goes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredInstance, Verdict, plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import Evicted, abandon_archive, evict, is_untouched
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.staging import copies_folder
from tests.builders import VALIDITY, make_cluster, make_feed
from tests.s3_server import ENVIRON, SECRET, lake

NOW = parse_instant("2013-01-10T00:00Z")
OLD, OLDER, YOUNG = (parse_instant(f"2013-01-0{day}T05:00Z") for day in (2, 1, 9))
LOCATIONS = {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", "stats": "/stats/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
DATA = {"part-0": b"abc", "carrier=US/part-1": b"de"}
ARCHIVE = {"limit": "days(3)", "action": "archive", "archive_to": "/old/${YEAR}/${MONTH}${DAY}${HOUR}"}
NEAR = [
    "raw/2013/01/02/05.bak/part-0",
    "raw/2013/01/02/050/part-0",
    "raw/2013/01/02/5/part-0",
    "raw/2013/01/02/0",
    "raw/2013/01/02",
    "raw/2013/01/02/README",
    "raw/2013/13/02/05/part-0",
    "raw/2012/01/02/05/part-0",
    "raws/2013/01/02/05/part-0",
    "stats/2013-01-02-05-00",
    "2013/01/02/05/part-0",
]
"""Keys that begin or look like those of the old instance."""


@pytest.fixture
def store(s3: str) -> ClusterStore:
    return lake_store(s3)


def lake_store(s3: str, name: str = "lake") -> ClusterStore:
    bucket = f"lake-{uuid.uuid4()}"
    found = ClusterStore(make_cluster(**lake(s3, name, bucket)), Path("/"), ENVIRON)
    found.fs.mkdir(bucket)
    return found


def local_store(home: Path) -> ClusterStore:
    interfaces = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local"}}
    return ClusterStore(make_cluster(name="backup", interfaces=interfaces), home, {})


def feed_on(store: ClusterStore, retention: dict[str, Any] | None = None, **overrides: Any) -> Feed:
    entry = {"name": store.cluster.name, "validity": VALIDITY, "retention": retention or {"limit": "days(3)"}}
    return make_feed(**{"locations": LOCATIONS, "clusters": [entry], **overrides})


def land(store: ClusterStore, feed: Feed, *instances: datetime) -> None:
    paths = InstancePaths(feed, store.cluster)
    for instance in instances:
        for name, content in {**DATA, "_SUCCESS": b""}.items():
            write(store, f"{paths.data(instance)}/{name}", content)
        for template in (template for kind, template in paths.templates() if kind == "stats"):
            write(store, paths.render(template, instance), b"123")


def land_data(store: ClusterStore, feed: Feed, files: dict[str, bytes]) -> None:
    for name, content in {**files, "_SUCCESS": b""}.items():
        write(store, f"{InstancePaths(feed, store.cluster).data(OLD)}/{name}", content)


def evict_one(store: ClusterStore, decided: list[Verdict], target: ClusterStore) -> StorageError | None:
    (gone,) = evict(store, decided, "_SUCCESS", target)
    return gone.error


def write(store: ClusterStore, path: str, content: bytes = b"") -> None:
    full = store.path(path)
    store.fs.makedirs(full.rpartition("/")[0], exist_ok=True)
    store.fs.pipe_file(full, content)


def keys(store: ClusterStore) -> set[str]:
    """All files below the root."""
    store.fs.invalidate_cache()
    root = store.path("")
    return {str(name)[len(root) :].lstrip("/") for name in store.fs.find(root)}


def verdicts_of(store: ClusterStore, feed: Feed) -> list[Verdict]:
    return plan_eviction(InstancePaths(feed, store.cluster), stored_instances(store, feed), NOW)


def evicted(store: ClusterStore, feed: Feed, target: ClusterStore | None = None) -> list[Evicted]:
    gone = list(evict(store, verdicts_of(store, feed), feed.availability_flag, target))
    kind_of(store).purge(patience=0)
    return gone


def old_instance(store: ClusterStore, feed: Feed) -> StoredInstance:
    (found,) = (one for one in stored_instances(store, feed) if one.nominal == OLD)
    return found


def keys_of(instance: str, names: Collection[str] = ("_SUCCESS", *DATA)) -> set[str]:
    return {f"raw/{instance}/{name}" for name in names} | {f"stats/{instance.replace('/', '-')}"}


def test_old_instances_go_and_near_keys_stay(store: ClusterStore) -> None:
    feed = feed_on(store)
    for name in NEAR:
        write(store, name, b"x")
    land(store, feed, OLDER, OLD, YOUNG)
    assert evicted(store, feed) == [Evicted(OLDER, 3, 8), Evicted(OLD, 3, 8)]
    assert keys(store) == {*NEAR, *keys_of("2013/01/09/05")}
    assert evicted(store, feed) == []


def no_write_after(store: ClusterStore, count: int) -> Callable[..., None]:
    """Lets no more than so many writing requests through, as if the process were killed before the next one."""
    left = iter(range(count))

    def before_send(request: Any, **_: Any) -> None:
        if request.method not in ("GET", "HEAD") and next(left, None) is None:
            raise ConnectionAbortedError

    store.fs.s3.meta.events.register("before-send.s3", before_send)
    return before_send


def is_whole(store: ClusterStore, folder: str) -> bool:
    """Whether a reader would take it for an instance: by its flag. Then all of it must be there."""
    there = {name for name in keys(store) if name.startswith(f"{folder}/")}
    if f"{folder}/_SUCCESS" not in there:
        return False
    assert there == {f"{folder}/{name}" for name in ("_SUCCESS", *DATA)}
    return True


MOVES = ["delete", "archive on the same cluster", "archive on another", "archive on a file system", "archive from one"]


@pytest.mark.soak
@pytest.mark.parametrize("move", MOVES)
def test_cut_off_before_every_request_and_completed(s3: str, tmp_path: Path, move: str) -> None:
    for count in range(100):
        lake = lake_store(s3)
        source = local_store(tmp_path / str(count)) if move == "archive from one" else lake
        target = {
            "archive on another": lake_store(s3, "attic"),
            "archive on a file system": local_store(tmp_path / str(count)),
            "archive from one": lake,
        }.get(move)
        feed = feed_on(source, None if move == "delete" else ARCHIVE)
        land(source, feed, OLD, YOUNG)
        near = set(NEAR if move == "delete" else ())
        for name in near:
            write(source, name, b"x")
        decided, archive = verdicts_of(source, feed), target or source
        hook = no_write_after(lake, count)
        try:
            (outcome,) = evict(source, decided, "_SUCCESS", target)
        finally:
            lake.fs.s3.meta.events.unregister("before-send.s3", hook)
        here = is_whole(source, "raw/2013/01/02/05")
        there = move != "delete" and is_whole(archive, "old/2013/010205")
        assert here or there or move == "delete"
        assert here == is_untouched(source, decided[0].instance, "_SUCCESS")
        assert SECRET not in str(outcome.error)
        (completed,) = evict(source, decided, "_SUCCESS", target)
        assert completed.error is None
        kind_of(source).purge(patience=0)
        old = {f"old/2013/010205{end}" for end in ("/_SUCCESS", "/part-0", "/carrier=US/part-1", ".stats")}
        mine = {*near, *keys_of("2013/01/09/05")}
        if source is archive:
            assert keys(source) == mine | (old if move != "delete" else set())
        else:
            assert (keys(source), keys(archive)) == (mine, old)
        if outcome.error is None:
            break
    assert count >= (3 if move == "archive on a file system" else 2)
    assert outcome.error is None


OLD_PLACES = ("/old/2013/010205", "/old/2013/010205.stats")
OLD_KEYS = {f"old/2013/010205{end}" for end in ("/_SUCCESS", "/part-0", "/carrier=US/part-1", ".stats")}
IN_ARCHIVE = ["old/2013/010205/README", "old/2013/010205.bak/part-0", "old/2013/01020", "old/2013/010205-stats"]


@pytest.mark.soak
@pytest.mark.parametrize("others", [(), IN_ARCHIVE], ids=["alone", "among others"])
def test_cut_off_before_every_request_and_nobody_goes_on(s3: str, tmp_path: Path, others: list[str]) -> None:
    """A part of a copy goes, what is whole stays, and so does what was there before."""
    outcomes = set()
    for count in range(100):
        lake, source = lake_store(s3), local_store(tmp_path / str(count))
        feed = feed_on(source, ARCHIVE)
        land(source, feed, OLD)
        for name in others:
            write(lake, name, b"x")
        decided = verdicts_of(source, feed)
        hook = no_write_after(lake, count)
        try:
            (outcome,) = evict(source, decided, "_SUCCESS", lake)
        finally:
            lake.fs.s3.meta.events.unregister("before-send.s3", hook)
        made = frozenset(keys(lake) & OLD_KEYS)
        for place in OLD_PLACES:
            abandon_archive(lake, place, "_SUCCESS")
        left = keys(lake) - set(others)
        is_ended = "old/2013/010205/_SUCCESS" in made
        assert left - {"old/2013/010205.stats"} == (OLD_KEYS - {"old/2013/010205.stats"} if is_ended else set())
        assert set(others) <= keys(lake)
        outcomes.add((len(made), len(left)))
        if outcome.error is None:
            break
    # The file of statistics is in the archive as soon as it is written and its note is gone.
    assert outcomes == {(0, 0), (1, 0), (2, 0), (3, 3), (4, 3), (4, 4)}


def test_a_copy_that_was_cut_off_follows_its_original(store: ClusterStore, tmp_path: Path) -> None:
    """What the copy made is replaced or removed; what was there before is not, nor what a copy made that has ended."""
    source = local_store(tmp_path)
    feed = feed_on(source, ARCHIVE, locations={"data": LOCATIONS["data"]})
    land_data(source, feed, {"part-0": b"abc", "part-1": b"de", "part-2": b"f"})
    write(store, "old/2013/010205/part-2", b"f")
    decided = verdicts_of(source, feed)
    hook = no_write_after(store, 4)  # the note, the plan and two files
    try:
        evict_one(source, decided, store)
    finally:
        store.fs.s3.meta.events.unregister("before-send.s3", hook)
    assert keys(store) >= {f"old/2013/010205/part-{number}" for number in range(3)}
    Path(source.path("/raw/2013/01/02/05/part-0")).unlink()
    land_data(source, feed, {"part-1": b"DE", "part-2": b"F"})
    assert "part-2 is there already, and differs" in str(evict_one(source, decided, store))
    land_data(source, feed, {"part-2": b"f"})
    assert evict_one(source, decided, store) is None
    assert keys(store) == {f"old/2013/010205/{name}" for name in ("_SUCCESS", "part-1", "part-2")}
    assert store.fs.cat_file(store.path("old/2013/010205/part-1")) == b"DE"
    land_data(source, feed, {"part-1": b"de", "part-2": b"f"})
    assert "part-1 is there already, and differs" in str(evict_one(source, decided, store))


def test_an_archived_instance_has_the_same_version(store: ClusterStore, tmp_path: Path) -> None:
    feed, backup = feed_on(store, ARCHIVE), local_store(tmp_path)
    land(store, feed, OLD)
    (decided,) = verdicts_of(store, feed)
    sizes = {name: len(content) for name, content in DATA.items()}
    assert [gone.error for gone in evict(store, [decided], "_SUCCESS", backup)] == [None]
    folder = Path(backup.path("/old/2013/010205"))
    assert {name: (folder / name).stat().st_size for name in DATA} == sizes
    assert fingerprint(backup, "/old/2013/010205", "_SUCCESS").files == 2


def test_without_a_flag_what_was_decided_counts_as_begun(store: ClusterStore) -> None:
    feed = feed_on(store, availability_flag=None)
    land(store, feed, OLD)
    assert not is_untouched(store, old_instance(store, feed), None)
    assert is_untouched(store, old_instance(store, feed), "_SUCCESS")


def test_what_its_replication_staged_goes_too(store: ClusterStore) -> None:
    feed = feed_on(store)
    land(store, feed, OLD, YOUNG)
    paths = InstancePaths(feed, store.cluster)
    staged = {one: copies_folder(store, paths.data(one)) for one in (OLD, YOUNG)}
    for folder in staged.values():
        store.fs.pipe_file(f"{folder}/primary/published.jsonl", b"")
    assert [gone.error for gone in evicted(store, feed)] == [None]
    store.fs.invalidate_cache()
    assert {one: store.fs.exists(folder) for one, folder in staged.items()} == {OLD: False, YOUNG: True}
