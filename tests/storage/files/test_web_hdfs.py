"""What HDFS refuses or does not answer is said as of a local file system, within bounds."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import make_cluster
from tests.hdfs_server import Hdfs, hdfs_server, on_hdfs
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
NAMES = ["a b", "ü", "100%25", "a+b", "a;b", "x=1&y", "it's", 'say "x"', "[x]*?", "a#b", "c?d"]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def store(hdfs: Hdfs, tmp_path: Path) -> ClusterStore:
    return ClusterStore(make_cluster(**on_hdfs(hdfs)), tmp_path, {})


def publish(store: ClusterStore, day: int, permission: str | None = None) -> None:
    output = OutputTarget(f"/out/{day}", "_SUCCESS", permission)
    with kind_of(store).publish("daily", {"out": output}) as publication:
        store.fs.pipe_file(f"{publication.staging('out')}/part-0", b"1")
        publication.commit("out")


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_are_names(store: ClusterStore, name: str) -> None:
    path = store.path(f"/odd/{name}")
    store.fs.pipe_file(f"{path}/{name}", name.encode())
    assert store.fs.ls(path, detail=False) == [f"{path}/{name}"]
    assert store.fs.cat_file(f"{path}/{name}") == name.encode()
    assert store.fs.cat_file(f"{path}/{name}", start=0, end=1) == name.encode()[:1]
    store.fs.mv(path, f"{path}.moved")
    assert not store.fs.exists(path)
    store.files.remove_tree(f"{path}.moved")
    assert not store.fs.exists(f"{path}.moved")


def test_rename_never_moves_into_what_is_there(store: ClusterStore) -> None:
    for name in ("a", "b"):
        store.fs.pipe_file(store.path(f"/{name}/file"), b"")
    with pytest.raises(FileExistsError):
        store.fs.mv(store.path("/a"), store.path("/b"))
    with pytest.raises(FileNotFoundError):
        store.fs.mv(store.path("/none"), store.path("/c"))
    with pytest.raises(FileNotFoundError):
        store.fs.rm(store.path("/none"))
    with pytest.raises(OSError, match="is non empty"):
        store.fs.rmdir(store.path("/a"))
    with pytest.raises(OSError, match="Invalid"):
        store.fs.mkdir(store.path("/a:b"))


def test_tasks_get_it_pickled(store: ClusterStore) -> None:
    store.fs.pipe_file(store.path("/pickled"), b"1")
    other = pickle.loads(pickle.dumps(store.fs))
    assert other.cat_file(store.path("/pickled")) == b"1"


def test_what_is_published_has_the_permission_of_its_feed(store: ClusterStore, hdfs: Hdfs) -> None:
    publish(store, 1, "0750")
    listed = hdfs.dfs("-ls", "-R", f"{hdfs.url}{store.path('/out/1')}").splitlines()
    assert [line.split()[0] for line in listed] == ["-rw-r-----"] * 2
    assert [line.split()[2] for line in listed] == [os.environ.get("HADOOP_USER_NAME", "root")] * 2
    other = on_hdfs(hdfs)
    other["storage_options"] |= {"user": "nobody"}
    with pytest.raises(
        StorageError, match=r"^cluster 'primary': cannot read /out/1: permission denied \(/data/out/1\)"
    ):
        kind_of(ClusterStore(make_cluster(**other), Path(), {})).version("/out/1", "_SUCCESS")


def test_safe_mode_is_said_and_changes_nothing(store: ClusterStore, hdfs: Hdfs) -> None:
    publish(store, 2)
    hdfs.dfs("-safemode", "enter", tool="hdfs.tools.DFSAdmin")
    try:
        with pytest.raises(
            StorageError, match=r"cannot prepare /out/2: the namenode is in safe mode, in which nothing"
        ):
            publish(store, 2)
        assert kind_of(store).version("/out/2", "_SUCCESS").files == 1
    finally:
        hdfs.dfs("-safemode", "leave", tool="hdfs.tools.DFSAdmin")
    publish(store, 2)


def test_dead_nodes_are_said_at_once_and_come_back(store: ClusterStore, hdfs: Hdfs) -> None:
    publish(store, 3)
    hdfs.kill("NameNode")
    began = time.monotonic()
    for ask in (kind_of(store).has, lambda path: kind_of(store).version(path, "_SUCCESS")):
        with pytest.raises((StorageError, OSError), match=f"the namenode at {hdfs.http} cannot be reached"):
            ask("/out/3")
    assert time.monotonic() - began < 10
    hdfs.start()
    wait_until(lambda: hdfs.ask("OPEN", "/data/out/3/part-0").ok)  # the datanode has said which blocks it has
    assert kind_of(store).version("/out/3", "_SUCCESS").files == 1
    publish(store, 3)


def test_the_namenode_that_answers_is_found(hdfs: Hdfs, tmp_path: Path) -> None:
    two = on_hdfs(hdfs)
    two["storage_options"] |= {"webhdfs": f"http://localhost:1, {hdfs.http}"}
    store = ClusterStore(make_cluster(**two), tmp_path, {})
    publish(store, 4)
    assert kind_of(store).version("/out/4", "_SUCCESS").files == 1
