"""Google's and Azure's object stores fulfil the contract of storage, too, by fsspec's drivers; Spark is not asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from falcon_assets.storage.kinds.objects.conditional_writes import conditional_writes
from falcon_assets.storage.kinds.objects.pointer_store import PointerStore
from tests.storage.kinds.samples import CLOUDS, Sample, sample
from tests.storage.kinds.test_contract import *  # noqa: F403
from tests.storage.kinds.test_s3_staging import require_one_is_told

pytestmark = pytest.mark.soak


@pytest.fixture(params=CLOUDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)


def test_of_two_writers_of_an_object_one_is_told(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = sample(request, "abfs", tmp_path).store
    path, writes = f"{store.staging}/x", conditional_writes(store)
    assert writes
    with pytest.raises(FileNotFoundError):
        writes.etag(path)
    assert writes.write(path, b"first", '"0x8DEADBEEF"') is None
    first = writes.write(path, b"first", None)
    assert first == writes.etag(path)
    assert (writes.write(path, b"second", None), writes.write(f"{path}/y", b"below", None) is None) == (None, False)
    second = writes.write(path, b"second", first)
    assert (writes.write(path, b"third", first), store.fs.cat_file(path)) == (None, b"second")
    assert second == writes.etag(path) != first
    store.fs.rm_file(path)
    assert writes.write(path, b"third", second) is None
    with pytest.raises(FileNotFoundError):
        writes.etag(path)


def test_of_two_runs_at_the_same_moment_one_is_told(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_one_is_told(sample(request, "abfs", tmp_path).store, monkeypatch)


def test_of_two_that_replace_a_version_one_does(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    there = sample(request, "abfs", tmp_path)
    there.publish(1, keeps=True)
    there.publish(2, keeps=True)
    pointers, flag = PointerStore(there.store), there.feed.availability_flag
    assert flag
    before = pointers.read(there.path(), flag)
    assert before.pointer and len(before.pointer.kept) == 1
    other = replace(before.pointer, kept={})
    assert pointers.replace(there.path(), flag, before, other)
    assert not pointers.replace(there.path(), flag, before, before.pointer)
    assert pointers.read(there.path(), flag).pointer == other


def test_where_the_server_compares_nothing_the_database_decides(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assert conditional_writes(sample(request, "gs", tmp_path).store) is None
