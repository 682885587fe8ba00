from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from falcon_assets.compute.spark.jvm import require_java
from falcon_assets.errors import SettingsError


def java_home(folder: Path, script: str) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def test_the_java_of_this_machine_will_do() -> None:
    require_java({"PATH": os.environ["PATH"]})


def test_java_home_goes_before_the_path() -> None:
    real = Path(str(shutil.which("java"))).resolve().parents[1]
    require_java({"JAVA_HOME": str(real), "PATH": ""})


def test_none_at_all() -> None:
    with pytest.raises(SettingsError) as caught:
        require_java({"PATH": ""})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer and none was found (JAVA_HOME is not set): "
        "install one, for example openjdk-17-jre-headless, or set JAVA_HOME"
    )


def test_java_home_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none was found \(JAVA_HOME is "):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("said", "version"),
    [
        pytest.param('openjdk version "11.0.2" 2019-01-15', 11, id="eleven"),
        pytest.param('java version "1.8.0_292"', 8, id="eight"),
    ],
)
def test_too_old(tmp_path: Path, said: str, version: int) -> None:
    home = java_home(tmp_path, f"echo '{said}' >&2")
    with pytest.raises(SettingsError) as caught:
        require_java({"JAVA_HOME": home})
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer, but {home}/bin/java is Java {version} (JAVA_HOME is {home})"
    )


def test_early_access_versions_count(tmp_path: Path) -> None:
    require_java({"JAVA_HOME": java_home(tmp_path, "echo 'openjdk version \"25-ea\" 2025-09-16' >&2")})


def test_no_answer(tmp_path: Path) -> None:
    home = java_home(tmp_path, "exit 1")
    with pytest.raises(SettingsError) as caught:
        require_java({"JAVA_HOME": home})
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer, but {home}/bin/java does not report its version (JAVA_HOME is {home})"
    )
