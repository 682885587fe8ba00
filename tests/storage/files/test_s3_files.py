"""What S3 refuses of many objects is noticed, and what it copies is asked for once: on a server of its protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict
from falcon_assets.storage.files.s3_files import S3Files
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from tests.storage.kinds.test_s3_staging import store

__all__ = ["store"]

PATH, FLAG = "/delays/2013/01/01/00", "_SUCCESS"


def write(store: ClusterStore, *paths: str) -> None:
    for path in paths:
        store.fs.pipe_file(store.path(path), path.encode())


def forbid(store: ClusterStore, path: str) -> None:
    """Nobody may remove that object, by the bucket's own policy."""
    bucket, key, _ = store.fs.split_path(store.path(path))
    resource = f"arn:aws:s3:::{bucket}/{key}"
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": resource}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    store.fs.call_s3("put_bucket_policy", Bucket=bucket, Policy=policy)


def test_what_is_refused_of_many_is_told(store: ClusterStore) -> None:
    write(store, "/a", "/b", "/c")
    forbid(store, "/b")
    assert isinstance(store.files, S3Files)
    with pytest.raises(PermissionError) as caught:
        store.files.remove(map(store.path, ("/a", "/b", "/c")))
    assert (caught.value.strerror, caught.value.filename) == ("AccessDenied: Access Denied", store.path("/b"))
    assert store.fs.find(store.path("/")) == [store.path("/b")]


def test_a_tree_goes_whole_with_all_that_may_be_in_names(store: ClusterStore) -> None:
    write(store, "/tree/a b", "/tree/ü%20[1]*?", "/tree/deep/er//x", "/tree/folder/", "/tree2/stays")
    store.files.remove_tree(store.path("/tree"))
    assert store.fs.find(store.path("/")) == [store.path("/tree2/stays")]
    with pytest.raises(FileNotFoundError):
        store.files.remove_tree(store.path("/tree"))
    store.files.remove([])


def test_more_than_a_request_holds_are_removed(store: ClusterStore) -> None:
    write(store, "/stays", "/many/0001")
    store.files.remove([store.path(f"/many/{number:04}") for number in range(2001)])
    assert store.fs.find(store.path("/")) == [store.path("/stays")]


def test_a_copy_is_what_is_copied(store: ClusterStore) -> None:
    write(store, "/from/ü [1]")
    store.files.copy(store.path("/from/ü [1]"), store.path("/to/x%20?"), 10)
    assert store.fs.cat_file(store.path("/to/x%20?")) == "/from/ü [1]".encode()
    with pytest.raises(FileNotFoundError):
        store.files.copy(store.path("/from/nothing"), store.path("/to/y"), 1)


def test_an_instance_with_a_file_that_cannot_be_removed_is_not_published(store: ClusterStore, tmp_path: Path) -> None:
    """Readers would find old and new files together."""
    write(store, f"{PATH}/old", f"{PATH}/{FLAG}")
    forbid(store, f"{PATH}/old")
    staging = LocalStaging(tmp_path / "staged")
    with kind_of(store).publish("hourly", {"delays": OutputTarget(PATH, FLAG)}, staging) as publication:
        Path(publication.staging("delays")).mkdir()
        Path(publication.staging("delays"), "new").write_bytes(b"new")
        with pytest.raises(StorageError) as caught:
            publication.commit("delays")
    assert str(caught.value) == (
        f"cluster 'lake': cannot publish {PATH}: permission denied ({store.path(f'{PATH}/old')})"
    )
    assert not store.fs.exists(store.path(f"{PATH}/{FLAG}"))


def test_what_could_not_be_evicted_is_not_said_to_be(store: ClusterStore) -> None:
    write(store, f"{PATH}/old", f"{PATH}/{FLAG}")
    forbid(store, f"{PATH}/old")
    location = StoredLocation("data", PATH, "/delays")
    verdict = Verdict(StoredInstance(parse_instant("2013-01-01T00:00Z"), (location,)), "delete", "it is old")
    (outcome,) = evict(store, [verdict], FLAG)
    left = store.path(f"{PATH}/old")
    assert str(outcome.error) == f"cluster 'lake': cannot evict {PATH}: permission denied ({left})"
    assert store.fs.find(store.path("/")) == [left]
