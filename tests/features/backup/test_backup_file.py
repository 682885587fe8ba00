"""The file of a backup: it takes its place as a whole, and no changed bit of it is believed."""

from __future__ import annotations

import os
import resource
import signal
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falcon_assets.errors import LockedError, SettingsError
from falcon_assets.features.backup.backup_file import (
    BackupError,
    BackupWriter,
    Contents,
    KeptFile,
    new_backup,
    verified_backup,
)
from tests.processes import forked, killed_before

TEXT = bytes(range(256)) * 4


def written(path: Path, **more: object) -> Contents:
    with new_backup(path) as writer:
        return filled(writer, **more)


def filled(writer: BackupWriter, **more: object) -> Contents:
    with writer.member("definitions/0") as file:
        file.write(TEXT)
        file.write(b"end")
    known = {"made": datetime(2013, 1, 1, tzinfo=UTC), "falcon_assets": "1", "dagster": "2", "clock": ""}
    nothing = {"revision": None, "dagster_revision": None, "tables": (), "finishing": ()}
    files = (KeptFile(tree="definitions", path="a/b.yaml", member="definitions/0", mode=0o640),)
    contents = Contents.model_validate({**known, **nothing, "files": files, "members": writer.members, **more})
    writer.finish(contents)
    return contents


def read(path: Path) -> tuple[Contents, bytes]:
    with verified_backup(path) as reader, reader.open("definitions/0") as file:
        return reader.contents, file.read()


def test_what_was_written_is_read_and_only_the_owner_can(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    path.write_text("an old one")
    path.chmod(0o644)
    contents = written(path)
    assert read(path) == (contents, TEXT + b"end")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["x.backup"]


def test_no_changed_bit_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    contents = written(path)
    whole = path.read_bytes()

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(at=st.integers(0, len(whole) - 1), bit=st.integers(0, 7))
    def changed(at: int, bit: int) -> None:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            found = read(path)
        except BackupError:
            return
        assert found == (contents, TEXT + b"end")  # it was of a date, or the like

    changed()


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_part_is_no_backup(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "x.backup"
    written(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BackupError, match=r"x\.backup is (no backup, or is )?damaged"):
        read(path)


def test_other_files_are_no_backups(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"none cannot be read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(BackupError, match="cannot be read: Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", ""])
def test_no_file_leads_out_of_its_folder(path: str) -> None:
    with pytest.raises(ValueError, match="leads out of its folder"):
        KeptFile(tree="definitions", path=path, member="m", mode=0o600)


def test_a_backup_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    contents = written(path)
    with new_backup(path) as writer:
        writer.finish(Contents.model_construct(**{**dict(contents), "format": 2}))
    with pytest.raises(BackupError, match="is of a version of falcon-assets that this one does not know"):
        read(path)


def test_a_failure_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    path.write_text("an old one")

    def fail() -> None:
        with new_backup(path) as writer, writer.member("definitions/0") as file:
            file.write(TEXT)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"x.backup": "an old one"}


def test_a_kill_leaves_the_old_one_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    steps = ("open", "os.rename")
    step = 1
    while killed_before(step, steps, lambda: written(path)):
        assert not path.exists() or read(path)
        step += 1
    assert step > 2
    assert read(path)
    assert [one.name for one in tmp_path.iterdir()] == ["x.backup"]


def test_one_at_a_time_in_a_folder(tmp_path: Path) -> None:
    def second() -> None:
        with pytest.raises(LockedError, match="writes a backup"):
            written(tmp_path / "other.backup")

    with new_backup(tmp_path / "x.backup") as writer:
        assert os.waitpid(forked(second), 0)[1] == 0
        filled(writer)
    assert read(tmp_path / "x.backup")


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (lambda folder: folder / "none" / "x.backup", "No such file or directory"),
        (lambda folder: folder / "file" / "x.backup", "Not a directory"),
    ],
    ids=["no-folder", "in-a-file"],
)
def test_where_nothing_can_be_written(tmp_path: Path, place: Callable[[Path], Path], why: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=f"x.backup cannot be written: {why}"):
        written(place(tmp_path))


def test_a_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x.backup"
    path.write_text("an old one")

    def short() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        refused = pytest.raises(SettingsError, match=r"x\.backup cannot be written: File too large")
        with refused, new_backup(path) as writer, writer.member("definitions/0") as file:
            file.write(os.urandom(1 << 20))

    assert os.waitpid(forked(short), 0)[1] == 0
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"x.backup": "an old one"}
