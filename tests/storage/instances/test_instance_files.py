from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.instance_files import list_instance
from tests.builders import make_cluster


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), tmp_path, {})


@pytest.fixture
def folder(store: ClusterStore) -> Path:
    folder = Path(store.path("instance"))
    write(folder, "part-0", b"abc")
    write(folder, "day=1/part-1", b"d")
    return folder


def write(folder: Path, name: str, content: bytes) -> Path:
    """A file written at a time of its own: 1000 s after the epoch and one for each byte."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (1000 + len(content), 1000 + len(content)))
    return file


def signed(store: ClusterStore, flag: str | None = "_done") -> str:
    return list_instance(store, "/instance", flag).signature


def test_it_stays_while_files_are_only_read(store: ClusterStore, folder: Path) -> None:
    before = signed(store)
    assert len(before) == 32
    assert (folder / "part-0").read_bytes() == b"abc"
    assert list_instance(store, "instance/", "_done").signature == signed(store) == before


def test_every_change_of_a_file_changes_it(store: ClusterStore, folder: Path) -> None:
    seen = [signed(store)]
    write(folder, "part-0", b"abcd")  # size
    seen.append(signed(store))
    os.utime(folder / "part-0", (1, 1))  # time
    seen.append(signed(store))
    (folder / "part-0").rename(folder / "part-9")  # name
    seen.append(signed(store))
    (folder / "day=1" / "part-1").rename(folder / "part-1")  # folder
    seen.append(signed(store))
    (folder / "part-1").unlink()
    seen.append(signed(store))
    assert len(set(seen)) == len(seen)


def test_a_copy_that_keeps_size_and_time_is_seen(store: ClusterStore, folder: Path) -> None:
    before = signed(store)
    write(folder, "new", b"xyz").replace(folder / "part-0")  # as rsync --times does
    assert (folder / "part-0").stat().st_mtime == 1003
    assert signed(store) != before


def test_flag_side_files_and_empty_folders_do_not_count(store: ClusterStore, folder: Path) -> None:
    before = signed(store)
    for name in ("_done", "_SUCCESS", "._SUCCESS.crc", "day=1/.part-1.crc", "_temporary/0/part-9"):
        write(folder, name, b"noise")
    (folder / "empty").mkdir()
    assert signed(store) == before
    write(folder, "day=1/done", b"")  # a flag is at the top only
    assert signed(store, "done") != before


def test_a_single_file_and_an_empty_folder_have_one(store: ClusterStore) -> None:
    file = write(Path(store.path("days")), "1.csv", b"abc")
    before = list_instance(store, "days/1.csv", None)
    assert before.modified == datetime.fromtimestamp(1003, UTC)
    write(file.parent, "2.csv", b"abcd")
    assert list_instance(store, "days/1.csv", None) == before
    write(file.parent, "1.csv", b"abcd")
    assert list_instance(store, "days/1.csv", None) != before
    Path(store.path("instance")).mkdir()
    assert list_instance(store, "instance", None).modified is None


def test_the_newest_file_says_when_it_was_modified(store: ClusterStore, folder: Path) -> None:
    write(folder, "_done", b"much later")
    assert list_instance(store, "instance", "_done").modified == datetime.fromtimestamp(1003, UTC)


def test_the_file_behind_a_link_counts(store: ClusterStore, folder: Path) -> None:
    shared = write(Path(store.path("shared")), "x", b"abcde")
    (folder / "x").symlink_to(shared)
    (folder / "sub").symlink_to(shared.parent)
    (folder / "gone").symlink_to("nothing")
    before = list_instance(store, "instance", None)
    assert before.modified == datetime.fromtimestamp(1005, UTC)
    os.utime(shared, (1, 2000))
    after = list_instance(store, "instance", None)
    assert after.signature != before.signature
    assert after.modified == datetime.fromtimestamp(2000, UTC)


def test_what_is_not_there_or_leads_out_is_an_error(store: ClusterStore, folder: Path) -> None:
    with pytest.raises(StorageError, match=r"^cluster 'primary': there is nothing at /raw/2013$"):
        list_instance(store, "/raw/2013", None)
    (folder / "out").symlink_to("/etc/hostname")
    with pytest.raises(StorageError, match=r"^cluster 'primary': '/instance/out' leaves the root .* a symbolic link$"):
        signed(store)


def test_a_store_that_tells_no_modification_time(tmp_path: Path) -> None:
    interfaces = {"write": {"endpoint": "memory://listing-test"}, "execute": {"endpoint": "local[2]"}}
    store = ClusterStore(make_cluster(interfaces=interfaces), tmp_path, {})
    store.fs.pipe_file(store.path("instance/part-0"), b"abc")
    before = list_instance(store, "instance", None)
    assert before.modified is None
    store.fs.pipe_file(store.path("instance/part-0"), b"abd")
    assert list_instance(store, "instance", None) != before
