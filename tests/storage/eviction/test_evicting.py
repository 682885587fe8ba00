from __future__ import annotations

import os
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import ExpressionError, StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict, plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import ARCHIVING
from falcon_assets.storage.eviction.evicting import Evicted, evict
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.renaming import set_aside
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import TO_ARCHIVE, copies_folder, place_key
from tests.builders import VALIDITY, make_cluster, make_feed
from tests.full_disk import on_a_full_disk
from tests.own_time import OwnTime

NOW = parse_instant("2013-01-10T00:00Z")
OLD, OLDER, YOUNG = (parse_instant(f"2013-01-0{day}T05:00Z") for day in (2, 1, 9))
LOCATIONS = {
    "data": "/raw/flights/${YEAR}/${MONTH}/${DAY}/${HOUR}",
    "stats": "/stats/${YEAR}-${MONTH}-${DAY}-${HOUR}",
    "meta": "/meta/${YEAR}/${MONTH}-${DAY}-${HOUR}.json",
}


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), tmp_path, {})


@pytest.fixture(params=["local", "memory"])
def any_store(request: pytest.FixtureRequest, store: ClusterStore, tmp_path: Path) -> ClusterStore:
    return store if request.param == "local" else in_memory(tmp_path)


def in_memory(home: Path) -> ClusterStore:
    """A store without rename; named apart, as all of a process share their content."""
    interfaces = {"write": {"endpoint": f"memory://{uuid.uuid4()}"}, "execute": {"endpoint": "local"}}
    return ClusterStore(make_cluster(name="remote", interfaces=interfaces), home, {})


def feed_with(cluster: str = "primary", retention: dict[str, Any] | None = None, **overrides: Any) -> Feed:
    entry = {"name": cluster, "validity": VALIDITY, "retention": retention or {"limit": "days(3)"}}
    return make_feed(**{"locations": LOCATIONS, "clusters": [entry], **overrides})


def land(store: ClusterStore, path: str, files: dict[str, str] | None = None) -> None:
    """Files at ``path``; a file itself where they are none."""
    for name, content in ({"": path} if files is None else files).items():
        full = store.path(f"{path}/{name}".rstrip("/"))
        store.fs.makedirs(full.rpartition("/")[0], exist_ok=True)
        store.fs.pipe_file(full, content.encode())


def land_instance(store: ClusterStore, feed: Feed, instance: datetime) -> str:
    paths = InstancePaths(feed, store.cluster)
    data = paths.data(instance)
    land(store, data, {"part-0": "abc", "carrier=US/part-1": "de", "_SUCCESS": ""})
    beside = feed.locations_on(store.cluster.name)
    if beside.stats is not None:
        land(store, paths.render(beside.stats, instance), {"counts": "f"})
    if beside.meta is not None:
        land(store, paths.render(beside.meta, instance))
    return data


def verdicts_of(store: ClusterStore, feed: Feed) -> list[Verdict]:
    return plan_eviction(InstancePaths(feed, store.cluster), stored_instances(store, feed), NOW)


def evicted(store: ClusterStore, feed: Feed, target: ClusterStore | None = None) -> list[Evicted]:
    gone = list(evict(store, verdicts_of(store, feed), feed.availability_flag, target))
    kind_of(store).purge(patience=0)
    return gone


def left(store: ClusterStore) -> list[str]:
    """All files below the root."""
    root = store.path("")
    return sorted(name[len(root) :] for name in store.fs.find(root))


def test_old_instances_go_from_all_locations(any_store: ClusterStore) -> None:
    feed = feed_with(any_store.cluster.name)
    for instance in (OLDER, OLD):
        land_instance(any_store, feed, instance)
    before = left(any_store)
    land_instance(any_store, feed, YOUNG)
    young = sorted(set(left(any_store)) - set(before))
    size = 5 + 1 + len("/meta/2013/01-01-05.json")
    assert evicted(any_store, feed) == [Evicted(OLDER, 4, size), Evicted(OLD, 4, size)]
    assert left(any_store) == young
    assert evicted(any_store, feed) == []


def test_the_tree_of_a_feed(any_store: ClusterStore) -> None:
    feed = feed_with(any_store.cluster.name)
    land_instance(any_store, feed, OLD)
    land(any_store, "/stats/2013-01-01-05", {"counts": "f"})
    land(any_store, "/stats/2013-01-01-05.bak", {"counts": "f"})
    assert stored_instances(any_store, feed) == [
        StoredInstance(OLDER, (StoredLocation("stats", "/stats/2013-01-01-05", "/stats"),)),
        StoredInstance(
            OLD,
            (
                StoredLocation("data", "/raw/flights/2013/01/02/05", "/raw/flights"),
                StoredLocation("stats", "/stats/2013-01-02-05", "/stats"),
                StoredLocation("meta", "/meta/2013/01-02-05.json", "/meta"),
            ),
        ),
    ]


def test_what_belongs_to_the_feed_and_not_to_an_instance_stays(any_store: ClusterStore) -> None:
    feed = feed_with(any_store.cluster.name, locations=LOCATIONS | {"stats": "/stats", "meta": "/raw/about"})
    land(any_store, InstancePaths(feed, any_store.cluster).data(OLDER), {"part-0": "abc"})
    own = ["/raw/about", "/stats/2013-01-01-05/counts"]
    for path in own:
        land(any_store, path)
    assert evicted(any_store, feed) == [Evicted(OLDER, 1, 3)]
    assert left(any_store) == own


def test_nothing_there_is_nothing_found(any_store: ClusterStore) -> None:
    assert stored_instances(any_store, feed_with(any_store.cluster.name)) == []


def test_emptied_folders_go_up_to_the_fixed_prefix(store: ClusterStore) -> None:
    feed = feed_with()
    land_instance(store, feed, OLDER)
    land_instance(store, feed, OLD)
    land(store, "/raw/flights/2013/01/02/README")
    evicted(store, feed)
    root = Path(store.path(""))
    names = {folder: [entry.name for entry in (root / folder).iterdir()] for folder in ("stats", "meta")}
    assert names == {"stats": [], "meta": []}
    left_over = [str(entry.relative_to(root)) for entry in (root / "raw/flights/2013/01").rglob("*")]
    assert left_over == ["raw/flights/2013/01/02", "raw/flights/2013/01/02/README"]


NEAR = [
    "/raw/flights/2013/01/02/5",
    "/raw/flights/2013/01/02/05.bak",
    "/raw/flights/2013/01/02/24",
    "/raw/flights/2013/13/02/05",
    "/raw/flights/2013/02/30/05",
    "/raw/flights/2012/01/02/05",
    "/raw/flights/２０１３/01/02/05",
    "/raw/flights/2013/01/02-05",
    "/raw/flightsx/2013/01/02/05",
    "/raw/2013/01/02/05",
    "/stats/2013-01-02-05 ",
    "/stats/2013-01-02-05-00",
    "/meta/2013/01-02-05.jsonl",
]


def test_what_does_not_match_is_left_alone(store: ClusterStore) -> None:
    for path in NEAR:
        land(store, path, {"part-0": "x"})
    feed = feed_with()
    land_instance(store, feed, OLD)
    evicted(store, feed)
    assert left(store) == sorted(f"{path}/part-0" for path in NEAR)


def test_a_file_where_a_folder_is_expected_is_left_alone(store: ClusterStore) -> None:
    land(store, "/raw/flights/2013/01/02")
    assert evicted(store, feed_with()) == []
    assert left(store) == ["/raw/flights/2013/01/02"]


@pytest.mark.parametrize("link", ["2013", "2013/01", "2013/01/02", "2013/01/02/05"])
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_links_are_not_followed(store: ClusterStore, tmp_path: Path, link: str, where: str) -> None:
    behind = Path(store.path("/elsewhere")) if where == "inside" else tmp_path / "elsewhere"
    instance = behind / "2013/01/02/05"
    instance.mkdir(parents=True)
    (instance / "part-0").write_text("x")
    place = Path(store.path("/raw/flights")) / link
    place.parent.mkdir(parents=True)
    place.symlink_to(behind / link)
    assert stored_instances(store, feed_with()) == []
    # Neither where the link came after the decision.
    location = StoredLocation("data", "/raw/flights/2013/01/02/05", "/raw/flights")
    (gone,) = evict(store, [Verdict(StoredInstance(OLD, (location,)), "delete", "")], "_SUCCESS")
    assert isinstance(gone.error, StorageError)
    assert "symbolic link" in str(gone.error)
    assert place.is_symlink()
    assert (instance / "part-0").read_text() == "x"


def test_links_in_an_instance_go_and_what_they_lead_to_stays(store: ClusterStore, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "data").write_text("x")
    folder = Path(store.path(land_instance(store, feed_with(), OLD)))
    (folder / "folder").symlink_to(tmp_path / "precious")
    (folder / "file").symlink_to(tmp_path / "precious" / "data")
    evicted(store, feed_with())
    assert not folder.exists()
    assert (tmp_path / "precious" / "data").read_text() == "x"


def test_a_prefix_that_is_a_link_out_is_refused(store: ClusterStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Path(store.path("/raw")).parent.mkdir(parents=True)
    Path(store.path("/raw")).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"'/raw/flights' leaves the root .* by a symbolic link"):
        stored_instances(store, feed_with())


def test_a_template_that_reaches_above_its_prefix_is_refused(store: ClusterStore) -> None:
    locations = {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}/${up}/precious"}
    feed = feed_with(locations=locations, properties={"up": "../.."})
    with pytest.raises(ExpressionError, match=r"a variable puts '..' into the path"):
        stored_instances(store, feed)
    with pytest.raises(ValueError, match=r"a path must not contain '..'"):
        feed_with(locations={"data": "/raw/${YEAR}/../precious"})


@pytest.mark.parametrize(
    ("path", "prefix", "why"),
    [
        ("/raw/flights/2013", "/stats", "it is not below /stats"),
        ("/raw/flights2013", "/raw/flights", "it is not below /raw/flights"),
        ("/raw/flights", "/raw/flights", "it is not below /raw/flights"),
        ("/raw/flights/", "/raw/flights", "it is not below /raw/flights"),
        ("/raw/flights/../x", "/raw/flights", "it is not below /raw/flights"),
        ("/raw/flights/..", "/raw/flights", "it is not below /raw/flights"),
        ("", "", "it is not below /"),
        ("/", "", "it is not below /"),
        ("raw/x", "", "it is not below /"),
        ("/./", "", "it is not below /"),
    ],
)
def test_a_location_that_is_not_below_its_prefix_is_refused(
    any_store: ClusterStore, path: str, prefix: str, why: str
) -> None:
    land(any_store, "/raw/flights/2013")
    land(any_store, "/raw/x")
    location = StoredLocation("data", path, prefix)
    (gone,) = evict(any_store, [Verdict(StoredInstance(OLD, (location,)), "delete", "")], None)
    assert why in str(gone.error)
    assert left(any_store) == ["/raw/flights/2013", "/raw/x"]


@pytest.mark.parametrize(
    ("kind", "shared"),
    [("data", "/raw/all"), *((kind, "/raw/${YEAR}/${MONTH}/${DAY}") for kind in ("data", "stats", "meta"))],
)
def test_a_path_that_instances_share_is_refused(store: ClusterStore, kind: str, shared: str) -> None:
    """None of them may take it away from the others."""
    feed = feed_with(locations={**LOCATIONS, kind: shared})
    with pytest.raises(StorageError, match=r"is coarser than the frequency hours\(1\)"):
        stored_instances(store, feed)


def test_statistics_and_metadata_in_one_file_and_inside_of_the_data(store: ClusterStore) -> None:
    data = LOCATIONS["data"]
    feed = feed_with(locations={"data": data, "stats": f"{data}/_about", "meta": f"{data}/_about"})
    for instance in (OLD, YOUNG):
        land(store, f"{InstancePaths(feed, store.cluster).data(instance)}", {"part-0": "abc", "_about": "12"})
    assert [gone.error for gone in evicted(store, feed)] == [None]
    assert left(store) == ["/raw/flights/2013/01/09/05/_about", "/raw/flights/2013/01/09/05/part-0"]


def test_what_is_being_evicted_is_not_written(store: ClusterStore) -> None:
    feed = feed_with()
    removal = kind_of(store).removal("_SUCCESS")
    for instance in (OLD, YOUNG):
        path = land_instance(store, feed, instance)
        lock = Path(store.staging, f"{place_key(path.strip('/'))}.lock")
        with removal.held(StoredLocation("data", path, "/raw/flights")):
            with path_lock(lock, 0) as is_held:
                assert not is_held
            waiting = os.open(lock, os.O_RDWR)  # of a run that tries again
        with path_lock(lock, 0) as is_held:
            assert is_held
            assert not os.path.samestat(os.fstat(waiting), lock.stat())
        os.close(waiting)
    assert list(Path(store.staging).glob("*.lock")) == []


def test_what_a_run_is_writing_stays_until_it_ended(store: ClusterStore) -> None:
    feed = feed_with()
    path = land_instance(store, feed, OLD)
    with kind_of(store).publish("hourly-delays", {"out": OutputTarget(path, "_SUCCESS")}):
        (gone,) = evict(store, verdicts_of(store, feed), "_SUCCESS")
        assert str(gone.error) == (
            f"cluster 'primary': cannot evict {path}: it is being written by a run; it goes when that has ended"
        )
        assert Path(store.path(path), "_SUCCESS").exists()
        kind_of(store).purge(patience=99999)  # there is nothing that anybody could be reading
        assert kind_of(store).is_purged()
    assert [one.error for one in evicted(store, feed)] == [None]
    assert left(store) == []


def test_what_its_replication_staged_goes_too(store: ClusterStore) -> None:
    feed = feed_with()
    staged = {}
    for instance in (OLD, YOUNG):
        staged[instance] = Path(copies_folder(store, land_instance(store, feed, instance)))
        (staged[instance] / "primary" / "attempt" / "data").mkdir(parents=True)
        (staged[instance] / "primary" / "published.jsonl").touch()
    with path_lock(staged[OLD] / "primary.lock", 0):
        (gone,) = evicted(store, feed)
        assert str(gone.error) == (
            "cluster 'primary': cannot evict /raw/flights/2013/01/02/05: it is being copied by a run; "
            "it goes when that has ended"
        )
        assert (staged[OLD] / "primary" / "published.jsonl").exists()
    assert [gone.error for gone in evicted(store, feed)] == [None]
    assert {one: folder.exists() for one, folder in staged.items()} == {OLD: False, YOUNG: True}
    assert not Path(store.staging, "evicted").exists() or not list(Path(store.staging, "evicted").iterdir())


def test_what_a_killed_publication_put_away_does_not_come_back(store: ClusterStore) -> None:
    feed = feed_with()
    path = land_instance(store, feed, OLD)
    decided = verdicts_of(store, feed)
    attempt = Path(store.staging, place_key(path.lstrip("/")), "attempt")
    (attempt / "ready").mkdir(parents=True)
    Path(store.path(path)).rename(attempt / "old")
    assert [gone.error for gone in evict(store, decided, "_SUCCESS")] == [None]
    with kind_of(store).publish("hourly-delays", {"out": OutputTarget(path, "_SUCCESS")}):
        pass
    assert not Path(store.path(path)).exists()


def test_one_that_cannot_go_does_not_keep_the_others(store: ClusterStore) -> None:
    feed = feed_with()
    first, second = (Path(store.path(land_instance(store, feed, instance))) for instance in (OLDER, OLD))
    decided = verdicts_of(store, feed)
    (first.parent / "there").mkdir()
    first.rename(first.parent / "moved")
    first.symlink_to(first.parent / "there")
    results = list(evict(store, decided, "_SUCCESS"))
    assert str(results[0].error) == (
        "cluster 'primary': cannot evict /raw/flights/2013/01/01/05: it is a symbolic link, "
        "and those are not followed: move it away"
    )
    assert results[1].error is None
    assert not second.exists()


def test_space_is_freed_when_no_reader_can_be_listing_any_more(
    store: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = feed_with()
    land_instance(store, feed, OLD)
    list(evict(store, verdicts_of(store, feed), "_SUCCESS"))
    assert len([path for path in left(store) if not path.endswith("/lock")]) == 5
    own = OwnTime(max(path.stat().st_mtime for path in Path(set_aside.evicted(store).folder).iterdir()))
    monkeypatch.setattr(set_aside, "time", own)
    kind_of(store).purge(patience=300)
    assert sum(own.slept) == pytest.approx(300)
    assert left(store) == []
    kind_of(store).purge()


ARCHIVE = {"limit": "days(3)", "action": "archive", "archive_to": "/old/${YEAR}/${MONTH}${DAY}${HOUR}"}
ARCHIVED = [
    f"/old/2013/010205{end}" for end in (".meta", ".stats/counts", "/_SUCCESS", "/carrier=US/part-1", "/part-0")
]


@pytest.fixture(params=["the same store", "another cluster", "a store without rename"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> ClusterStore | None:
    if request.param == "another cluster":
        interfaces = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local"}}
        return ClusterStore(make_cluster(name="backup", interfaces=interfaces), tmp_path, {})
    return in_memory(tmp_path) if request.param == "a store without rename" else None


def test_archived_instances_are_the_same_elsewhere(any_store: ClusterStore, target: ClusterStore | None) -> None:
    feed = feed_with(any_store.cluster.name, ARCHIVE)
    path = land_instance(any_store, feed, OLD)
    version = fingerprint(any_store, path, "_SUCCESS")
    assert [gone.error for gone in evicted(any_store, feed, target)] == [None]
    archive = target or any_store
    assert left(archive) == ARCHIVED
    assert fingerprint(archive, "/old/2013/010205", "_SUCCESS") == version
    assert target is None or left(any_store) == []


def test_what_was_copied_of_an_instance_that_somebody_removed_goes(store: ClusterStore, tmp_path: Path) -> None:
    interfaces = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local"}}
    backup = ClusterStore(make_cluster(name="backup", interfaces=interfaces), tmp_path, {})
    feed = feed_with(retention=ARCHIVE, locations={"data": LOCATIONS["data"]})
    path = InstancePaths(feed, store.cluster).data(OLD)
    land(store, path)
    decided = verdicts_of(store, feed)
    target = kind_of(backup).copy_target(OutputTarget("/old/2013/010205", "_SUCCESS"), TO_ARCHIVE, ARCHIVING)
    target.begin()
    older = Path(backup.staging, "archived", place_key("/old/2013/010205"))  # as versions before this one copied
    for copied in (Path(target.written), older):
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.touch()
    Path(store.path(path)).unlink()
    assert list(evict(store, decided, "_SUCCESS", backup)) == [Evicted(OLD, 0, 0)]
    assert left(backup) == []


def test_links_are_archived_as_what_they_lead_to(store: ClusterStore) -> None:
    feed = feed_with(retention=ARCHIVE, locations={"data": LOCATIONS["data"]})
    land(store, "/shared/carriers", {"part-2": "xyz"})
    folder = Path(store.path(land_instance(store, make_feed(locations=LOCATIONS), OLD)))
    (folder / "lookup").symlink_to(store.path("/shared/carriers"))
    evicted(store, feed)
    assert Path(store.path("/old/2013/010205/lookup/part-2")).read_text() == "xyz"
    assert not Path(store.path("/old/2013/010205/lookup")).is_symlink()
    assert Path(store.path("/shared/carriers/part-2")).exists()


def test_what_is_in_the_archive_already_is_not_overwritten(
    any_store: ClusterStore, target: ClusterStore | None
) -> None:
    feed = feed_with(any_store.cluster.name, ARCHIVE)
    path = land_instance(any_store, feed, OLD)
    land(target or any_store, "/old/2013/010205", {"part-0": "ABC"})
    before = left(any_store)
    (gone,) = evicted(any_store, feed, target)
    assert "differs" in str(gone.error)
    assert set(before) <= set(left(any_store))
    assert any_store.fs.cat_file(any_store.path(f"{path}/part-0")) == b"abc"


def test_times_and_permissions_are_archived(store: ClusterStore, tmp_path: Path) -> None:
    interfaces = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local"}}
    backup = ClusterStore(make_cluster(name="backup", interfaces=interfaces), tmp_path, {})
    feed = feed_with(retention=ARCHIVE)
    file = Path(store.path(land_instance(store, feed, OLD)), "part-0")
    file.chmod(0o640)
    os.utime(file, (1000, 1000))
    evicted(store, feed, backup)
    kept = Path(backup.path("/old/2013/010205/part-0")).stat()
    assert (kept.st_mode & 0o777, kept.st_mtime) == (0o640, 1000)


def test_an_empty_instance_is_archived_as_an_empty_one(store: ClusterStore, target: ClusterStore | None) -> None:
    if target is not None and Ability.RENAME in kind_of(target).cannot:
        return  # nothing is what an empty folder is there
    feed = feed_with(retention=ARCHIVE, availability_flag=None)
    Path(store.path("/raw/flights/2013/01/02/05")).mkdir(parents=True)
    assert evicted(store, feed, target) == [Evicted(OLD, 0, 0)]
    assert Path((target or store).path("/old/2013/010205")).is_dir()
    assert not Path(store.path("/raw/flights/2013")).exists()


def test_hours_of_a_year_come_back_in_order(store: ClusterStore) -> None:
    feed = feed_with(locations={"data": "/raw/${HOUR}/${DAY}-${MONTH}/${YEAR}.json"})
    hours = [OLDER + hour * timedelta(hours=7) for hour in range(200)]
    paths = InstancePaths(feed, store.cluster)
    for hour in hours:
        land(store, paths.data(hour))
    found = stored_instances(store, feed)
    assert [instance.nominal for instance in found] == hours
    assert {instance.locations[0].prefix for instance in found} == {"/raw"}
    assert format_instant(found[0].nominal) == "2013-01-01T05:00Z"


def test_a_full_disk_can_be_freed(store: ClusterStore) -> None:
    """There is no room for a folder of what goes; readers still have their time."""
    feed = feed_with()
    for instance in (OLDER, OLD, YOUNG):
        land_instance(store, feed, instance)
    evicted(store, feed_with(cluster="primary", retention={"limit": "days(300)"}))
    kind_of(store).removal(None)  # a pass was here before
    listing = Path(store.path(InstancePaths(feed, store.cluster).data(OLD)))
    os.utime(listing, (0, 0))
    descriptor = os.open(listing, os.O_RDONLY)
    try:

        def go() -> None:
            gone = list(evict(store, verdicts_of(store, feed), feed.availability_flag, None))
            assert [(one.nominal, one.files, one.error) for one in gone] == [(OLDER, 4, None), (OLD, 4, None)]

        on_a_full_disk(go)
        assert not listing.exists()
        assert {entry.name for entry in os.scandir(descriptor)} == {"_SUCCESS", "carrier=US", "part-0"}
        assert os.fstat(descriptor).st_mtime > 0  # from when on the patience counts
        kind_of(store).purge(patience=0)
        assert not list(os.scandir(descriptor))
    finally:
        os.close(descriptor)
    assert kind_of(store).is_purged()
    assert all("09" in name for name in left(store))
