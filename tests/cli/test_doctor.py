"""What ``falcon doctor`` prints and returns; what it finds is tested in ``tests/doctor``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from falcon_assets.base.home import require_space
from falcon_assets.errors import SettingsError
from tests.processes import FALCON, environ_with

MACHINE = ("--only", "java", "--only", "home", "--only", "space", "--only", "encoding")


def doctor(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = environ_with(FALCON_JOBS="nothing", **environ)
    return subprocess.run([FALCON, "doctor", *arguments], env=env, check=False, capture_output=True, text=True)


def test_a_ready_machine(tmp_path: Path) -> None:
    result = doctor(*MACHINE, FALCON_HOME=str(tmp_path), FALCON_ENTITY_DEFS=str(tmp_path))
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(
        r"ok      java: Java \d+: .*\nok      encoding: .*\nok      home: .* can be written\n"
        r"ok      home: nobody but its owner and group can enter .*\n"
        r"ok      space: the disk of FALCON_HOME has .* free\nall is well\n",
        result.stdout,
    )


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    """Nothing is made, either."""
    home = tmp_path / "home"
    result = doctor(FALCON_HOME=str(home), FALCON_ENTITY_DEFS=str(tmp_path / "none"), COLUMNS="40", LC_ALL="C")
    assert (result.returncode, result.stderr, home.exists()) == (0, "", False)
    lines = result.stdout.splitlines()
    assert lines.pop() == "0 problems, 1 warning"
    assert [line for line in lines if not line.startswith("ok ")] == [
        f"warning definitions: there is no folder {tmp_path}/none: it should hold the entity definitions; "
        "write some, or set FALCON_ENTITY_DEFS"
    ]


def test_json_and_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wrong = {"FALCON_HOME": str(tmp_path / "file" / "home"), "FALCON_ENTITY_DEFS": "none", "JAVA_HOME": ""}
    locale = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    result = doctor("--json", *MACHINE, PATH=str(tmp_path), **wrong, **locale)
    assert (result.returncode, result.stderr) == (1, "")
    found = json.loads(result.stdout)
    assert (found["total"], found["next"]) == (4, None)
    assert [(one["check"], one["status"]) for one in found["items"]] == [
        ("java", "problem"),
        ("encoding", "problem"),
        ("home", "problem"),
        ("space", "ok"),
    ]
    assert all(one["text"] and bool(one["fix"]) is (one["status"] != "ok") for one in found["items"])


def test_a_bad_setting_is_one_sentence() -> None:
    result = doctor(FALCON_CLOCK="soon")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("problem settings: FALCON_CLOCK: 'soon' is not a clock: ")


def test_a_check_that_is_not_known() -> None:
    result = doctor("--only", "jave")
    assert result.returncode == 2
    assert "'jave' is not one of 'python', 'java'" in result.stderr


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
