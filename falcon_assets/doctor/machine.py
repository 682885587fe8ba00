"""Checks of this machine: Python, Java, Spark, encodings and limits."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from falcon_assets.compute.spark.endpoints.confs import without_secrets
from falcon_assets.compute.spark.jvm import OLDEST, require_java, utf8_locale
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.errors import FalconError, SettingsError

_OLDEST_PYTHON = (3, 11)
_JAVA = f"install Java {OLDEST} or newer, for example openjdk-{OLDEST}-jre-headless, or set JAVA_HOME"
ENOUGH_FILES = 1024
"""Sensors, runs and Spark each open hundreds of files and sockets."""


def check_python(_context: CheckContext) -> Iterator[Diagnosis]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("falcon-assets", "dagster"))
    if sys.version_info < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        yield problem(f"Python {platform.python_version()} is too old", f"install Python {oldest} or newer")
        return
    yield ok(f"Python {platform.python_version()}, {packages}")


def check_java(context: CheckContext) -> Iterator[Diagnosis]:
    try:
        path, found = require_java(context.environ)
    except SettingsError as error:
        yield problem(str(error).partition("): ")[0] + ")", _JAVA)
    else:
        yield ok(f"Java {found}: {path}")


def check_spark(context: CheckContext) -> Iterator[Diagnosis]:
    """Which Spark is installed, and whether the execute endpoints answer of clusters without executors."""
    from falcon_assets.compute.spark.endpoints.reachable import (  # noqa: PLC0415 - loads Spark's client
        require_reachable,
    )

    yield judge_spark_home(context.environ.get("SPARK_HOME"), installed_spark())
    store = context.entities_if_sound()
    names = {one.cluster for one in store.workloads if not store.clusters[one.cluster].executors} if store else ()
    for name in sorted(names):
        execute = store.clusters[name].interfaces.execute.endpoint if store else ""
        try:
            require_reachable(name, execute)
        except FalconError as error:
            text, _, fix = str(error).rpartition("): ")
            yield problem(f"{text})", fix)
        else:
            yield ok(f"cluster {name!r} computes on {without_secrets(execute)}")


def check_capture(context: CheckContext) -> Iterator[Diagnosis]:
    from falcon_assets.compute.spark.capture.listener_jar import ListenerJar  # noqa: PLC0415 - loads PySpark

    jar = ListenerJar(context.settings.home)
    if said := jar.problem:
        fix = f"fix that: the next session compiles it again; the compiler's output is in {jar.log}"
        yield warning(f"what workflows read and write is not captured: {said.splitlines()[0]}", fix)
    elif jar.path.exists():
        yield ok(f"what workflows read and write is captured: {jar.path}")
    else:
        yield ok("the listener that captures what workflows read and write is compiled when a session needs it")


def installed_spark() -> Path:
    """Returns the folder of the Spark within PySpark."""
    from importlib.util import find_spec  # noqa: PLC0415 - for this only

    found = find_spec("pyspark")
    return Path(found.origin).parent if found and found.origin else Path()


def judge_spark_home(declared: str | None, installed: Path) -> Diagnosis:
    """Judges SPARK_HOME, which PySpark uses: it may be of another version."""
    if declared and Path(declared).resolve() != installed.resolve():
        return warning(
            f"SPARK_HOME is {declared}, which is not the Spark of PySpark {version('pyspark')}", "unset SPARK_HOME"
        )
    return ok(f"PySpark {version('pyspark')}")


def check_encoding(_context: CheckContext) -> Iterator[Diagnosis]:
    """Whether file names with any letter can be read."""
    yield judge_encoding(sys.getfilesystemencoding(), jvm=bool(utf8_locale()) or sys.platform != "linux")


def judge_encoding(encoding: str, *, jvm: bool) -> Diagnosis:
    """Judges Python's encoding of file names; ``jvm``: there is a locale with which a JVM decodes names as UTF-8."""
    if encoding.lower() not in ("utf-8", "utf8"):
        return problem(
            f"Python decodes file names as {encoding}: names with other characters cannot be used",
            "set LC_ALL=C.UTF-8, and do not set PYTHONUTF8=0",
        )
    if not jvm:
        return warning(
            "this machine has no UTF-8 locale: Spark does not find files such as ü.json",
            "install C.UTF-8 or en_US.UTF-8",
        )
    return ok("names of files are UTF-8")


def check_limits(_context: CheckContext) -> Iterator[Diagnosis]:
    yield judge_files(*resource.getrlimit(resource.RLIMIT_NOFILE))


def judge_files(soft: int, hard: int) -> Diagnosis:
    """Judges the limits of open files; -1: unlimited."""
    if 0 <= soft < ENOUGH_FILES:
        can = f"ulimit -n {ENOUGH_FILES}" if not 0 <= hard < ENOUGH_FILES else "raise the hard limit (limits.conf)"
        return warning(f"a process may open {soft} files only: Spark and sensors run out of them", can)
    return ok(f"a process may open {'any number of' if soft < 0 else soft} files")
