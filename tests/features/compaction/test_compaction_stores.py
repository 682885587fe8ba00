"""Compaction on stores of every kind, each by its own way to replace an instance in one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.replacing import CompactedInstance, compact_instance
from falcon_assets.model.feed import Compaction, VersionRetention
from falcon_assets.storage.kinds.reading import ReadableInstance
from tests.s3_server import s3_server
from tests.storage.kinds.samples import KINDS, ON_HDFS, InFiles, Sample, place_of, sample

SOAK = ["hdfs", f"hive{ON_HDFS}", *KINDS[-2:]]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(params=[*KINDS[:-2], *(pytest.param(one, marks=pytest.mark.soak) for one in SOAK)])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    """A store whose feed is compacted; files hold lines."""
    found = sample(request, request.param, tmp_path)
    in_files = isinstance(found, InFiles)
    more: dict[str, Any] = {"compact": Compaction(sort=("value" if in_files else "number",))}
    if in_files:
        more |= {"format": "text", "partitions": ("carrier",)}
    if request.param == "objects":
        more["versions"] = VersionRetention(keep=2)
    return replace(found, feed=found.feed.model_copy(update=more))


def compacted(stored: Sample, before: Any = lambda read, new: None) -> CompactedInstance:
    return compact_instance(stored.store, stored.feed, stored.day(1), "numbers of the first day", before)


def rows(stored: Sample) -> list[int]:
    """In the order of folders, files and rows."""
    with stored.kind.reading(stored.path(), stored.feed.availability_flag, stored.staging) as read:
        return list(_lines(stored, read) if isinstance(stored, InFiles) else stored.read(read))


def _lines(stored: InFiles, read: ReadableInstance) -> list[int]:
    (folder,) = read.folders
    contents = (stored._of_spark.cat_file(f"{place_of(folder.url)}/{name}") for name in sorted(folder.files.sizes))
    return [int(line) for content in contents for line in content.split()]


def test_rows_are_sorted_and_the_version_is_the_new_one(stored: Sample) -> None:
    stored.land(8, 2, 6, 4)
    was = stored.version()
    done = compacted(stored)
    assert rows(stored) == [2, 4, 6, 8]
    assert done.new is not None
    assert (done.read.version, done.new.version) == (was, stored.version())
    assert done.new.version != was
    assert done.signature == stored.kind.listing(stored.path(), stored.feed.availability_flag).signature
    assert done.files is not None
    assert done.files.content.rows == 4


def test_the_version_that_is_announced_is_the_one_that_is_published(stored: Sample) -> None:
    stored.land(8, 2)
    announced = []
    done = compacted(stored, lambda read, new: announced.append((read.version, new)))
    ((read, new),) = announced
    assert done.new is not None
    assert read == done.read.version
    assert new in (None, done.new.version)


def test_what_is_written_meanwhile_stays(stored: Sample) -> None:
    stored.land(8, 2)
    with pytest.raises(StorageError):
        compacted(stored, lambda read, new: stored.land(4, 6))
    assert sorted(rows(stored)) == [4, 6]
    compacted(stored)
    assert rows(stored) == [4, 6]


def test_compacted_again_it_is_the_same_rows(stored: Sample) -> None:
    stored.land(8, 2)
    first, again = compacted(stored), compacted(stored)
    assert first.files is not None
    assert again.files is not None
    assert first.files.content == again.files.content
    assert rows(stored) == [2, 8]
