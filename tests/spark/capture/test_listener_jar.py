from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest

from falcon_assets.compute.spark.capture import listener_jar
from falcon_assets.compute.spark.capture.listener_jar import CaptureError, ListenerJar, loading
from tests.listener import LISTENER_HOME, share_listener


def failing_java(folder: Path, says: str) -> dict[str, str]:
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17"\' && exit 0\necho {says}\nexit 1\n')
    java.chmod(0o755)
    return {**os.environ, "JAVA_HOME": str(folder / "java")}


@pytest.mark.soak
def test_it_is_compiled_once_however_many_ask_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(lambda _: ListenerJar(tmp_path).made(os.environ), range(4)))
    (jar,) = made
    assert [one.name for one in jar.parent.iterdir()] == [jar.name]
    assert jar.parent.stat().st_mode & 0o777 == 0o700
    assert "org/apache/spark/sql/falcon/CaptureListener.class" in ZipFile(jar).namelist()
    before = jar.stat().st_mtime_ns
    assert ListenerJar(tmp_path).made({}).stat().st_mtime_ns == before


def test_what_cannot_be_compiled_says_why_until_it_can(tmp_path: Path) -> None:
    jar = ListenerJar(tmp_path)
    with pytest.raises(CaptureError, match=r"^Scala's compiler in .*/jars failed with PySpark .*: no such class$"):
        jar.made(failing_java(tmp_path, "no such class"))
    assert jar.problem.endswith("no such class")
    assert [one.suffix for one in jar.path.parent.iterdir()] == [".log"]
    share_listener(tmp_path)
    assert jar.made({}) == jar.path


def test_without_java_spark_is_started_without_it(tmp_path: Path) -> None:
    given = loading(tmp_path, {"PATH": "", "JAVA_HOME": str(tmp_path)}, {})
    assert (given.confs, given.environ) == ({}, {})
    assert "Spark needs Java" in ListenerJar(tmp_path).problem


def test_extensions_and_class_paths_of_others_stay(tmp_path: Path) -> None:
    share_listener(tmp_path)
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("# ours\nspark.sql.extensions   org.delta.Delta\nspark.other=1\n")
    jar = str(ListenerJar(tmp_path).path)
    extension = "org.apache.spark.sql.falcon.CaptureExtension"
    environ = {"SPARK_CONF_DIR": str(conf), "SPARK_DIST_CLASSPATH": "/opt/more/*"}
    given = loading(tmp_path, environ, {})
    assert given.confs == {"spark.sql.extensions": f"org.delta.Delta,{extension}"}
    assert given.environ == {"SPARK_DIST_CLASSPATH": f"/opt/more/*:{jar}"}
    declared = loading(tmp_path, environ, {"spark.sql.extensions": "org.iceberg.Iceberg"})
    assert declared.confs == {"spark.sql.extensions": f"org.iceberg.Iceberg,{extension}"}
    assert loading(tmp_path, {"SPARK_CONF_DIR": str(tmp_path)}, {}).confs == {"spark.sql.extensions": extension}


def test_a_home_that_no_class_path_can_name(tmp_path: Path) -> None:
    home = tmp_path / "a:b"
    with pytest.raises(CaptureError, match=r"^no class path can name .*/a:b/spark/.*, which holds ':': choose another"):
        ListenerJar(home).made(os.environ)
    assert not home.exists()
    assert ListenerJar(home).problem


def test_another_source_is_another_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ListenerJar(LISTENER_HOME).path
    (tmp_path / "scala").mkdir()
    (tmp_path / "scala" / "Other.scala").write_text("class Other")
    monkeypatch.setattr(listener_jar, "__file__", str(tmp_path / "listener_jar.py"))
    assert ListenerJar(LISTENER_HOME).path != before
