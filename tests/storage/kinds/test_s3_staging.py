"""Instances of a real S3 server for a Spark that cannot reach it: inputs are copied here, outputs are copied there."""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files import path_lock
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.objects import conditional_writes, ownership
from falcon_assets.storage.kinds.objects.ownership import Ownership
from falcon_assets.storage.kinds.objects.written import LocalWritten
from falcon_assets.storage.landing import collect
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import VALIDITY, make_cluster, make_feed
from tests.processes import forked
from tests.s3_server import ENVIRON, lake, tell_requests
from tests.waiting import wait_until

FLAG = "_SUCCESS"
PATH = "/delays/2013/01/01/00"
TARGET = OutputTarget(PATH, FLAG)
FILES = {"part-0": b"abc", "carrier=US/part-1": b"de", "_temporary/0": b"x", ".part-0.crc": b"y"}
DATA = {"part-0": b"abc", "carrier=US/part-1": b"de"}


@pytest.fixture
def store(s3: str, request: pytest.FixtureRequest, tmp_path: Path) -> ClusterStore:
    bucket = f"staged-{abs(hash(request.node.name))}"
    found = ClusterStore(make_cluster(**lake(s3, bucket=bucket)), tmp_path, ENVIRON)
    found.fs.mkdir(bucket)
    return found


@pytest.fixture
def staging(tmp_path: Path) -> LocalStaging:
    return LocalStaging(tmp_path / "working" / "staged")


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "working" / "staged").iterdir())


def land(store: ClusterStore, files: dict[str, bytes], path: str = PATH) -> None:
    for name, content in files.items():
        store.fs.pipe_file(f"{store.path(path)}/{name}", content)


def files_in(url: str) -> dict[str, bytes]:
    folder = Path(url.removeprefix("file://"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def found(store: ClusterStore) -> dict[str, bytes]:
    final = store.path(TARGET.path)
    return {str(name)[len(final) + 1 :]: store.fs.cat_file(name) for name in store.fs.find(final)}


def publish(store: ClusterStore, staging: LocalStaging, files: dict[str, bytes]) -> Any:
    with kind_of(store).publish("hourly", {"delays": TARGET}, staging) as publication:
        for name, content in files.items():
            file = Path(publication.staging("delays"), name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return publication.commit("delays")


def test_an_instance_is_read_from_a_copy_with_its_version(
    store: ClusterStore, staging: LocalStaging, tmp_path: Path
) -> None:
    land(store, {**FILES, FLAG: b"", "../../../outside": b"z"})
    with kind_of(store).reading(PATH, FLAG, staging) as read:
        assert read.version == fingerprint(store, PATH, FLAG)
        (folder,) = read.folders
        assert files_in(folder.url) == DATA
        assert folder.files.sizes == folder.files.listed_now() == {"part-0": 3, "carrier=US/part-1": 2}
    assert left(tmp_path) == []


def test_an_instance_that_is_one_object_keeps_its_name(store: ClusterStore, staging: LocalStaging) -> None:
    store.fs.pipe_file(store.path("/day/2013-01-01.json.gz"), b"packed")
    with kind_of(store).reading("/day/2013-01-01.json.gz", None, staging) as read:
        (folder,) = read.folders
        file = Path(folder.url.removeprefix("file://"))
        assert (file.name, file.read_bytes()) == ("2013-01-01.json.gz", b"packed")


def test_what_is_not_whole_is_not_read(store: ClusterStore, staging: LocalStaging, tmp_path: Path) -> None:
    kind = kind_of(store)
    with pytest.raises(StorageError, match=f"there is nothing at {PATH}"), kind.reading(PATH, FLAG, staging):
        pass
    land(store, DATA)
    with pytest.raises(StorageError, match=f"{PATH} is not complete any more"), kind.reading(PATH, FLAG, staging):
        pass
    land(store, {FLAG: b"", "a//b": b"x"})
    with pytest.raises(StorageError, match="no folder can hold a//b, which has two slashes"):
        kind.reading(PATH, FLAG, staging).__enter__()
    assert left(tmp_path) == []


@pytest.mark.parametrize("changes", ["part-0", "part-1", "always"])
def test_what_changes_while_it_is_copied_is_copied_again(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch, changes: str
) -> None:
    """Another writer makes part-0 smaller at the moment in which that or another one is read."""
    land(store, {**DATA, FLAG: b""})
    read, changed = store.fs.cat_file, list[str]()

    def reading(path: str, **part: int) -> Any:
        if changes == "always" or (path.endswith(changes) and not changed):
            changed.append(path)
            land(store, {"part-0": b"x" * len(changed)})
        return read(path, **part)

    monkeypatch.setattr(store.fs, "cat_file", reading)
    if changes == "always":
        with pytest.raises(StorageError, match=f"{PATH} keeps changing"), kind_of(store).reading(PATH, FLAG, staging):
            pass
        return
    with kind_of(store).reading(PATH, FLAG, staging) as instance:
        assert files_in(instance.folders[0].url) == {**DATA, "part-0": b"x"}
        assert instance.version == fingerprint(store, PATH, FLAG)


def test_an_output_replaces_the_one_before(store: ClusterStore, staging: LocalStaging, tmp_path: Path) -> None:
    version = publish(store, staging, {**FILES, FLAG: b""})
    assert found(store) == {**DATA, FLAG: b""}
    assert version == fingerprint(store, PATH, FLAG)
    assert publish(store, staging, {"part-2": b""}) != version
    assert found(store) == {"part-2": b"", FLAG: b""}
    assert left(tmp_path) == store.fs.find(store.staging) == []


def test_nothing_written_is_no_output(store: ClusterStore, staging: LocalStaging) -> None:
    publish(store, staging, DATA)
    with pytest.raises(StorageError, match=f"cannot publish {PATH}: nothing was written to /"):
        publish(store, staging, {})
    assert found(store) == {**DATA, FLAG: b""}


def test_what_a_killed_process_staged_goes_with_the_next_one(staging: LocalStaging, tmp_path: Path) -> None:
    def dies() -> None:
        with staging.folder() as folder:
            (folder / "data").write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)

    assert os.WIFSIGNALED(os.waitpid(forked(dies), 0)[1])
    assert {path.suffix for path in left(tmp_path)} == {"", ".lock"}
    with staging.folder() as mine, staging.folder() as other:
        assert {path for path in left(tmp_path) if path.is_dir()} == {mine, other}
    assert left(tmp_path) == []


def test_a_folder_is_locked_although_others_look_at_it_when_it_is_made(
    staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They look for what was left, and for a moment have the lock of a folder that is not there yet."""
    lock, refused = path_lock.lock_descriptor, [True]
    monkeypatch.setattr(
        path_lock, "lock_descriptor", lambda *one, **how: not (refused and refused.pop()) and lock(*one, **how)
    )
    with staging.folder() as mine, staging.folder():
        assert mine.exists()


def generation(number: int) -> dict[str, bytes]:
    """Names of its own for each, as Spark's; some in sub-partitions."""
    return {f"carrier={part % 2}/part-{part}-{number}": b"%d" % number for part in range(2 + number % 2)}


def seen(files: dict[str, bytes]) -> int:
    """The generation of the files, which have to be all of one."""
    (number,) = {int(content) for name, content in files.items() if name != FLAG}
    assert files.keys() - {FLAG} == generation(number).keys()
    return number


def by_flag(store: ClusterStore) -> int | None:
    files = found(store)
    return seen(files) if FLAG in files else None


@pytest.mark.soak
@pytest.mark.parametrize("old", [None, 1], ids=["for the first time", "again"])
def test_killed_at_every_request(store: ClusterStore, tmp_path: Path, old: int | None) -> None:
    cluster, outcomes = store.cluster, Counter[int | None]()
    staging = LocalStaging(tmp_path / "working" / "staged")

    def dying(step: int) -> None:
        fresh, numbers = ClusterStore(cluster, tmp_path, ENVIRON), count(1)

        def kill(method: str) -> None:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        tell_requests(fresh.fs, kill)
        publish(fresh, staging, generation(2))

    for step in count(1):
        store.files.remove(store.fs.find(store.path("")))
        if old:
            publish(store, staging, generation(old))
        if not os.waitpid(forked(partial(dying, step)), 0)[1]:
            break
        outcomes[by_flag(store)] += 1
        publish(store, staging, generation(3))
        assert by_flag(store) == 3
        assert left(tmp_path) == store.fs.find(store.staging) == []
    assert by_flag(store) == 2
    assert outcomes.keys() == {old, None, 2}
    assert step > 10


@pytest.mark.soak
def test_who_reads_while_it_is_replaced_reads_a_whole_one(store: ClusterStore, staging: LocalStaging) -> None:
    publish(store, staging, generation(1))
    ended, read = threading.Event(), Counter[int]()

    def reads() -> None:
        kind = kind_of(ClusterStore(store.cluster, Path("/"), ENVIRON))
        while not ended.is_set():
            try:
                with kind.reading(PATH, FLAG, staging) as instance:
                    read[seen(files_in(instance.folders[0].url))] += 1
            except StorageError as error:
                assert re.search("is not complete any more|keeps changing|nothing at", str(error)), error

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(reads) for _ in range(2)]
        try:
            numbers = count(2)
            wait_until(lambda: publish(store, staging, generation(next(numbers))) and len(read) > 5, 120, "reads")
        finally:
            ended.set()
        for reader in readers:
            reader.result()


def test_what_somebody_removes_meanwhile_is_not_published(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring = LocalWritten.bring

    def brought_and_gone(self: LocalWritten, name: str, files: Iterable[str], final: str, check: Any) -> None:
        bring(self, name, files, final, check)
        store.fs.rm_file(f"{final}/{min(DATA)}")

    monkeypatch.setattr(LocalWritten, "bring", brought_and_gone)
    with pytest.raises(StorageError, match=f"{min(DATA)} is not there any more: somebody removed it$"):
        publish(store, staging, DATA)
    assert FLAG not in found(store)


@pytest.mark.parametrize("conditions", [True, False], ids=["conditional writes", "without"])
def test_a_run_that_was_overtaken_stops(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch, conditions: bool
) -> None:
    known = conditional_writes._found
    assert conditional_writes.conditional_writes(store)
    if not conditions:
        monkeypatch.setitem(known, next(reversed(known)), None)
    with kind_of(store).publish("first", {"delays": TARGET}, staging) as slow:
        Path(slow.staging("delays")).mkdir()
        Path(slow.staging("delays"), "a").touch()
        publish(store, staging, {"b": b""})
        with pytest.raises(StorageError) as raised:
            slow.commit("delays")
    assert str(raised.value) == f"first: {PATH} is being written by another run meanwhile"
    assert found(store) == {"b": b"", FLAG: b""}
    assert store.fs.find(store.staging) == []


def require_one_is_told(store: ClusterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs that take an output at the same moment, on a store that has conditional writes."""
    first, second, third = (Ownership(store, f"{store.staging}/x", name) for name in ("first", "second", "third"))
    assert not first.take()
    look = store.fs.info

    def another_comes(asked: str, **options: Any) -> Any:
        """Between the look of the second one at the object, and its writing."""
        told = look(asked, **options)
        monkeypatch.undo()
        assert third.take()
        return told

    monkeypatch.setattr(store.fs, "info", another_comes)
    with pytest.raises(StorageError, match=r"^second is being written by another run meanwhile$"):
        second.take()
    with pytest.raises(StorageError, match=r"^first is being written by another run meanwhile$"):
        first.begin()
    third.begin()
    third.give_back()
    assert not store.fs.exists(third.path)


def test_of_two_runs_at_the_same_moment_one_is_told(store: ClusterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    require_one_is_told(store, monkeypatch)


@pytest.mark.parametrize("asks", ["IfNoneMatch", "IfMatch"])
def test_a_store_that_does_not_know_conditions_has_none(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    """Others that speak S3's protocol, none of which can be had here, answer so; the driver makes this error of it."""
    write = store.fs.pipe_file

    def without(path: str, content: bytes, **conditions: str) -> Any:
        if asks in conditions:
            raise OSError(errno.ENOSYS, "A header you provided implies functionality that is not implemented")
        return write(path, content, **conditions)

    monkeypatch.setattr(conditional_writes, "_found", {})
    monkeypatch.setattr(store.fs, "pipe_file", without)
    assert conditional_writes.conditional_writes(store) is None
    publish(store, staging, DATA)
    assert found(store) == {**DATA, FLAG: b""}
    assert store.fs.find(store.staging) == []


def requests(store: ClusterStore, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Counter[str]:
    """What the store is asked while ``work`` is done."""
    asked: list[str] = []
    with monkeypatch.context() as patch:
        for name in ("_call_s3", "call_s3"):
            patch.setattr(store.fs, name, getattr(store.fs, name))  # as it is now, afterwards
        tell_requests(store.fs, asked.append)
        work()
    return Counter(asked)


def test_how_often_the_store_is_asked(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "_CHECK_SECONDS", 3600)  # a slow machine asks more often whether it was overtaken
    kind, feed, counted = kind_of(store), make_feed(), partial(requests, store, monkeypatch)
    publish(store, staging, DATA)  # asks what the store can do, once
    assert counted(lambda: kind.is_available(feed, PATH)) == {"head_object": 1}
    assert counted(lambda: kind.listing(PATH, FLAG)) == {"list_objects_v2": 1}
    assert counted(lambda: kind.version(PATH, FLAG)) == {"list_objects_v2": 1}

    def read() -> None:
        with kind.reading(PATH, FLAG, staging):
            pass

    assert counted(read) == {"list_objects_v2": 2, "head_object": 1, "get_object": len(DATA)}
    # The flag and the run's name go and come, each file is written and verified; listed is once: old files and new.
    assert counted(lambda: publish(store, staging, DATA)) == {
        "put_object": len(DATA) + 3,
        "head_object": len(DATA) + 1,
        "delete_object": 2,
        "list_objects_v2": 1,
    }


def test_how_often_a_tick_of_the_collector_asks(store: ClusterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each folder that holds instances, once for each that may be late, and five times for a new one."""
    on = [{"name": "lake", "validity": VALIDITY}]
    kind, feed = kind_of(store), make_feed(clusters=on, locations={"data": "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"})
    first = parse_instant("2013-01-01T00:00Z")
    days, hours = 3, 4
    for day, hour in product(range(days), range(hours)):
        land(store, {"part-0": b"x", FLAG: b""}, f"/raw/2013-01-0{day + 1}/0{hour}")

    def tick(known: Mapping[datetime, str], late_from: datetime | None) -> tuple[Counter[str], dict[datetime, str]]:
        windows, found = [(first, first + timedelta(days=days, hours=-1))], dict[datetime, str]()

        def collected() -> None:
            found.update((one.instance, one.signature) for one in collect(kind, feed, windows, known, late_from))

        asked = requests(store, monkeypatch, collected)
        return asked, found

    asked, known = tick({}, None)
    new = days * hours
    assert (asked, len(known)) == ({"list_objects_v2": days + 3 * new, "head_object": 2 * new}, new)
    assert tick(known, None) == ({"list_objects_v2": days}, {})
    late = first + timedelta(days=1)
    assert tick(known, late) == ({"list_objects_v2": days + (days - 1) * hours}, {})
