"""The distributed copy on real Spark: local, standalone and Connect."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.compute.spark.copying import copy_instance
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.copying import copy_plan, copy_task, file_copy
from falcon_assets.storage.copying.copy_task import CopyProgress
from tests.builders import make_cluster
from tests.copy_sandbox import CopySandbox, some_files
from tests.own_time import OwnTime


@pytest.fixture
def copies(tmp_path: Path) -> CopySandbox:
    return CopySandbox(tmp_path)


def test_an_instance_is_copied_and_verified(any_cluster: Cluster, working: str, copies: CopySandbox) -> None:
    files = {**some_files(120), "odd \udcff name": b"x"}
    copies.write(files)
    seen: list[CopyProgress] = []
    with copies.copying() as copy:
        result = copy_instance(SparkExecutor(any_cluster, lambda: working), copy, seen.append)
    assert (result.files_copied, result.bytes) == (121, sum(map(len, files.values())))
    assert (result.verification, result.files_skipped, result.to_publish) == ("checksum", 0, True)
    assert (seen[-1].files, seen[-1].bytes, seen[-1].of_files) == (121, result.bytes, 121)
    assert not copies.is_complete()
    copies.publish()
    assert copies.read() == files


class NoSpark(SparkExecutor):
    def session(self) -> Any:
        raise AssertionError("there is too little to copy")


NO_SPARK = NoSpark(make_cluster(), str)


def test_late_changes_move_only_what_changed_and_what_is_small_needs_no_spark(copies: CopySandbox) -> None:
    files = some_files(20)
    copies.write(files)
    seen: list[CopyProgress] = []
    with copies.copying() as copy:
        assert copy_instance(NO_SPARK, copy, seen.append).verification == "checksum"
    assert (seen[-1].files, seen[-1].of_files) == (20, 20)
    copies.publish()
    del files["part-00002.json"]
    files |= {"part-00004.json": b"another", "new": b"new"}
    copies.write(files)
    with copies.copying() as copy:
        result = copy_instance(NO_SPARK, copy)
    assert sorted(step.name for steps in copy.plan.tasks for step in steps) == ["new", "part-00004.json"]
    copies.publish()
    assert (result.files_copied, result.files_skipped) == (2, 18)
    assert copies.read() == files
    with copies.copying() as copy:
        assert not copy_instance(NO_SPARK, copy).to_publish


@pytest.mark.parametrize("count", [4, 101], ids=["here", "on Spark"])
def test_a_file_that_cannot_be_read_is_named(
    local_cluster: Cluster, working: str, copies: CopySandbox, count: int
) -> None:
    copies.write(some_files(count))
    with copies.copying() as copy:
        Path(copies.store("primary").path("/raw/2013/01/01/00/part-00002.json")).unlink()
        with pytest.raises(StorageError) as raised:
            copy_instance(SparkExecutor(local_cluster, lambda: working), copy)
    assert str(raised.value) == (
        "cluster 'backup': cannot copy /raw/2013/01/01/00 from 'primary': 1 file(s) could not be copied: "
        "part-00002.json: No such file or directory"
    )


def test_a_failure_of_spark_is_said_in_a_sentence(local_cluster: Cluster, working: str, copies: CopySandbox) -> None:
    copies.write(some_files(101))
    with copies.copying() as copy:
        Path(copy.job.plan_path(0)).unlink()
        with pytest.raises(StorageError, match=re.escape("the copy failed in Spark: FileNotFoundError: ")):
            copy_instance(SparkExecutor(local_cluster, lambda: working), copy)


@pytest.mark.parametrize("each", [None, 0.5, 100.0])
def test_a_bandwidth_is_shared_by_all_tasks(copies: CopySandbox, each: float | None) -> None:
    copies.write({"a": b"", "b": b""})
    for name in ("a", "b"):  # sparse: a task is for so many bytes
        os.truncate(copies.store("primary").path(f"/raw/2013/01/01/00/{name}"), copy_plan.TASK_BYTES)
    with copies.copying(ReplicationOptions(bandwidth=2.0, map_bandwidth=each)) as copy:
        assert len(copy.plan.tasks) == 2
        assert copy.job.rate == min(1.0, each or 1.0)


@pytest.mark.parametrize(("rate", "size"), [(4.0, 2 << 20), (0.5, 300_000)], ids=["one file", "many small files"])
def test_map_bandwidth_is_kept(copies: CopySandbox, monkeypatch: pytest.MonkeyPatch, rate: float, size: int) -> None:
    # Two tasks' worth of bytes at the rate of one: each task has a rate of its own.
    total = 8 << 20 if size > 1 << 20 else 1_200_000
    copies.write({f"part-{number}": os.urandom(size) for number in range(total // size)})
    with copies.copying(ReplicationOptions(map_bandwidth=rate)) as copy:
        assert len(copy.plan.tasks) == 1
        own = OwnTime()
        for module in (file_copy, copy_task):
            monkeypatch.setattr(module, "time", own)
        result = copy_instance(NO_SPARK, copy)
    assert result.bytes / (1 << 20) / result.task_seconds == pytest.approx(rate)
    assert own.now == pytest.approx(result.task_seconds)
