"""Copies between a table on a file system and one on an object store or HDFS, and to files there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.copying.copy_target import CopyTarget, publish_if_complete
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy
from tests.storage.kinds.samples import Sample, sample


def part_of(target: Sample) -> CopyTarget:
    return target.kind.copy_target(replace(target.target(), makes_table=True), "primary")


def copied(source: Sample, target: Sample) -> CopyResult:
    """As a replication does."""
    with InstanceCopy(source.kind, source.path(), part_of(target), lambda _: True, ReplicationOptions()) as copy:
        result = copy.finish(copy.run_here())
    assert publish_if_complete("numbers", [part_of(target)]) is not None
    return result


PAIRS = [("hive", "iceberg on s3"), ("iceberg on s3", "hive"), ("iceberg on s3", "iceberg on s3")]
PAIRS += [("hive", "hive on hdfs"), ("hive on hdfs", "iceberg"), ("hive on hdfs", "hive on hdfs")]


@pytest.fixture(params=[PAIRS[0], *(pytest.param(one, marks=pytest.mark.soak) for one in PAIRS[1:])])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Sample, Sample]:
    source, target = (sample(request, kind, tmp_path / name) for kind, name in zip(request.param, "ab", strict=True))
    return source, target


def test_it_comes_and_comes_again_when_it_changed(pair: tuple[Sample, Sample]) -> None:
    source, target = pair
    source.publish(1, 2)
    assert (copied(source, target).files_copied, target.numbers()) == (1, [1, 2])
    first = target.version()
    source.publish(1, 2, 3)
    copied(source, target)
    assert (target.numbers(), target.version() != first) == ([1, 2, 3], True)
    left = f"{target.store.staging}/copies"
    staged = [str(one) for one in target.store.fs.find(left) if str(one).endswith(".parquet")]
    assert staged == []


def test_what_changes_meanwhile_is_not_published(pair: tuple[Sample, Sample]) -> None:
    source, target = pair
    source.publish(1)
    with InstanceCopy(source.kind, source.path(), part_of(target), lambda _: True, ReplicationOptions()) as copy:
        done = copy.run_here()
        source.publish(7)
        with pytest.raises(StorageError, match="changed while it was copied"):
            copy.finish(done)
    assert target.numbers() is None
    copied(source, target)
    assert target.numbers() == [7]
