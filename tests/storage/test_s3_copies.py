"""Copies to, from and between real S3 servers."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_task import TaskSummary, run_task
from falcon_assets.storage.eviction.unfinished_copies import UnfinishedCopy, remove_unfinished, unfinished_copies
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster, make_feed
from tests.copy_sandbox import FLAG, PATH, CopySandbox, some_files
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.waiting import wait_until


@pytest.fixture
def bucket(s3: str, request: pytest.FixtureRequest) -> str:
    name = f"lake-{abs(hash(request.node.name))}"
    ClusterStore(make_cluster(**lake(s3, bucket=name)), Path("/"), ENVIRON).fs.mkdir(name)
    return name


@pytest.fixture
def archive(tmp_path: Path, s3: str, bucket: str) -> CopySandbox:
    """From a local source to S3."""
    return CopySandbox(tmp_path, ENVIRON, target=lake(s3, bucket=bucket))


def test_a_feed_is_archived_and_kept_up_to_date(archive: CopySandbox) -> None:
    files = some_files()
    archive.write(files)
    result = archive.copy()
    assert (result.files_copied, result.verification, result.to_publish) == (6, "etag", True)
    assert not archive.is_complete()
    version = archive.publish()
    assert archive.read() == files
    assert kind_of(archive.store()).is_available(make_feed(), PATH)
    assert version == fingerprint(archive.store(), PATH, FLAG)
    assert not archive.replicate().to_publish

    del files["part-00002.json"]
    files |= {"part-00004.json": b"changed", "AA/new": b"new"}
    archive.write(files)
    with archive.copying() as copy:
        assert not archive.is_complete()
        reports = list(run_task(copy.job, 0))
        copy.finish(TaskSummary.of(reports))
    assert sorted(report.name for report in reports) == ["AA/new", "part-00004.json"]
    assert archive.publish() != version
    assert archive.read() == files
    assert archive.is_complete()


def test_large_objects_go_in_parts(archive: CopySandbox) -> None:
    archive.write({"large": os.urandom((33 << 20) + 5)})
    archive.replicate()
    (report,) = archive.reports
    assert (report.outcome, report.verified) == ("copied", "etag")
    store = archive.store()
    assert store.fs.info(store.path(f"{PATH}/large"))["ETag"].strip('"').endswith("-3")
    assert archive.read() == archive.read("primary")
    assert not archive.replicate().to_publish


def test_equal_objects_of_an_unknown_past_are_not_sent_again(archive: CopySandbox) -> None:
    files = {"a": b"1", "b": b"2"}
    archive.write(files)
    store = archive.store()
    for name, content in files.items():
        store.fs.pipe_file(store.path(f"{PATH}/{name}"), content if name == "a" else b"x")
    archive.replicate()
    assert {report.name: (report.outcome, report.verified) for report in archive.reports} == {
        "a": ("equal", "etag"),
        "b": ("copied", "etag"),
    }
    assert archive.read() == files


def test_an_empty_instance(archive: CopySandbox) -> None:
    archive.write({})
    assert archive.replicate().to_publish
    assert (archive.is_complete(), archive.read()) == (True, {})
    assert not archive.replicate().to_publish


def test_what_changed_after_it_was_verified_is_not_published(archive: CopySandbox) -> None:
    archive.write({"a": b"1"})
    archive.copy()
    store = archive.store()
    store.fs.pipe_file(store.path(f"{PATH}/a"), b"x")
    with pytest.raises(StorageError) as raised:
        archive.publish()
    assert str(raised.value) == "raw-flights on backup: a changed since it was copied from 'primary': copy it again"
    archive.replicate()
    assert archive.read() == {"a": b"1"}


@pytest.mark.parametrize("target", ["local", "s3"])
def test_from_s3(tmp_path: Path, s3: str, bucket: str, target: str) -> None:
    declared = lake(s3, bucket=bucket)
    to = {**declared, "interfaces": {**declared["interfaces"], "write": {"endpoint": f"s3://{bucket}/backup"}}}
    copies = CopySandbox(tmp_path, ENVIRON, target=to if target == "s3" else {}, source=declared)
    files = {**some_files(), "large": os.urandom(20 << 20)}
    copies.write(files)
    result = copies.replicate()
    assert (result.files_copied, result.verification) == (7, "etag" if target == "s3" else "checksum")
    assert copies.read() == files
    copies.write({**files, "AA/new": b"new"})
    assert copies.replicate().files_copied == 1
    assert not copies.replicate().to_publish


PROGRAM = """
import sys
from pathlib import Path
from falcon_assets.planning.replication import ReplicationOptions
from tests.copy_sandbox import CopySandbox
from tests.s3_server import ENVIRON, lake
copies = CopySandbox(Path(sys.argv[1]), ENVIRON, target=lake(sys.argv[2], bucket=sys.argv[3]))
copies.copy(ReplicationOptions(map_bandwidth=0.1))
"""


def test_a_part_that_is_being_changed_keeps_the_others_from_setting_the_flag(
    tmp_path: Path, s3: str, bucket: str
) -> None:
    copies = CopySandbox(
        tmp_path,
        ENVIRON,
        target=lake(s3, bucket=bucket),
        sources={"primary": "${cluster.name}", "second": "${cluster.name}"},
    )
    copies.write({"primary/a": b"1", "primary/b": b"2"})
    copies.write({"second/c": b"3"}, "second")
    assert copies.bring("primary") is None
    assert copies.bring("second") is not None
    copies.write({"primary/a": b"10", "primary/b": b"20"})
    with pytest.raises(RuntimeError), copies.copying() as copy:
        run_task(copy.job, 0)
        raise RuntimeError("breaks off")
    assert not copies.is_complete()
    copies.write({"second/c": b"30"}, "second")
    assert copies.bring("second") is None
    assert not copies.is_complete()
    assert copies.bring("primary") is not None
    assert copies.read() == {"primary/a": b"10", "primary/b": b"20", "second/c": b"30"}
    assert copies.bring("second") is not None


@pytest.mark.soak
def test_a_killed_copy_is_resumed(archive: CopySandbox, s3: str, bucket: str) -> None:
    files = {f"part-{number:02}": os.urandom(20_000) for number in range(60)}
    archive.write(files)
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(archive.home), s3, bucket])
    store = archive.store()
    records = f"{store.staging}/copies"

    def recorded() -> bool:
        assert child.poll() is None
        return any(str(name).endswith(".jsonl") and "/records/" in str(name) for name in store.fs.find(records))

    wait_until(recorded)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not archive.is_complete()
    result = archive.replicate()
    assert result.files_skipped > 0
    assert result.files_copied < 60
    assert archive.read() == files


def test_what_is_staged_of_an_instance_that_never_came_goes(archive: CopySandbox) -> None:
    """Files that were copied lie in their place: they go as an instance does, and the rest after them."""
    archive.write(some_files())
    store = archive.store()
    with archive.copying():
        pass
    (copy,) = unfinished_copies(store)
    assert copy == UnfinishedCopy(PATH, ("primary",))
    with archive.copying() as copying:
        list(run_task(copying.job, 0))
    assert not remove_unfinished(store, copy, FLAG)
    assert archive.read() != {}
    store.fs.rm(store.path(PATH), recursive=True)
    assert remove_unfinished(store, copy, FLAG)
    store.fs.invalidate_cache()
    assert store.fs.find(store.staging) == []
    assert unfinished_copies(store) == []
    archive.replicate()
    assert unfinished_copies(store) == []
    assert archive.read() == archive.read("primary")


def test_secrets_are_shown_nowhere(
    archive: CopySandbox, s3: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    archive.write(some_files())
    with archive.copying() as copy:
        shown = [repr(copy), repr(copy.job), repr(copy.plan), repr(archive.store()), repr(vars(archive.store()))]
        shown += [repr(report) for report in run_task(copy.job, 0)]
    for broken in (lake(s3, bucket="no-such-bucket"), lake("http://127.0.0.1:9", bucket="lake")):
        broken["storage_options"]["config_kwargs"] = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
        with pytest.raises(StorageError, match="cluster 'backup': cannot copy ") as raised:
            CopySandbox(archive.home, ENVIRON, target=broken).replicate()
        shown += [str(raised.value), repr(raised.value.__cause__)]
    text = "\n".join([*shown, caplog.text, *capfd.readouterr()])
    assert SECRET not in text
    assert KEY not in text
