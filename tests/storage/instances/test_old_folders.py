"""What a pass over the folders of a feed asks of a store, and what it finds."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.old_folders import SLACK, FolderPass
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.old_folders import AFTER_ALL, Visit, visits
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster, make_feed
from tests.s3_server import ENVIRON, lake, tell_requests

CLUSTER = make_cluster()
FEED = make_feed(locations={"data": "/raw/flights/${YEAR}/${MONTH}/${DAY}/${HOUR}"})
NOW = datetime(2013, 12, 1, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = FolderPass("", began=datetime.now(UTC))


class ObservedFiles(LocalFileSystem):  # type: ignore[misc]
    """The local file system, counting what is asked of it."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:
        self.asked["ls"] += 1
        return super().ls(path, detail=detail, **kwargs)


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    store = ClusterStore(CLUSTER, tmp_path, {})
    store.fs = ObservedFiles()
    return store


def land(store: ClusterStore, path: str) -> Path:
    folder = Path(store.path(path))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-0").touch()
    return folder


def aged(store: ClusterStore) -> FolderPass:
    """A pass that began an hour after everything that is there now was made."""
    began = datetime.now(UTC) + SLACK + timedelta(hours=1)
    return FolderPass("", began=began, lists_all=False, before=began)


def passed(store: ClusterStore, folder_pass: FolderPass, feed: Feed = FEED) -> list[Visit]:
    return list(visits(store, feed, NOW, folder_pass))


def found(visited: list[Visit]) -> list[str]:
    return [path for visit in visited for _, path in visit.found]


def days(count: int) -> list[str]:
    return [f"/raw/flights/2013/{1 + day // 28:02}/{1 + day % 28:02}" for day in range(count)]


def test_a_first_pass_finds_everything_in_order(store: ClusterStore) -> None:
    for day in reversed(days(40)):
        land(store, f"{day}/00")
        land(store, f"{day}/23")
    land(store, "/raw/flights/2013/01/01/notes")
    land(store, "/raw/flights/2014/01/01/00")  # after the end of the validity
    land(store, "/raw/flights/2013/12/02/00")  # to come
    visited = passed(store, FIRST)
    assert found(visited) == [f"{day}/{hour}" for day in days(40) for hour in ("00", "23")]
    assert visited[3].found[0][0] == datetime(2013, 1, 1, tzinfo=UTC)
    assert [visit.folder for visit in visited if visit.folder and AFTER_ALL not in visit.folder] == days(40)


def test_only_folders_that_changed_are_listed_again(store: ClusterStore) -> None:
    for day in days(56):
        land(store, f"{day}/00")
    folder_pass = aged(store)
    assert isinstance(store.fs, ObservedFiles)
    store.fs.asked.clear()
    visited = passed(store, folder_pass)
    assert found(visited) == []
    assert [visit.folder for visit in visited if visit.folder and AFTER_ALL not in visit.folder] == days(56)
    assert sum(visit.asked for visit in visited) == store.fs.asked["ls"] == 4  # flights, the year, two months
    folder = land(store, f"{days(56)[30]}/07").parent
    changed = datetime.fromtimestamp(folder.stat().st_ctime, UTC)
    anew = found(passed(store, replace(folder_pass, before=changed + SLACK)))
    assert [path for path in anew if path.startswith(days(56)[30])] == [
        f"{days(56)[30]}/{hour}" for hour in ("00", "07")
    ]
    assert f"{days(56)[0]}/00" not in anew


def test_a_time_that_was_set_back_hides_nothing_on_a_mounted_store(store: ClusterStore) -> None:
    """As ``rsync -a`` and ``tar`` do it."""
    landed = land(store, "/raw/flights/2013/01/01/05")
    os.utime(landed.parent, (0, 0))
    before = datetime.now(UTC) - timedelta(minutes=1) + SLACK
    assert found(passed(store, replace(FIRST, lists_all=False, before=before))) == ["/raw/flights/2013/01/01/05"]


def test_it_goes_on_behind_a_folder(store: ClusterStore) -> None:
    for day in days(40):
        land(store, f"{day}/00")
    folder_pass = replace(FIRST, folder=days(40)[29])
    visited = passed(store, folder_pass)
    assert found(visited) == [f"{day}/00" for day in days(40)[30:]]
    assert sum(visit.asked for visit in visited) == 3 + 10  # the year, its folder, February; January is behind it


def test_a_link_to_a_folder_is_followed_each_time(store: ClusterStore) -> None:
    elsewhere = land(store, "/elsewhere/05").parent
    land(store, "/raw/flights/2013/01/02/00")
    (Path(store.path("/raw/flights/2013/01")) / "01").symlink_to(elsewhere)
    long_ago = replace(aged(store), before=datetime.now(UTC) + SLACK - timedelta(seconds=1))
    assert "/raw/flights/2013/01/01/05" in found(passed(store, long_ago))


def test_a_template_without_folders_costs_one_listing(store: ClusterStore) -> None:
    feed = make_feed(locations={"data": "/raw/${YEAR}-${MONTH}-${DAY}-${HOUR}/data"})
    for hour in range(24):
        land(store, f"/raw/2013-01-01-{hour:02}/data")
    assert len(found(passed(store, FIRST, feed))) == 24
    assert isinstance(store.fs, ObservedFiles)
    store.fs.asked.clear()
    assert found(passed(store, aged(store), feed)) == []
    assert store.fs.asked["ls"] == 0


def test_before_the_validity_there_is_nothing_to_ask(store: ClusterStore) -> None:
    land(store, "/raw/flights/2013/01/01/00")
    start = datetime(2012, 1, 1, tzinfo=UTC)
    assert list(visits(store, FEED, start, FIRST)) == []


def test_one_folder_that_cannot_be_listed_does_not_hide_the_others(store: ClusterStore) -> None:
    for day in days(3):
        land(store, f"{day}/00")
    loop = Path(store.path(days(3)[1]))
    for name in sorted(loop.rglob("*"), reverse=True):
        name.rmdir() if name.is_dir() else name.unlink()
    loop.rmdir()
    loop.symlink_to(loop)  # even root cannot list it
    visited = passed(store, FIRST)
    assert found(visited) == [f"{days(3)[0]}/00", f"{days(3)[2]}/00"]
    (problem,) = [visit.problem for visit in visited if visit.problem]
    assert str(problem).startswith(f"cluster 'primary': cannot list {days(3)[1]}: Too many levels of symbolic links")


def test_a_store_that_fails_ends_the_pass(store: ClusterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    land(store, "/raw/flights/2013/01/01/00")

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(store.fs, "ls", away)
    with pytest.raises(StorageError, match="cannot list /raw/flights: Input/output error"):
        passed(store, FIRST)


def test_an_object_store_is_listed_by_prefix_one_request_for_each(s3: str) -> None:
    cluster = make_cluster(**{**lake(s3), "name": "primary"})
    store = ClusterStore(cluster, Path("/"), ENVIRON)
    store.fs.makedirs("lake", exist_ok=True)
    for day in days(30):
        for hour in ("00", "01"):
            for name in ("part-0", "part-1", "_SUCCESS"):
                store.fs.pipe_file(store.path(f"{day}/{hour}/{name}"), b"x")
    requests: list[str] = []
    tell_requests(store.fs, requests.append)
    assert not kind_of(store).tells_changes
    visited = list(kind_of(store).visits(FEED, NOW, FIRST))
    assert found(visited) == [f"{day}/{hour}" for day in days(30) for hour in ("00", "01")]
    assert sum(visit.asked for visit in visited) == len(requests) == 4 + 30  # flights, year, months, days


def test_what_others_put_into_a_listed_folder_is_found_where_the_driver_remembers_listings(s3: str) -> None:
    options = lake(s3)["storage_options"] | {"use_listings_cache": True}
    cluster = make_cluster(**{**lake(s3), "name": "primary", "storage_options": options})
    feed = make_feed(locations={"data": "/later/${YEAR}-${MONTH}-${DAY}-${HOUR}"}, availability_flag=None)
    store, other = (ClusterStore(one, Path("/"), ENVIRON) for one in (cluster, make_cluster(**lake(s3))))
    other.fs.makedirs("lake", exist_ok=True)
    for hour in ("00", "01"):
        other.fs.pipe_file(other.path(f"/later/2013-01-01-{hour}/part-0"), b"x")
        assert len(found(list(visits(store, feed, NOW, FIRST)))) == 1 + int(hour)
