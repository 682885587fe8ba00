from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.instances.instance_files import list_instance
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.landing import Collected, collect
from tests.builders import make_cluster, make_feed
from tests.hours import START

CLUSTER = make_cluster()
FEED = make_feed()
END = datetime(2014, 1, 1, tzinfo=UTC)


class ObservedFiles(LocalFileSystem):  # type: ignore[misc]
    """The local file system, counting what is asked of it, with something to happen as a file is read."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.on_read: Callable[[str], None] = lambda name: None

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:
        self.asked["ls"] += 1
        return super().ls(path, detail=detail, **kwargs)

    def isfile(self, path: str) -> Any:
        self.asked["isfile"] += 1
        return super().isfile(path)


class ObservedContents(LocalFiles):
    fs: ObservedFiles

    def content(self, path: str, size: int) -> tuple[int, str]:
        self.fs.asked["content"] += 1
        self.fs.on_read(path)
        return super().content(path, size)


@pytest.fixture
def files() -> ObservedFiles:
    return ObservedFiles()


@pytest.fixture
def store(tmp_path: Path, files: ObservedFiles) -> ClusterStore:
    store = ClusterStore(CLUSTER, tmp_path, {})
    store.fs, store.files = files, ObservedContents(files)
    return store


def at(day: int, hour: int = 0, month: int = 1) -> datetime:
    return datetime(2013, month, day, hour, tzinfo=UTC)


def path_of(instance: datetime) -> str:
    return f"/raw/flights/{instance:%Y/%m/%d/%H}"


def land(store: ClusterStore, instance: datetime, content: bytes = b"abc", flag: str | None = "_SUCCESS") -> Path:
    folder = Path(store.path(path_of(instance)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-0").write_bytes(content)
    if flag:
        (folder / flag).touch()
    return folder


def collected(
    store: ClusterStore,
    known: Mapping[datetime, str | None] | None = None,
    cut_off_from: datetime | None = None,
    windows: tuple[tuple[datetime, datetime], ...] = ((START, END),),
    feed: Feed = FEED,
) -> Iterator[Collected]:
    return collect(kind_of(store), feed, windows, known or {}, cut_off_from)


def instances(found: Iterator[Collected]) -> list[datetime]:
    return [one.instance for one in found]


def test_what_landed_is_found_with_its_version(store: ClusterStore) -> None:
    folder = land(store, at(2, 5))
    os.utime(folder / "part-0", (1, 1000))
    land(store, at(2, 6), flag=None)
    path = path_of(at(2, 5))
    assert list(collected(store)) == [
        Collected(
            at(2, 5),
            path,
            fingerprint(store, path, "_SUCCESS"),
            list_instance(store, path, "_SUCCESS").signature,
            datetime.fromtimestamp(1000, UTC),
        )
    ]


def test_only_the_windows_are_checked_oldest_first(store: ClusterStore) -> None:
    for day in (1, 2, 3, 4, 20):
        for hour in (0, 7, 23):
            land(store, at(day, hour))
    windows = ((at(3, 7), at(4, 0)), (at(1, 1), at(1, 7)))
    assert instances(collected(store, windows=windows)) == [at(1, 7), at(3, 7), at(3, 23), at(4)]
    assert instances(collected(store, windows=())) == []


def test_known_ones_are_left_out_except_where_they_changed_within_the_cut_off(
    store: ClusterStore, files: ObservedFiles
) -> None:
    folders = {hour: land(store, at(1, hour)) for hour in range(6)}
    known: dict[datetime, str | None] = {one.instance: one.signature for one in collected(store)}
    assert instances(collected(store, known, START)) == []
    for hour in (1, 3, 4):
        land(store, at(1, hour), b"late")
    (folders[4] / "_SUCCESS").unlink()  # being written
    known[at(1, 5)] = None
    assert instances(collected(store, known)) == []
    assert instances(collected(store, known, at(1, 3))) == [at(1, 3), at(1, 5)]
    files.asked.clear()
    assert instances(collected(store, known, at(1, 1))) == [at(1, 1), at(1, 3), at(1, 5)]
    assert files.asked["content"] == 3  # what is being written is not even read
    land(store, at(1, 4), b"later")
    known |= {one.instance: one.signature for one in collected(store, known, START)}
    assert instances(collected(store, known, START)) == []


def test_without_a_flag_presence_is_enough_for_a_folder_or_a_file(store: ClusterStore) -> None:
    feed = make_feed(availability_flag=None, locations={"data": "/raw/flights/${YEAR}/${MONTH}/${DAY}/${HOUR}"})
    land(store, at(1), flag=None)
    Path(store.path(path_of(at(1, 1)))).write_bytes(b"one file")
    found = list(collected(store, feed=feed))
    assert [(one.instance, one.version.files, one.version.bytes) for one in found] == [(at(1), 1, 3), (at(1, 1), 1, 8)]


def test_it_costs_parents_not_instances(store: ClusterStore, files: ObservedFiles) -> None:
    days = 5
    for day in range(1, days + 1):
        for hour in range(0, 24, 2):
            land(store, at(day, hour))
    known: dict[datetime, str | None] = {one.instance: one.signature for one in collected(store)}
    files.asked.clear()
    assert instances(collected(store, known)) == []
    assert files.asked == {"ls": 3 + days}  # flights, the year, the month, each day; no flag, no content

    files.asked.clear()
    windows = tuple((at(day), at(day, 23)) for day in range(days, 0, -1))
    assert instances(collected(store, known, windows=windows)) == []
    assert files.asked == {"ls": days}  # of short windows, however many, only the days

    files.asked.clear()
    assert instances(collected(store, known, at(days))) == []
    assert files.asked == {"ls": 3 + days + 12, "isfile": 12}  # the listings of the last day's 12: nothing is opened

    files.asked.clear()
    assert instances(collected(store, windows=((at(9, month=8), at(9, 23, month=8)),))) == []
    assert files.asked == {"ls": 1}  # 24 missing instances: their day


def test_nothing_is_read_before_it_is_asked_for(store: ClusterStore, files: ObservedFiles) -> None:
    for day in range(1, 20):
        land(store, at(day))
    found = collected(store)
    assert not files.asked
    assert next(found).instance == at(1)
    assert files.asked["content"] == 1
    assert files.asked["ls"] <= 8  # not the folders of the other days
    assert isinstance(found, Iterator)


@pytest.mark.parametrize("gone", ["part-0", "_SUCCESS", "all"])
def test_what_goes_while_it_is_read_is_left_for_the_next_tick(
    store: ClusterStore, files: ObservedFiles, gone: str
) -> None:
    folder = land(store, at(1))
    land(store, at(2))

    def vanish(name: str) -> None:
        if name.startswith(str(folder)):
            for file in [folder / "part-0", folder / "_SUCCESS"] if gone == "all" else [folder / gone]:
                file.unlink(missing_ok=True)
            if gone == "all" and folder.is_dir():
                folder.rmdir()

    files.on_read = vanish
    assert instances(collected(store)) == [at(2)]


def test_what_keeps_changing_is_left_until_it_rests(store: ClusterStore, files: ObservedFiles) -> None:
    folder = land(store, at(1))
    land(store, at(2))
    appended = 0

    def append(name: str) -> None:
        nonlocal appended
        if name.startswith(str(folder)):
            appended += 1
            (folder / f"part-{appended}").touch()

    files.on_read = append
    assert instances(collected(store)) == [at(2)]
    files.on_read = lambda name: None
    found = list(collected(store, {at(2): None}))
    assert [(one.instance, one.version.files) for one in found] == [(at(1), appended + 1)]


def test_links_out_of_the_root_are_ignored(store: ClusterStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "00"
    outside.mkdir(parents=True)
    (outside / "_SUCCESS").touch()
    land(store, at(2))
    Path(store.path("raw/flights/2013/01/01")).symlink_to(outside.parent)
    Path(store.path("raw/flights/2013/01/02") + "/01").symlink_to(outside)
    (land(store, at(2, 2)) / "leak").symlink_to("/etc/hostname")
    (land(store, at(2, 3)) / "loop").symlink_to(".")
    assert instances(collected(store)) == [at(2)]
    assert instances(collected(store, {at(2, 1): "x", at(2, 2): "x"}, START)) == [at(2)]


def test_one_that_may_not_be_read_does_not_hide_the_others(store: ClusterStore, files: ObservedFiles) -> None:
    folder = land(store, at(1))
    land(store, at(2))

    def refuse(name: str) -> None:
        if name.startswith(str(folder)):
            raise PermissionError(13, "Permission denied", name)

    files.on_read = refuse  # the tests may run as root, who may read everything
    found = collected(store)
    assert next(found).instance == at(2)
    with pytest.raises(StorageError) as raised:
        next(found)
    assert str(raised.value) == (
        f"cluster 'primary': cannot read /raw/flights/2013/01/01/00: permission denied ({folder}/part-0)"
    )


def test_one_that_may_not_be_checked_is_not_missing(
    store: ClusterStore, files: ObservedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = land(store, at(1))
    land(store, at(2))
    look = files.info

    def refuse(path: str, **options: object) -> object:
        if str(path).startswith(f"{folder}/"):
            raise PermissionError(13, "Permission denied", path)
        return look(path, **options)

    monkeypatch.setattr(files, "info", refuse)  # the tests may run as root, who may look everywhere
    found = collected(store)
    assert next(found).instance == at(2)
    with pytest.raises(StorageError) as raised:
        next(found)
    assert str(raised.value) == (
        f"cluster 'primary': cannot look at /raw/flights/2013/01/01/00: permission denied ({folder}/_SUCCESS)"
    )


class Standby(BaseHTTPRequestHandler):
    """A name node that answers nothing now."""

    def do_GET(self) -> None:
        body = b'{"RemoteException": {"exception": "StandbyException", "message": "token=secret"}}'
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_store_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Standby) as server:
        interfaces = {
            "write": {"endpoint": f"webhdfs://127.0.0.1:{server.server_port}/data"},
            "execute": {"endpoint": "local[2]"},
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        store = ClusterStore(make_cluster(interfaces=interfaces), tmp_path, {})
        with pytest.raises(StorageError) as raised:
            list(collected(store))
        assert str(raised.value) == (
            "cluster 'primary': cannot list /raw/flights: no namenode that was asked is active (StandbyException)"
        )
        server.shutdown()
        thread.join()
    there = f"http://127.0.0.1:{server.server_port}"
    why = f"^cluster 'primary': cannot list /raw/flights: the namenode at {there} cannot be reached$"
    with pytest.raises(StorageError, match=why):
        list(collected(store))
