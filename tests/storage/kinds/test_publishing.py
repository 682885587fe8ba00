from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import make_cluster
from tests.full_disk import on_a_full_disk
from tests.processes import forked

KEY = "hourly-delays on primary, 2013-01-01T00:00Z"
PATH = "/delays/2013/01/01/00"
TARGET = OutputTarget(PATH, "_SUCCESS")


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), tmp_path, {})


def write(publication: InstancePublication, name: str, files: dict[str, str]) -> None:
    for file, content in files.items():
        path = Path(publication.staging(name), file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def publish(store: ClusterStore, files: dict[str, str], target: OutputTarget = TARGET) -> DataVersion:
    with kind_of(store).publish(KEY, {"delays": target}) as publication:
        write(publication, "delays", files)
        return publication.commit("delays")


def contents(store: ClusterStore, path: str = PATH) -> dict[str, str]:
    base = Path(store.path(path))
    return {str(file.relative_to(base)): file.read_text() for file in base.rglob("*") if file.is_file()}


def left_in_staging(store: ClusterStore) -> list[Path]:
    return [path for path in Path(store.staging).iterdir() if path.name != "replaced"]


def test_the_first_and_the_next_instance_are_whole_and_versioned(store: ClusterStore) -> None:
    first = publish(store, {"part-0": "a", "carrier=AA/part-0": "b"})
    assert contents(store) == {"part-0": "a", "carrier=AA/part-0": "b", "_SUCCESS": ""}
    assert first == fingerprint(store, PATH, "_SUCCESS")
    assert (first.files, first.bytes) == (2, 2)
    second = publish(store, {"part-1": "cd"})
    assert contents(store) == {"part-1": "cd", "_SUCCESS": ""}
    assert second == fingerprint(store, PATH, "_SUCCESS") != first
    assert left_in_staging(store) == []


def test_replaced_instances_go_when_nobody_can_be_reading_them(store: ClusterStore) -> None:
    publish(store, {"part-0": "one"})
    publish(store, {"part-0": "two"})
    [aside] = Path(store.staging, "replaced").iterdir()
    [old] = aside.iterdir()
    assert (old / "part-0").read_text() == "one"
    assert (old / "_SUCCESS").exists()
    publish(store, {"part-0": "elsewhere"}, OutputTarget("/other", None))
    assert old.exists()
    os.utime(aside, (time.time() - READERS_SECONDS, time.time() - READERS_SECONDS))
    publish(store, {"part-0": "elsewhere"}, OutputTarget("/another", None))
    assert not old.exists()
    assert list(Path(store.staging, "replaced").iterdir()) == []


def test_what_spark_leaves_beside_the_data_is_not_published(store: ClusterStore) -> None:
    noise = {"_SUCCESS": "", "._SUCCESS.crc": "", ".part-0.crc": "", "d=1/.part-0.crc": "", "_temporary/0/x": ""}
    data = {"part-0": "a", "d=1/part-0": "b"}
    publish(store, {**noise, **data})
    assert contents(store) == {**data, "_SUCCESS": ""}
    publish(store, {**noise, **data}, OutputTarget("/other", "_done"))
    assert contents(store, "/other") == {**data, "_done": ""}
    publish(store, {**noise, **data}, OutputTarget("/flagless", None))
    assert contents(store, "/flagless") == data


def test_staging_is_new_each_time_and_on_the_store(store: ClusterStore) -> None:
    seen = set()
    for _ in range(2):
        with kind_of(store).publish(KEY, {"delays": TARGET}) as publication:
            path = Path(publication.staging("delays"))
            assert not path.exists()
            assert path.is_relative_to(store.staging)
            seen.add(path)
    assert len(seen) == 2


def test_an_exception_changes_nothing(store: ClusterStore) -> None:
    publish(store, {"part-0": "old"})
    before = Path(store.path(PATH)).stat().st_ino
    with pytest.raises(ZeroDivisionError), kind_of(store).publish(KEY, {"delays": TARGET}) as publication:
        write(publication, "delays", {"part-0": "new"})
        raise ZeroDivisionError
    assert contents(store) == {"part-0": "old", "_SUCCESS": ""}
    assert Path(store.path(PATH)).stat().st_ino == before
    assert left_in_staging(store) == []


def test_outputs_are_committed_one_by_one(store: ClusterStore) -> None:
    outputs = {"delays": TARGET, "summary": OutputTarget("/summary/2013", None)}
    with kind_of(store).publish(KEY, outputs) as publication:
        for name in outputs:
            write(publication, name, {"part-0": name})
        publication.commit("summary")
        assert contents(store, "/summary/2013") == {"part-0": "summary"}
        assert not Path(store.path(PATH)).exists()
    assert not Path(store.path(PATH)).exists()
    assert left_in_staging(store) == []


def test_a_single_file_can_be_an_instance(store: ClusterStore) -> None:
    target = OutputTarget("/daily/2013-01-01.csv", None)
    for text in ("one", "two!"):
        with kind_of(store).publish(KEY, {"csv": target}) as publication:
            Path(publication.staging("csv")).write_text(text)
            version = publication.commit("csv")
        assert Path(store.path(target.path)).read_text() == text
        assert (version.files, version.bytes) == (1, len(text))


@pytest.mark.parametrize(
    ("permission", "folder", "file"),
    [
        pytest.param("0750", 0o750, 0o640, id="given"),
        pytest.param("444", 0o744, 0o644, id="the owner can always replace it"),
        pytest.param("*", 0o711, 0o600, id="left alone"),
        pytest.param(None, 0o711, 0o600, id="none"),
    ],
)
def test_the_permission_of_the_acl_is_applied(
    store: ClusterStore, permission: str | None, folder: int, file: int
) -> None:
    with kind_of(store).publish(KEY, {"delays": OutputTarget(PATH, "_SUCCESS", permission)}) as publication:
        write(publication, "delays", {"d=1/part-0": "a", "_SUCCESS": ""})
        for path in [staged := Path(publication.staging("delays")), *staged.rglob("*")]:
            path.chmod(0o711 if path.is_dir() else 0o600)
        publication.commit("delays")
    final = Path(store.path(PATH))
    modes = {path.stat().st_mode & 0o777 for path in [final, final / "d=1"]}
    assert modes == {folder}
    assert {path.stat().st_mode & 0o777 for path in [final / "d=1/part-0", final / "_SUCCESS"]} == {file}


def refused(store: ClusterStore, *targets: OutputTarget, files: dict[str, str] | None = None) -> str:
    """The error of a publication that is refused; nothing may stay behind."""
    outputs = {f"out{number}": target for number, target in enumerate(targets)}
    with pytest.raises(StorageError) as raised, kind_of(store).publish(KEY, outputs) as publication:
        for name in outputs:
            write(publication, name, files or {})
            publication.commit(name)
    if Path(store.staging).exists():
        assert left_in_staging(store) == []
    return str(raised.value)


def test_nothing_written_is_an_error(store: ClusterStore) -> None:
    publish(store, {"part-0": "old"})
    message = refused(store, TARGET)
    assert message.startswith(f"cluster 'primary': cannot publish {PATH}: nothing was written to {store.staging}/")
    assert contents(store) == {"part-0": "old", "_SUCCESS": ""}


def test_what_is_in_the_way_is_named(store: ClusterStore) -> None:
    root = Path(store.path(""))
    (root / "a").mkdir(parents=True)
    (root / "a" / "file").write_text("not ours")
    (root / "a" / "link").symlink_to("nothing")
    (root / "a" / "folder").mkdir()
    head = "cluster 'primary': cannot "
    in_the_way = "something that is not a folder is where a folder is needed: move it away"
    assert refused(store, OutputTarget("a/file", "_SUCCESS")) == (
        f"{head}publish a/file: {root}/a/file is a file, but the output is a folder: move it away"
    )
    assert refused(store, OutputTarget("a/file", None), files={"part-0": ""}) == (
        f"{head}publish a/file: {root}/a/file is a file, but the output is a folder: move it away"
    )
    assert refused(store, OutputTarget("a/link", None)) == (
        f"{head}publish a/link: {root}/a/link is a symbolic link: move it away"
    )
    assert refused(store, OutputTarget("a/file/x/y", None)) == f"{head}prepare a/file/x/y: {in_the_way} ({root}/a/file)"
    with (
        pytest.raises(StorageError) as raised,
        kind_of(store).publish(KEY, {"one": OutputTarget("a/folder", None)}) as publication,
    ):
        Path(publication.staging("one")).write_text("x")
        publication.commit("one")
    assert str(raised.value) == (
        f"{head}publish a/folder: {root}/a/folder is a folder, but the output is a single file: move it away"
    )
    with (
        pytest.raises(StorageError) as raised,
        kind_of(store).publish(KEY, {"one": OutputTarget("a/new", "_SUCCESS")}) as publication,
    ):
        Path(publication.staging("one")).write_text("x")
        publication.commit("one")
    assert str(raised.value) == (
        f"{head}publish a/new: the output is a single file, which cannot hold the availability flag _SUCCESS"
    )
    assert (root / "a" / "file").read_text() == "not ours"


def test_a_file_in_place_of_the_staging_location_is_named(store: ClusterStore) -> None:
    staging = Path(store.staging)
    staging.parent.mkdir(parents=True)
    staging.write_text("")
    with pytest.raises(StorageError) as raised, kind_of(store).publish(KEY, {"delays": TARGET}):
        pass
    assert str(raised.value) == (
        f"cluster 'primary': cannot prepare {PATH}: something that is not a folder is where a folder is needed: "
        f"move it away ({staging})"
    )


def test_outputs_stay_inside_the_root(store: ClusterStore, tmp_path: Path) -> None:
    Path(store.path("")).mkdir(parents=True)
    Path(store.path("out")).symlink_to(tmp_path)
    assert refused(store, OutputTarget("/out", "_SUCCESS")) == (
        f"cluster 'primary': '/out' leaves the root file://{tmp_path}/data/primary by a symbolic link"
    )
    with pytest.raises(StorageError, match=r"^cluster 'primary': '/a/\.\./\.\./b' leaves the root file://"):
        kind_of(store).publish(KEY, {"delays": OutputTarget("/a/../../b", None)})


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        pytest.param(["/a", "/a"], "output 'out0' ({root}/a) must not be within output 'out1' ({root}/a)", id="twice"),
        pytest.param(["/a", "/a/b"], "output 'out1' ({root}/a/b) must not be within output 'out0' ({root}/a)", id="in"),
        pytest.param(
            ["/.falcon/staging/x"],
            "output 'out0' ({root}/.falcon/staging/x) must not be within the staging location ({root}/.falcon/staging)",
            id="in staging",
        ),
        pytest.param(
            ["/a", "/link/b"], "output 'out1' ({root}/a/b) must not be within output 'out0' ({root}/a)", id="linked"
        ),
        pytest.param(
            ["/"], "the staging location ({root}/.falcon/staging) must not be within output 'out0' ({root})", id="root"
        ),
    ],
)
def test_outputs_lie_apart(store: ClusterStore, paths: list[str], message: str) -> None:
    Path(store.path("a")).mkdir(parents=True)
    Path(store.path("link")).symlink_to("a")
    outputs = [OutputTarget(path, None) for path in paths]
    expected = f"{KEY}: {message.format(root=store.path(''))} on cluster 'primary'"
    assert refused(store, *outputs) == expected


def test_another_run_is_kept_out_until_it_is_killed(store: ClusterStore) -> None:
    publish(store, {"part-0": "old"})
    ready, told = os.pipe()

    def hold() -> None:
        with kind_of(store).publish("the other", {"delays": TARGET}) as publication:
            write(publication, "delays", {"part-0": "half"})
            os.write(told, b"x")
            signal.pause()

    child = forked(hold)
    os.read(ready, 1)
    try:
        outputs = {"same": TARGET, "more": OutputTarget("/x", None)}
        with pytest.raises(StorageError) as raised, kind_of(store).publish(KEY, outputs):
            pass
        publish(store, {"part-0": "other hour"}, OutputTarget("/delays/2013/01/01/01", "_SUCCESS"))
        assert len(left_in_staging(store)) == 2  # the other run's attempt and lock
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert str(raised.value) == (
        f"{KEY}: {PATH} on cluster 'primary' is being written by another run: wait until it has ended, or end it, and "
        "run this again"
    )
    publish(store, {"part-0": "new"})
    assert contents(store) == {"part-0": "new", "_SUCCESS": ""}
    assert left_in_staging(store) == []


def test_the_lock_is_of_the_instance_however_its_path_is_spelt(store: ClusterStore) -> None:
    Path(store.path("delays")).mkdir(parents=True)
    Path(store.path("alias")).symlink_to("delays")
    with (
        kind_of(store).publish("the other", {"delays": OutputTarget("/delays/x", None)}),
        pytest.raises(StorageError, match=r"alias/x on cluster 'primary' is being written by another run"),
        kind_of(store).publish(KEY, {"delays": OutputTarget("alias/x", None)}),
    ):
        pytest.fail("entered")


def test_late_tasks_of_a_killed_run_do_not_reach_the_next_one(store: ClusterStore) -> None:
    with kind_of(store).publish(KEY, {"delays": TARGET}) as publication:
        killed = Path(publication.staging("delays"))
    with kind_of(store).publish(KEY, {"delays": TARGET}) as publication:
        killed.mkdir(parents=True)
        (killed / "part-9").write_text("late")
        write(publication, "delays", {"part-0": "new"})
        publication.commit("delays")
    assert contents(store) == {"part-0": "new", "_SUCCESS": ""}
    assert left_in_staging(store) == []


def test_what_is_written_after_the_commit_is_not_published(store: ClusterStore) -> None:
    with kind_of(store).publish(KEY, {"delays": TARGET}) as publication:
        write(publication, "delays", {"part-0": "new"})
        publication.commit("delays")
        write(publication, "delays", {"part-9": "late"})
    assert contents(store) == {"part-0": "new", "_SUCCESS": ""}
    assert left_in_staging(store) == []


def whole_machine(**locations: str) -> ClusterStore:
    interfaces = {"write": {"endpoint": "file:///"}, "execute": {"endpoint": "local[2]"}}
    return ClusterStore(make_cluster(interfaces=interfaces, locations=locations), Path("/nowhere"), {})


def test_staging_on_another_file_system_is_found_out_before_anything_is_computed(tmp_path: Path) -> None:
    with TemporaryDirectory(dir="/dev/shm") as elsewhere:
        store = whole_machine(staging=f"{elsewhere}/staging", working=f"{elsewhere}/working")
        with (
            pytest.raises(StorageError) as raised,
            kind_of(store).publish(KEY, {"delays": OutputTarget(f"{tmp_path}/a/b", None)}),
        ):
            pytest.fail("entered")
        assert str(raised.value).startswith(
            f"cluster 'primary': cannot prepare {tmp_path}/a/b: the staging location is on another file system than "
            "the data, so nothing can be moved in one step: set locations.staging of the cluster to a folder on the "
            f"file system of the data ({elsewhere}/staging/"
        )
        assert left_in_staging(store) == []


def test_a_full_disk_is_said_in_a_sentence() -> None:
    with (
        pytest.raises(StorageError) as raised,
        explained("primary", "publish /x"),
        Path("/dev/full").open("wb", buffering=0) as file,
    ):
        file.write(b"x")
    assert str(raised.value) == (
        "cluster 'primary': cannot publish /x: the disk is full: free some space and run it again"
    )
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENOSPC


def test_credentials_that_a_store_refuses_are_said_in_a_sentence() -> None:
    with pytest.raises(StorageError) as raised, explained("lake", "look at /x"):
        raise PermissionError("The AWS Access Key Id you provided does not exist in our records.")  # as s3fs does
    assert str(raised.value).startswith(
        "cluster 'lake': cannot look at /x: the store refuses access with these credentials: "
    )


@pytest.mark.parametrize(
    "target", [pytest.param(TARGET, id="folder"), pytest.param(OutputTarget("/daily.csv", None), id="single file")]
)
def test_what_is_written_when_the_disk_gets_full_is_published_and_the_old_instance_goes(
    store: ClusterStore, target: OutputTarget
) -> None:
    """Else it would be in its place and recorded as failed, and what it replaced would never be removed."""

    def publish_text(text: str, around: Callable[[Callable[[], object]], object]) -> None:
        with kind_of(store).publish(KEY, {"delays": target}) as publication:
            staged = Path(publication.staging("delays"))
            if target.flag:
                staged.mkdir()
                (staged / target.flag).touch()
            (staged / "part-0" if target.flag else staged).write_text(text)
            around(lambda: publication.commit("delays"))

    publish_text("old", lambda commit: commit())
    publish_text("new", on_a_full_disk)
    final = Path(store.path(target.path))
    assert (final / "part-0" if target.flag else final).read_text() == "new"
    assert left_in_staging(store) == []
    [aside] = Path(store.staging, "replaced").iterdir()
    assert [path.read_text() for path in aside.rglob("*") if path.is_file() and path.name != "_SUCCESS"] == ["old"]
    os.utime(aside, (0, 0))
    with pytest.raises(ZeroDivisionError), kind_of(store).publish(KEY, {"delays": OutputTarget("/other", None)}):
        assert list(Path(store.staging, "replaced").iterdir()) == []  # before it needs space
        raise ZeroDivisionError


def test_an_output_on_an_object_store_needs_a_flag() -> None:
    interfaces: dict[str, Any] = {"write": {"endpoint": "memory://lake"}, "execute": {"endpoint": "local[2]"}}
    store = ClusterStore(make_cluster(interfaces=interfaces), Path("/nowhere"), {})
    with pytest.raises(StorageError) as raised:
        kind_of(store).publish(KEY, {"delays": OutputTarget("/delays", None)})
    assert str(raised.value) == (
        f"{KEY}: output 'delays' goes to an object store (ClusterStore('primary', memory://lake)), where the flag says "
        "what is complete: declare availability_flag for its feed"
    )
