"""Copies to, from and between file systems, S3 and HDFS, killed as well; and what retention takes away from HDFS."""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.instances.stored_instances import stored_instances
from tests.builders import make_cluster
from tests.copy_sandbox import FLAG, PATH, CopySandbox, some_files
from tests.hdfs_server import Hdfs, on_hdfs
from tests.processes import forked
from tests.s3_server import ENVIRON, lake
from tests.storage.eviction.test_s3_evicting import ARCHIVE, OLD, OLDER, YOUNG, evicted, feed_on, keys, land

pytestmark = pytest.mark.soak
KILLS = 12
Declared = Callable[[str], dict[str, Any]]


@pytest.fixture
def declared(hdfs: Hdfs, s3: str, tmp_path: Path) -> Declared:
    """What a cluster declares that is empty and lies on a store of that kind."""

    def declare(kind: str) -> dict[str, Any]:
        name = f"copies-{uuid.uuid4().hex[:12]}"
        if kind == "hdfs":
            return on_hdfs(hdfs, name, root=name)
        if kind == "s3":
            there = lake(s3, name, bucket=name)
            ClusterStore(make_cluster(**there), tmp_path, ENVIRON).fs.mkdir(name)
            return there
        return {"name": name, "interfaces": {"write": {"endpoint": name}, "execute": {"endpoint": "local[2]"}}}

    return declare


@pytest.mark.parametrize(
    ("source", "target"), [("file", "hdfs"), ("hdfs", "file"), ("s3", "hdfs"), ("hdfs", "s3"), ("hdfs", "hdfs")]
)
def test_what_is_copied_is_kept_up_to_date(declared: Declared, tmp_path: Path, source: str, target: str) -> None:
    copies = CopySandbox(tmp_path, ENVIRON, target=declared(target), source=declared(source))
    files = {**some_files(), "E U%ü+'/a b": b"odd", "large": os.urandom(20 << 20)}
    copies.write(files)
    assert copies.replicate().files_copied == len(files)
    assert (copies.read(), copies.is_complete()) == (files, True)
    assert not copies.replicate().to_publish
    version = fingerprint(copies.store(), PATH, FLAG)
    del files["part-00002.json"]
    files |= {"part-00004.json": b"changed", "AA/new": b"new"}
    copies.write(files)
    copies.copy()
    assert copies.publish(permission="0750") != version
    assert sorted(report.name for report in copies.reports if report.outcome == "copied") == [
        "AA/new",
        "part-00004.json",
    ]
    assert copies.read() == files
    assert not copies.replicate().to_publish


def test_what_is_copied_has_the_permission_of_its_feed(declared: Declared, tmp_path: Path) -> None:
    copies = CopySandbox(tmp_path, ENVIRON, target=declared("hdfs"))
    copies.write({"a": b"1", "b/c": b"2"})
    copies.copy(permission="0750")
    copies.publish(permission="0750")
    fs, place = copies.store().fs, copies.store().path(PATH)
    modes = {
        name[len(place) :]: entry["permission"] for name, entry in fs.find(place, withdirs=True, detail=True).items()
    }
    assert modes == {"/a": "640", "/b": "750", "/b/c": "640", "/_SUCCESS": "640"}


def test_what_is_copied_from_hdfs_to_hdfs_keeps_what_is_to_be_preserved(
    hdfs: Hdfs, declared: Declared, tmp_path: Path
) -> None:
    superuser = on_hdfs(hdfs)["storage_options"]
    source, target = declared("hdfs"), declared("hdfs")
    copies = CopySandbox(tmp_path, ENVIRON, target=target, source=source)
    assert superuser == source["storage_options"] == target["storage_options"]
    copies.write({"a": b"1", "b/c": b"2"})
    here, there = (f"/{one['name']}{PATH}/a" for one in (source, target))
    assert hdfs.ask("SETOWNER", here, "put", owner="etl", group="analysts").ok
    assert hdfs.ask("SETPERMISSION", here, "put", permission="640").ok
    assert hdfs.ask("SETTIMES", here, "put", modificationtime=1_000_000_000_500).ok

    def told(path: str) -> tuple[Any, ...]:
        status = hdfs.ask("GETFILESTATUS", path).json()["FileStatus"]
        return tuple(status[one] for one in ("owner", "group", "permission", "modificationTime"))

    kept = ReplicationOptions(preserve_permission=True, preserve_times=True, preserve_user=True, preserve_group=True)
    copies.replicate(kept)
    assert told(there) == ("etl", "analysts", "640", 1_000_000_000_500)
    assert not copies.replicate(kept).to_publish
    copies.replicate(ReplicationOptions(overwrite=True))
    assert told(there)[:3] == ("root", "hdfs", "644")


def test_a_plain_user_cannot_give_files_away(hdfs: Hdfs, declared: Declared, tmp_path: Path) -> None:
    source, target = declared("hdfs"), declared("hdfs")
    target = {**target, "storage_options": {**target["storage_options"], "user": "etl"}}
    assert hdfs.ask("MKDIRS", f"/{target['name']}", "put").ok
    assert hdfs.ask("SETOWNER", f"/{target['name']}", "put", owner="etl").ok
    copies = CopySandbox(tmp_path, ENVIRON, target=target, source=source)
    copies.write({"a": b"1"})
    with pytest.raises(StorageError, match=r"a: cannot give it to root: HDFS lets only its superuser give a file to"):
        copies.copy(ReplicationOptions(preserve_user=True))


@pytest.mark.parametrize(("source", "target"), [("file", "hdfs"), ("hdfs", "file")])
def test_nothing_is_preserved_between_kinds(declared: Declared, tmp_path: Path, source: str, target: str) -> None:
    copies = CopySandbox(tmp_path, ENVIRON, target=declared(target), source=declared(source))
    copies.write({"a": b"1"})
    with pytest.raises(StorageError, match="preserveUser: attributes of files are preserved from file:// to file://"):
        copies.copy(ReplicationOptions(preserve_user=True))


def test_copies_that_are_killed_at_any_request_go_on(hdfs: Hdfs, declared: Declared, tmp_path: Path) -> None:
    old = {"same": b"same", "changed": b"before", "AA/gone": b"gone"}
    new = {"same": b"same", "changed": b"afterwards", "AA/new": b"new", "more": b"and more"}
    seen: Counter[str] = Counter()
    resumed = steps = 0
    for number in range(-1, KILLS):
        there = declared("hdfs")
        copies = CopySandbox(tmp_path / str(number), ENVIRON, target=there)
        copies.write(old)
        copies.replicate()
        copies.write(new)
        if number < 0:
            steps = requests_of(copies.replicate)
            continue
        assert killed_at(copies, 1 + number * steps // KILLS)
        state = plain(hdfs, there["name"])
        assert state in (None, old, new)
        seen["none" if state is None else "old" if state == old else "new"] += 1
        copies.replicate()
        resumed += sum(report.outcome == "resumed" for report in copies.reports)
        assert plain(hdfs, there["name"]) == new
        assert not copies.replicate().to_publish
    print(steps, "requests", seen, resumed)  # noqa: T201 - said on failure
    assert seen["old"] and seen["new"] and resumed


@pytest.mark.parametrize("target", ["itself", "hdfs", "file", "s3"])
def test_what_is_archived_goes_whole(declared: Declared, tmp_path: Path, target: str) -> None:
    store = ClusterStore(make_cluster(**declared("hdfs")), tmp_path, ENVIRON)
    other = store if target == "itself" else ClusterStore(make_cluster(**declared(target)), tmp_path, ENVIRON)
    feed = feed_on(store, ARCHIVE | ({} if target == "itself" else {"archive_cluster": other.cluster.name}))
    land(store, feed, OLDER, OLD, YOUNG)
    gone = evicted(store, feed, other)
    assert [(one.nominal, one.files, one.bytes, one.error) for one in gone] == [(OLDER, 3, 8, None), (OLD, 3, 8, None)]
    assert [one.nominal for one in stored_instances(store, feed)] == [YOUNG]
    archived = {name for name in keys(other) if name.startswith("old/")}
    names = ("part-0", "carrier=US/part-1", "_SUCCESS")
    assert archived == {
        f"old/2013/{day}05{end}" for day in ("0101", "0102") for end in (".stats", *map("/{}".format, names))
    }
    assert evicted(store, feed, other) == []


def requests_of(work: Callable[[], object]) -> int:
    """How many requests to HDFS it takes."""
    numbers, request = count(1), requests.Session.request
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "request", lambda *args, **asked: next(numbers) and request(*args, **asked))
        work()
    return next(numbers) - 1


def killed_at(copies: CopySandbox, step: int) -> bool:
    """Replicates in a process that is killed at that request to HDFS; whether it was."""

    def dying() -> None:
        numbers, request = count(1), requests.Session.request

        def asking(*args: Any, **asked: Any) -> requests.Response:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return request(*args, **asked)

        WebHdfsFileSystem.clear_instance_cache()  # connections of its own, not those of its parent
        requests.Session.request = asking  # type: ignore[method-assign]
        copies.replicate()

    return bool(os.waitpid(forked(dying), 0)[1] == signal.SIGKILL)


def plain(hdfs: Hdfs, root: str) -> dict[str, bytes] | None:
    """What a plain client of WebHDFS finds of the instance; None: it is not complete."""
    if hdfs.ask("GETFILESTATUS", f"/{root}{PATH}/{FLAG}").status_code != requests.codes.ok:
        return None
    found, folders = dict[str, bytes](), [""]
    while folders:
        folder = folders.pop()
        for one in hdfs.ask("LISTSTATUS", f"/{root}{PATH}/{folder}").json()["FileStatuses"]["FileStatus"]:
            name = f"{folder}{one['pathSuffix']}"
            if one["type"] == "DIRECTORY":
                folders.append(f"{name}/")
            elif name != FLAG:
                found[name] = hdfs.ask("OPEN", f"/{root}{PATH}/{name}").content
    return found
