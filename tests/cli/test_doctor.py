from __future__ import annotations

import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from falcon_assets.errors import SettingsError
from falcon_assets.orchestration.platform.postgres import require_space
from tests.processes import FALCON, environ_with


def doctor(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = environ_with(**environ)
    return subprocess.run([FALCON, "doctor", *arguments], env=env, check=False, capture_output=True, text=True)


def test_a_ready_machine_is_silent(tmp_path: Path) -> None:
    result = doctor(FALCON_HOME=str(tmp_path))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_an_occupied_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = doctor("--port", str(port), FALCON_HOME=str(tmp_path))
    assert result.returncode == 1
    assert result.stderr == (
        f"Error: port {port} on 127.0.0.1 cannot be used (Address already in use): stop what listens there, or choose "
        f"another one, for example {port + 1}\n"
    )


def test_missing_java_is_one_sentence(tmp_path: Path) -> None:
    result = doctor(FALCON_HOME=str(tmp_path), PATH=str(tmp_path), JAVA_HOME="")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert "Java 17" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = doctor(FALCON_HOME=str(tmp_path / "file" / "home"))
    assert result.returncode == 1
    assert result.stderr == f"Error: FALCON_HOME {tmp_path}/file/home cannot be used: Not a directory\n"


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        require_space(tmp_path, needed=1 << 62)
    free = shutil.disk_usage(tmp_path).free
    said = re.fullmatch(
        rf"no disk space for FALCON_HOME {tmp_path}: (\d+) MiB are free, 4398046511104 MiB are needed; "
        "free some or point FALCON_HOME to another disk",
        str(caught.value),
    )
    assert said is not None
    assert abs(int(said[1]) - (free >> 20)) < 1024
