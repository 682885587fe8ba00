"""Copies between local stores: what arrives, what is skipped, what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.copying.copy_task import TaskSummary, run_task
from falcon_assets.storage.instances.data_version import fingerprint
from tests.copy_sandbox import FLAG, PATH, CopySandbox, some_files


@pytest.fixture
def copies(tmp_path: Path) -> CopySandbox:
    return CopySandbox(tmp_path)


def place(copies: CopySandbox, name: str, cluster: str = "backup") -> Path:
    return Path(copies.store(cluster).path(f"{PATH}/{name}"))


def test_nothing_is_seen_before_it_is_published(copies: CopySandbox) -> None:
    files = some_files()
    copies.write(files)
    result = copies.copy()
    assert not Path(copies.store().path(PATH)).exists()
    version = copies.publish()
    assert copies.read() == files
    assert copies.is_complete()
    assert version == fingerprint(copies.store(), PATH, FLAG) == fingerprint(copies.store("primary"), PATH, FLAG)
    assert (result.files_copied, result.bytes) == (6, 15000)


def test_what_is_equal_is_not_copied_again(copies: CopySandbox) -> None:
    files = some_files()
    copies.write(files)
    copies.replicate()
    inode = place(copies, "part-00002.json").stat().st_ino
    result = copies.replicate()
    assert (result.files_copied, result.files_skipped, copies.reports, result.to_publish) == (0, 6, [], False)
    copies.write({**files, "part-00004.json": b"changed"})
    result = copies.replicate()
    assert (result.files_copied, result.files_skipped, result.bytes) == (1, 5, 7)
    assert copies.read()["part-00004.json"] == b"changed"
    assert place(copies, "part-00002.json").stat().st_ino == inode


def test_equal_files_of_an_unknown_past_are_compared(copies: CopySandbox) -> None:
    files = some_files()
    copies.write(files)
    for name, content in files.items():
        target = place(copies, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if name != "part-00002.json" else b"x" * 2000)
    place(copies, FLAG).touch()
    copies.replicate()
    assert {report.name: report.outcome for report in copies.reports} == {
        **{name: "equal" for name, content in files.items() if content},
        "part-00002.json": "copied",
    }
    assert copies.read() == files
    copies.replicate()
    assert copies.reports == []


def test_equal_by_size_alone(copies: CopySandbox) -> None:
    copies.write({"a": b"one", "b": b"two"})
    copies.replicate()
    copies.write({"a": b"eno", "b": b"three"})
    copies.replicate(ReplicationOptions(skip_checksum=True))
    assert [(report.name, report.verified) for report in copies.reports] == [("b", "size")]
    assert copies.read() == {"a": b"one", "b": b"three"}


def test_overwrite(copies: CopySandbox) -> None:
    copies.write(some_files())
    copies.replicate()
    assert copies.replicate(ReplicationOptions(overwrite=True)).files_copied == 6


@pytest.mark.parametrize("remove", [True, False])
def test_deleted_files(copies: CopySandbox, remove: bool) -> None:
    copies.write({"a": b"1", "gone/b": b"2"})
    copies.replicate()
    copies.write({"a": b"1"})
    result = copies.replicate(ReplicationOptions(remove_deleted_files=remove))
    assert copies.read() == ({"a": b"1"} if remove else {"a": b"1", "gone/b": b"2"})
    assert (result.files_copied, result.to_publish) == (0, remove)


@pytest.mark.parametrize("flag", [FLAG, None])
def test_an_empty_instance_is_empty(tmp_path: Path, flag: str | None) -> None:
    copies = CopySandbox(tmp_path, flag=flag)
    copies.write({})
    result = copies.replicate()
    assert (result.files_copied, result.to_publish) == (0, True)
    assert copies.is_complete()
    assert copies.read() == {}
    assert not copies.replicate().to_publish


def test_an_instance_that_is_a_single_file(tmp_path: Path) -> None:
    copies = CopySandbox(tmp_path, flag=None)
    source, target = (Path(copies.store(name).path(PATH)) for name in ("primary", "backup"))
    source.parent.mkdir(parents=True)
    for content in (b"one", b"another"):
        source.write_bytes(content)
        assert copies.replicate().files_copied == 1
        assert target.read_bytes() == content
    assert not copies.replicate().to_publish


def test_side_files_and_the_flag_stay_behind(copies: CopySandbox) -> None:
    copies.write({"a": b"1", ".a.crc": b"x", "AA/_temporary/0/b": b"x"})
    copies.replicate()
    assert copies.read() == {"a": b"1"}


def test_links_within_the_root_are_followed(copies: CopySandbox) -> None:
    copies.write({"a": b"1", "real/b": b"2"})
    place(copies, "link", "primary").symlink_to("real")
    place(copies, "file", "primary").symlink_to("a")
    copies.replicate()
    assert copies.read() == {"a": b"1", "file": b"1", "real/b": b"2", "link/b": b"2"}
    assert not place(copies, "file").is_symlink()


def test_what_is_preserved(copies: CopySandbox) -> None:
    copies.write({"a": b"1"})
    source = place(copies, "a", "primary")
    source.chmod(0o640)
    os.utime(source, (1e9, 1e9 + 0.5))
    os.chown(source, 12345, 23456)
    kept = ReplicationOptions(preserve_permission=True, preserve_times=True, preserve_user=True, preserve_group=True)
    copies.replicate(kept)
    found = place(copies, "a").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime, found.st_uid, found.st_gid) == (0o640, 1e9 + 0.5, 12345, 23456)
    copies.replicate(ReplicationOptions(overwrite=True))
    found = place(copies, "a").stat()
    assert (found.st_uid, found.st_gid) == (os.getuid(), os.getgid())
    assert found.st_mtime > 1e9 + 1


def test_the_permission_of_the_acl(copies: CopySandbox) -> None:
    copies.write({"AA/a": b"1"})
    copies.copy(permission="0750")
    copies.publish(permission="0750")
    assert [stat.S_IMODE(place(copies, name).stat().st_mode) for name in ("AA", "AA/a")] == [0o750, 0o640]


def test_readonly_is_where_replication_reads(tmp_path: Path) -> None:
    mirror = {"endpoint": "data/mirror"}
    copies = CopySandbox(
        tmp_path,
        source={
            "interfaces": {
                "write": {"endpoint": "data/primary"},
                "readonly": mirror,
                "execute": {"endpoint": "local[2]"},
            }
        },
    )
    assert copies.store("primary", readonly=True).path("") == f"{tmp_path}/data/mirror"
    assert copies.store("primary").path("") == f"{tmp_path}/data/primary"
    assert copies.store("backup", readonly=True).path("") == f"{tmp_path}/data/backup"


def test_a_file_that_fails_is_named_and_the_others_are_not_copied_again(copies: CopySandbox) -> None:
    files = some_files()
    copies.write(files)
    with copies.copying() as copy:
        broken = place(copies, "part-00002.json", "primary")
        broken.rename(broken.parent / "moved")
        with pytest.raises(StorageError) as raised:
            copy.finish(TaskSummary.of(run_task(copy.job, 0)))
    assert str(raised.value) == (
        f"cluster 'backup': cannot copy {PATH} from 'primary': 1 file(s) could not be copied: "
        "part-00002.json: No such file or directory"
    )
    (broken.parent / "moved").rename(broken)
    copies.copy()
    outcomes = {report.name: report.outcome for report in copies.reports}
    # The largest come first, and a task ends with what fails.
    assert outcomes == {
        "AA/part-00005.json": "resumed", "part-00004.json": "resumed", "AA/part-00003.json": "resumed",
        "part-00002.json": "copied", "AA/part-00001.json": "copied", "part-00000.json": "copied",
    }  # fmt: skip
    copies.publish()
    assert copies.read() == files


def test_failures_that_are_ignored(copies: CopySandbox) -> None:
    copies.write(some_files())
    with copies.copying(ReplicationOptions(ignore_errors=True)) as copy:
        broken = place(copies, "part-00002.json", "primary")
        content = broken.read_bytes()
        broken.write_bytes(content + b"more")
        reports = list(run_task(copy.job, 0))
        broken.write_bytes(content)
        os.utime(broken, ns=(0, int(copy.plan.tasks[0][3].version.partition("-")[0], 16)))
        result = copy.finish(TaskSummary.of(reports))
    assert (result.files_copied, result.files_failed) == (5, 1)
    assert [r.verified for r in reports if r.outcome == "failed"] == ["it changed while it was copied"]
    copies.publish()
    assert "part-00002.json" not in copies.read()
    assert copies.is_complete()


@pytest.mark.parametrize("change", ["a file more", "written anew", "no flag any more"])
def test_a_source_that_changes_meanwhile_is_not_published(copies: CopySandbox, change: str) -> None:
    files = some_files()
    copies.write(files)
    with copies.copying() as copy:
        reports = list(run_task(copy.job, 0))
        if change == "no flag any more":
            place(copies, FLAG, "primary").unlink()
        else:
            files["new" if change == "a file more" else "part-00002.json"] = b"y" * 2000
            copies.write(files)
        with pytest.raises(StorageError) as raised:
            copy.finish(TaskSummary.of(reports))
    assert str(raised.value) == f"cluster 'backup': cannot copy {PATH} from 'primary': " + (
        f"{PATH} on 'primary' is not there, or not complete"
        if change == "no flag any more"
        else f"{PATH} on 'primary' changed while it was copied; the next attempt copies what changed"
    )
    with pytest.raises(StorageError, match="raw-flights on backup: the part of source 'primary' is not copied yet"):
        copies.publish()
    copies.write(files)
    assert copies.replicate().files_copied == (0 if change == "no flag any more" else 1)
    assert copies.read() == files


def test_tasks_that_end_early_are_noticed(copies: CopySandbox) -> None:
    copies.write(some_files())
    with copies.copying() as copy, pytest.raises(StorageError) as raised:
        copy.finish(TaskSummary.of(list(run_task(copy.job, 0))[:-1]))
    assert str(raised.value) == (
        f"cluster 'backup': cannot copy {PATH} from 'primary': its tasks ended early; the next attempt goes on with it"
    )


def test_two_runs_do_not_copy_the_same(copies: CopySandbox) -> None:
    copies.write(some_files())
    with copies.copying(), pytest.raises(StorageError) as raised:
        copies.copy()
    assert str(raised.value) == (
        f"cluster 'backup': cannot copy {PATH} from 'primary': another run is copying it: wait until it has ended, or "
        "end it, and run this again"
    )


def test_tasks_of_a_killed_run_do_not_write_among_the_files_of_the_next(copies: CopySandbox) -> None:
    copies.write(some_files())
    with copies.copying() as killed:
        job = killed.job
    copies.copy()
    with pytest.raises(FileNotFoundError):
        next(run_task(job, 0))


def test_a_corrupted_copy_in_staging_is_copied_again(copies: CopySandbox) -> None:
    files = some_files()
    copies.write(files)
    with copies.copying() as copy:
        reports = list(run_task(copy.job, 0))
        damaged = Path(copy.job.written_base, "part-00002.json")
        status = damaged.stat()
        damaged.write_bytes(b"x" * 2000)
        os.utime(damaged, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(reports) == 6
    copies.copy()
    outcomes = {report.name: report.outcome for report in copies.reports}
    assert outcomes == {name: "copied" if name == "part-00002.json" else "resumed" for name in files}
    copies.publish()
    assert copies.read() == files


def two_sources(home: Path) -> CopySandbox:
    return CopySandbox(home, sources={"primary": "${cluster.name}", "second": "${cluster.name}"})


def test_several_sources_are_published_together(tmp_path: Path) -> None:
    copies = two_sources(tmp_path)
    copies.write({"primary/a": b"1", "second/ignored": b"x", "top": b"x"})
    copies.write({"carrier=second/b": b"22", "primary/ignored": b"x"}, "second")
    copies.copy(source="primary")
    assert not copies.is_complete()
    copies.copy(source="second")
    copies.publish(["primary", "second"])
    assert copies.read() == {"primary/a": b"1", "carrier=second/b": b"22"}
    # A late change of one of them leaves the other's part alone.
    copies.write({"carrier=second/c": b"333"}, "second")
    result = copies.copy(source="second")
    assert (result.files_copied, result.to_publish) == (1, True)
    copies.publish(["second"])
    assert copies.read() == {"primary/a": b"1", "carrier=second/c": b"333"}
    assert not copies.copy(source="primary").to_publish
    assert not copies.copy(source="second").to_publish


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    copies = two_sources(tmp_path)
    copies.write({"primary/a": b"1"})
    copies.copy()
    with pytest.raises(StorageError, match="raw-flights on backup: the part of source 'second' is not copied yet"):
        copies.publish(["primary", "second"])
    assert not copies.is_complete()


def test_object_stores_preserve_nothing(tmp_path: Path) -> None:
    memory = {"interfaces": {"write": {"endpoint": "memory://lake"}, "execute": {"endpoint": "local[2]"}}}
    copies = CopySandbox(tmp_path, target=memory)
    copies.write({"a": b"1"})
    with pytest.raises(StorageError) as raised:
        copies.copy(ReplicationOptions(preserve_times=True, preserve_user=True))
    assert str(raised.value) == (
        f"cluster 'backup': cannot copy {PATH} from 'primary': preserveTimes, preserveUser: attributes of files "
        "are preserved from file:// to file:// and from HDFS to HDFS only: remove it"
    )
    with pytest.raises(StorageError, match="an object store publishes by setting the flag: declare availability_flag"):
        CopySandbox(tmp_path, target=memory, flag=None).copy()
