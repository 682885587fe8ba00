"""Locks of files: for their user alone, and whoever waits in vain is told who holds them."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from falcon_assets.base.file_locks import locked
from falcon_assets.errors import LockedError

HOLD = (
    "import sys; from pathlib import Path; from falcon_assets.base.file_locks import locked\n"
    "with locked(Path(sys.argv[1]), 10, 'holds'): print('held', flush=True); sys.stdin.readline()"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_who_waits_in_vain_is_told_who_holds_it_and_what_to_do(file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(LockedError) as told, locked(file, 0.2, "writes the definitions"):
            pass
        holder.communicate(b"\n")
    user = pwd.getpwuid(os.geteuid()).pw_name
    said = str(told.value)
    assert said.startswith(f"process {holder.pid} (of {user}: {sys.executable} -c import sys;")
    assert said.endswith(
        f" writes the definitions, and has held {file} for 0 s: wait until it has ended, or end it, and try again"
    )


def test_it_is_free_when_its_holder_was_killed(file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        holder.kill()
    with locked(file, 0, "writes"):
        pass


def test_threads_wait_for_each_other_too(file: Path) -> None:
    with locked(file, 0, "writes"), pytest.raises(LockedError), locked(file, 0, "writes"):
        pass


def test_nobody_else_can_open_it_also_where_an_earlier_version_made_it(file: Path) -> None:
    file.touch(0o644)
    with locked(file, 0, "writes"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_a_group_shares_has_locks_that_it_shares(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with locked(file, 0, "writes"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o660
    tmp_path.chmod(0o755)
    with locked(file, 0, "writes"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"), locked(file, 0, "writes"):
        pass
    assert not (tmp_path / "elsewhere").exists()
