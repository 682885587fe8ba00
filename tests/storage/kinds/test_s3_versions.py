"""What publications on a real S3 server replace stays in a folder of its own where the feed says so."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredLocation, StoredVersion, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import publish_copies
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.eviction.evicting import archive, evict_versions
from falcon_assets.storage.instances.version_pointer import VersionPointer
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.objects import conditional_writes, ownership
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget, output_target
from tests.builders import make_cluster, make_feed
from tests.processes import forked
from tests.s3_server import ENVIRON, tell_requests
from tests.storage.kinds.test_s3_staging import files_in, generation, land, requests, seen, staging, store

__all__ = ["staging", "store"]
FLAG = "_SUCCESS"
FEED = make_feed(
    locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"},
    frequency="days(1)",
    availability_flag=FLAG,
    versions={"keep": 3},
    clusters=[{"name": "lake", "validity": {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}}],
)
DAY, NEXT = (parse_instant(f"2013-01-0{day}T00:00Z") for day in (1, 2))
PATH = "/raw/2013/01/01"
TARGET = output_target(FEED, DAY, PATH)


def write(folder: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def publish(store: ClusterStore, staging: LocalStaging, number: int, target: OutputTarget = TARGET) -> str:
    """Gives the version of that generation."""
    with kind_of(store).publish("daily", {"out": target}, staging) as publication:
        write(publication.staging("out"), generation(number))
        return publication.commit("out").version


def present(store: ClusterStore, staging: LocalStaging) -> int:
    """The generation that readers get."""
    with kind_of(store).reading(PATH, FLAG, staging) as read:
        return seen(files_in(read.folders[0].url))


def kept(store: ClusterStore) -> set[str]:
    return {one.version for one in kind_of(store).kept_versions(FEED.name)}


def names(store: ClusterStore, path: str = "") -> set[str]:
    base = store.path(path)
    store.files.refresh()
    return {str(name)[len(base) + 1 :] for name in store.fs.find(base)}


def folders(store: ClusterStore) -> set[str]:
    """The folders of versions that are there."""
    return {"/".join(name.split("/")[:2]) for name in names(store, PATH) if name.startswith("_versions/")}


def pointer(store: ClusterStore) -> VersionPointer:
    found = VersionPointer.decode(store.fs.cat_file(f"{store.path(PATH)}/{FLAG}"))
    assert found
    return found


def evicted(store: ClusterStore, *found: StoredVersion) -> list[str]:
    """Why those versions could not be evicted."""
    verdicts = [VersionVerdict(one, None, True, "") for one in found]
    done = evict_versions(store, InstancePaths(FEED, store.cluster), verdicts)
    return [str(error) for _, error in done if error]


def test_what_is_replaced_is_kept_as_it_was(store: ClusterStore, staging: LocalStaging) -> None:
    one, two, three = (publish(store, staging, number) for number in (1, 2, 3))
    kind = kind_of(store)
    assert present(store, staging) == 3
    assert kind.version(PATH, FLAG).version == three
    assert kept(store) == {one, two}
    assert kind.kept_versions(FEED.name, DAY) == kind.kept_versions(FEED.name)
    assert kind.kept_versions(FEED.name, NEXT) == kind.kept_versions("raw") == []
    for version in kind.kept_versions(FEED.name):
        assert kind.is_available(FEED, version.path)
        with kind.reading(version.path, FLAG, staging) as read:
            assert seen(files_in(read.folders[0].url)) == (1 if version.version == one else 2)
            assert read.version.version == version.version
    assert (publish(store, staging, 3), kept(store)) == (three, {one, two})
    assert (publish(store, staging, 1), kept(store)) == (one, {two, three})
    assert len(folders(store)) == 3


def test_whoever_reads_the_flag_finds_the_files(store: ClusterStore, staging: LocalStaging) -> None:
    """As the guide says it, for programs that know nothing of us."""
    publish(store, staging, 1)
    publish(store, staging, 2)
    said = json.loads(store.fs.cat_file(f"{store.path(PATH)}/{FLAG}"))
    assert names(store, f"{PATH}/{said['folder']}") == {FLAG, *generation(2)}


def test_no_version_is_an_instance(store: ClusterStore, staging: LocalStaging) -> None:
    publish(store, staging, 1)
    publish(store, staging, 2)
    kind = kind_of(store)
    assert kind.is_available(FEED, PATH)
    assert list(kind.instances(FEED, [(DAY, NEXT)])) == [(DAY, PATH)]
    assert [one.nominal for one in kind.stored(FEED)] == [DAY]


def test_another_version_is_late_data(store: ClusterStore, staging: LocalStaging) -> None:
    publish(store, staging, 1)
    kind = kind_of(store)
    before = kind.listing(PATH, FLAG)
    assert kind.listing(PATH, FLAG) == before
    publish(store, staging, 2)
    assert kind.listing(PATH, FLAG).signature != before.signature


def test_a_version_is_restored_by_one_write(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = publish(store, staging, 1), publish(store, staging, 2)
    kind, before = kind_of(store), names(store, PATH)
    assert kind.restore("raw", TARGET, one, dry_run=True)[1]
    assert present(store, staging) == 2
    done, is_new = kind.restore("raw", TARGET, one)
    assert (done.version, is_new, present(store, staging), kept(store)) == (one, True, 1, {two})
    assert names(store, PATH) == before
    assert kind.restore("raw", TARGET, one)[1] is False
    with pytest.raises(
        StorageError, match=r"^raw: /raw/2013/01/01: there is no version v: it was not kept, or is removed"
    ):
        kind.restore("raw", TARGET, "v")
    land(store, {"part": b"x"}, f"{PATH}/{pointer(store).kept[two]}")
    with pytest.raises(StorageError, match=f"is not version {two} any more: somebody changed it"):
        kind.restore("raw", TARGET, two)
    with pytest.raises(StorageError, match="the feed keeps no versions"):
        kind.restore("raw", OutputTarget(PATH, FLAG), one)
    assert present(store, staging) == 1


def test_a_feed_begins_and_ends_to_keep_versions(store: ClusterStore, staging: LocalStaging) -> None:
    plain = OutputTarget(PATH, FLAG)
    one = publish(store, staging, 1, plain)
    assert publish(store, staging, 1) == one
    assert folders(store) == kept(store) == set()
    two = publish(store, staging, 2)
    assert (present(store, staging), kept(store)) == (2, {one})
    assert names(store, PATH) - {FLAG} == {name for name in names(store, PATH) if name.startswith("_versions/")}
    assert kind_of(store).restore("raw", TARGET, one)[1]
    assert present(store, staging) == 1
    assert publish(store, staging, 2, plain) == two
    assert (present(store, staging), folders(store), kept(store)) == (2, set(), set())


def test_versions_go_one_by_one_and_with_their_instance(store: ClusterStore, staging: LocalStaging) -> None:
    one, two, _ = (publish(store, staging, number) for number in (1, 2, 3))
    found = {version.version: version for version in kind_of(store).kept_versions(FEED.name)}
    assert evicted(store, found[one]) == evicted(store, found[one]) == []
    assert (kept(store), len(folders(store)), present(store, staging)) == ({two}, 2, 3)
    kind_of(store).restore("raw", TARGET, two)
    assert evicted(store, found[two]) == []  # as it was planned before: it is the instance by now
    assert present(store, staging) == 2
    assert evicted(store, *kind_of(store).kept_versions(FEED.name)) == []
    assert names(store) == {
        f"{PATH[1:]}/{FLAG}",
        *(f"{PATH[1:]}/{pointer(store).folder}/{one}" for one in (FLAG, *generation(2))),
    }
    publish(store, staging, 3)
    removal, location = kind_of(store).removal(FLAG), StoredLocation("data", PATH, "/raw")
    with removal.held(location) as place:
        removal.remove(location, place)
    assert names(store) == set()


def test_a_version_goes_while_its_instance_is_written(store: ClusterStore, staging: LocalStaging) -> None:
    one, two = publish(store, staging, 1), publish(store, staging, 2)
    (found,) = kind_of(store).kept_versions(FEED.name)
    with kind_of(store).publish("daily", {"out": TARGET}, staging) as publication:
        write(publication.staging("out"), generation(3))
        assert (found.version, evicted(store, found)) == (one, [])
        publication.commit("out")
    assert (present(store, staging), kept(store), len(folders(store))) == (3, {two}, 2)


@pytest.mark.parametrize("conditions", [True, False], ids=["conditional writes", "without"])
def test_a_run_that_wakes_up_writes_nothing_into_the_new_instance(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch, conditions: bool
) -> None:
    one = publish(store, staging, 1)
    known = conditional_writes._found
    if not conditions:
        monkeypatch.setitem(known, next(reversed(known)), None)
    monkeypatch.setattr(ownership, "_CHECK_SECONDS", 3600)
    copied, uploaded = store.fs.pipe_file, list[str]()

    def another_comes(path: str, *args: Any, **kwargs: Any) -> Any:
        """While the first one uploads its second file: nothing of it is seen, and its check was just before."""
        if "/_versions/" in path:
            uploaded.append(path)
            if len(uploaded) == 2:
                publish(ClusterStore(store.cluster, Path("/"), ENVIRON), staging, 3)
        return copied(path, *args, **kwargs)

    monkeypatch.setattr(store.files.__class__, "requests", 1)
    monkeypatch.setattr(store.fs, "pipe_file", another_comes)
    with pytest.raises(StorageError, match=f"daily: {PATH} is being written by another run meanwhile"):
        publish(store, staging, 2)
    assert (present(store, staging), kept(store), len(folders(store))) == (3, {one}, 2)


def test_of_two_runs_that_replace_the_same_one_does(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They know nothing of each other: each believes to own the output, as runs of two databases would."""
    monkeypatch.setattr(ownership.Ownership, "take", lambda _: True)
    monkeypatch.setattr(ownership.Ownership, "begin", lambda _: None)
    monkeypatch.setattr(ownership.Ownership, "check", lambda _: None)
    kind = kind_of(store)
    with (
        kind.publish("first", {"out": TARGET}, staging) as first,
        kind.publish("other", {"out": TARGET}, staging) as other,
    ):
        write(first.staging("out"), generation(1))
        write(other.staging("out"), generation(2))
        other.commit("out")
        with pytest.raises(StorageError, match=r"^first: .* is being written by another run meanwhile$"):
            first.commit("out")
    assert (present(store, staging), kept(store), len(folders(store))) == (2, set(), 1)


def test_spark_with_a_connector_reads_and_writes_the_folders(store: ClusterStore, staging: LocalStaging) -> None:
    publish(store, staging, 1)
    with kind_of(store).publish("daily", {"out": TARGET}) as publication:
        place = publication.staging("out")
        assert publication.staging_url("out") == f"s3a://{place}"
        for name, content in {**generation(2), "_temporary/0": b"x"}.items():
            store.fs.pipe_file(f"{place}/{name}", content)
        version = publication.commit("out").version
    with kind_of(store).reading(PATH, FLAG) as read:
        assert read.version.version == version
        assert read.folders[0].url == f"s3a://{place}"  # written once, and copied nowhere
        assert read.folders[0].files.listed_now().keys() == generation(2).keys()
        publish(store, staging, 3)
        assert read.folders[0].files.listed_now().keys() == generation(2).keys()
    with pytest.raises(InterruptedError), kind_of(store).publish("daily", {"out": TARGET}) as publication:
        store.fs.pipe_file(f"{publication.staging('out')}/part", b"x")
        raise InterruptedError
    assert len(folders(store)) == 3


def test_the_present_version_is_replicated_and_archived(
    store: ClusterStore, staging: LocalStaging, tmp_path: Path
) -> None:
    publish(store, staging, 1)
    publish(store, staging, 2)
    backup = ClusterStore(make_cluster(name="backup"), tmp_path, {})
    target = kind_of(backup).copy_target(OutputTarget(PATH, FLAG), "lake")
    with InstanceCopy(kind_of(store), PATH, target, lambda _: True, ReplicationOptions()) as copy:
        copy.finish(copy.run_here())
    publish_copies("raw", [target])
    archive(store, PATH, store, "/old/1", FLAG)
    for there in (backup.path(PATH), None):
        files = (
            files_in(there)
            if there
            else {one: store.fs.cat_file(f"{store.path('/old/1')}/{one}") for one in names(store, "/old/1")}
        )
        assert files.pop(FLAG) == b""
        assert seen(files) == 2


def test_how_often_the_store_is_asked(
    store: ClusterStore, staging: LocalStaging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "_CHECK_SECONDS", 3600)
    kind, counted = kind_of(store), partial(requests, store, monkeypatch)
    for number in (1, 2, 3):
        publish(store, staging, number)
    flag = {"head_object": 1, "get_object": 1}  # the driver asks how large it is before it reads it
    assert counted(lambda: kind.is_available(FEED, PATH)) == {"head_object": 1}
    assert counted(lambda: kind.listing(PATH, FLAG)) == {"list_objects_v2": 2, **flag}
    assert counted(lambda: kind.version(PATH, FLAG)) == {"list_objects_v2": 2, **flag}
    assert counted(lambda: kind.kept_versions(FEED.name, DAY)) == {"head_object": 2, "get_object": 2}
    assert counted(lambda: kind.kept_versions(FEED.name)) == {
        "list_objects_v2": 1,
        "head_object": 2,
        "get_object": 2,
    }
    files = len(generation(2))
    # The run's name comes twice and goes, each file is written and verified, the note and both flags are written.
    assert counted(lambda: publish(store, staging, 2)) == {
        "put_object": files + 5,
        "head_object": files + 5,
        "get_object": 1,
        "delete_object": 1,
        "delete_objects": 1,
        "list_objects_v2": 3,
    }


@pytest.mark.soak
@pytest.mark.parametrize("old", [None, "plain", 1], ids=["for the first time", "from before", "again"])
def test_killed_at_every_request(store: ClusterStore, tmp_path: Path, old: int | str | None) -> None:
    """There is no moment in which an instance that was there is not."""
    cluster, outcomes = store.cluster, Counter[int | None]()
    staging = LocalStaging(tmp_path / "working" / "staged")

    def dying(step: int) -> None:
        fresh, numbers = ClusterStore(cluster, tmp_path, ENVIRON), count(1)

        def kill(method: str) -> None:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        tell_requests(fresh.fs, kill)
        publish(fresh, staging, 2)

    def now() -> int | None:
        return present(store, staging) if kind_of(store).is_available(FEED, PATH) else None

    versions = {number: publish(store, staging, number) for number in (1, 2, 3)}
    for step in count(1):
        store.files.remove(store.fs.find(store.path("")))
        if old:
            publish(store, staging, 1, OutputTarget(PATH, FLAG) if old == "plain" else TARGET)
        if not os.waitpid(forked(partial(dying, step)), 0)[1]:
            break
        before = now()
        outcomes[before] += 1
        if before == 2 and old:
            assert kept(store) == {versions[1]}
        publish(store, staging, 3)
        assert now() == 3
        assert kept(store) == {versions[number] for number in (1, 2) if number == before or (old and number == 1)}
        assert len(folders(store)) == 1 + len(kept(store))
        assert not [name for name in names(store, PATH) if not name.startswith("_versions/") and name != FLAG]
    assert (now(), outcomes.keys()) == (2, {1 if old else None, 2})
    assert step > 10
