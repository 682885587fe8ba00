"""Publishing process outputs on a real S3 server: the flag is the switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import make_cluster
from tests.s3_server import ENVIRON, lake

TARGET = OutputTarget("/delays/2013/01/01/00", "_SUCCESS", "0755")


@pytest.fixture
def store(s3: str, request: pytest.FixtureRequest) -> ClusterStore:
    bucket = f"outputs-{abs(hash(request.node.name))}"
    found = ClusterStore(make_cluster(**lake(s3, bucket=bucket)), Path("/"), ENVIRON)
    found.fs.mkdir(bucket)
    return found


def write(store: ClusterStore, folder: str, *names: str) -> None:
    for name in names:
        store.fs.pipe_file(f"{folder}/{name}", name.encode())


def found(store: ClusterStore) -> list[str]:
    final = store.path(TARGET.path)
    return sorted(str(name)[len(final) + 1 :] for name in store.fs.find(final))


def publish(store: ClusterStore, *names: str) -> Any:
    with kind_of(store).publish("hourly", {"delays": TARGET}) as publication:
        write(store, publication.staging("delays"), *names)
        return publication.commit("delays")


def test_an_output_replaces_the_one_before(store: ClusterStore) -> None:
    first = publish(store, "a", "carrier=AA/b", "_SUCCESS", "carrier=AA/.b.crc")
    assert found(store) == ["_SUCCESS", "a", "carrier=AA/b"]
    assert first == fingerprint(store, TARGET.path, "_SUCCESS")
    assert publish(store, "a", "c") != first
    assert found(store) == ["_SUCCESS", "a", "c"]
    assert store.fs.find(store.staging) == []


def test_names_are_no_patterns(store: ClusterStore) -> None:
    target = OutputTarget("/g[ab]/x*y", "_SUCCESS", None)
    kept = [store.path(f"{folder}/{name}") for folder in ("ga/xzy", "g[ab]/xzy") for name in ("a1", "a[1]", "_SUCCESS")]
    for path in kept:
        store.fs.pipe_file(path, b"")
    final = store.path(target.path)
    for names in (("a[1]", "a1", "b*"), ("a1",), ()):
        with kind_of(store).publish("hourly", {"delays": target}) as publication:
            write(store, publication.staging("delays"), *names, "b")
            assert publication.commit("delays").files == len(names) + 1
        assert {str(name)[len(final) + 1 :] for name in store.fs.find(final)} == {*names, "b", "_SUCCESS"}
    store.files.remove_tree(final)
    assert sorted(map(str, store.fs.find(store.path("")))) == sorted(kept)


def test_what_is_not_committed_is_dropped(store: ClusterStore) -> None:
    publish(store, "a")
    with pytest.raises(InterruptedError), kind_of(store).publish("hourly", {"delays": TARGET}) as publication:
        write(store, publication.staging("delays"), "b")
        raise InterruptedError
    assert found(store) == ["_SUCCESS", "a"]
    assert store.fs.find(store.staging) == []


def test_nothing_was_written(store: ClusterStore) -> None:
    with (
        kind_of(store).publish("hourly", {"delays": TARGET}) as publication,
        pytest.raises(StorageError, match="cannot publish /delays/2013/01/01/00: nothing was written to "),
    ):
        publication.commit("delays")


def test_a_run_that_was_overtaken_stops(store: ClusterStore) -> None:
    with kind_of(store).publish("first", {"delays": TARGET}) as slow:
        write(store, slow.staging("delays"), "a")
        publish(store, "b")
        with pytest.raises(StorageError, match="is being written by another run"):
            slow.commit("delays")  # the second run took what seemed to be left by a crash
        write(store, slow.staging("delays"), "a")
        with pytest.raises(StorageError) as raised:
            slow.commit("delays")
    assert str(raised.value) == "first: /delays/2013/01/01/00 is being written by another run meanwhile"
    assert found(store) == ["_SUCCESS", "b"]


def test_whatever_a_crash_left_is_repaired(store: ClusterStore) -> None:
    publish(store, "a", "b")
    final = store.path(TARGET.path)
    store.fs.rm_file(f"{final}/_SUCCESS")  # as far as a killed run came
    write(store, final, "c")
    write(store, f"{store.staging}/left/written", "x")
    publish(store, "b", "d")
    assert found(store) == ["_SUCCESS", "b", "d"]
