"""How the Java machines of the tests run: many live for seconds, so what counts is how fast they start."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""One compiler, one collecting thread: half the CPU time of a session that runs a few small jobs."""
_READ_BY = {
    "SPARK_SUBMIT_OPTS": True,  # sessions, servers, programs of spark-submit
    "SPARK_DAEMON_JAVA_OPTS": True,  # the master and the worker of a standalone cluster
    "SPARK_LAUNCHER_OPTS": False,  # the small machine that makes the command line of the others
}
"""Variable of Spark's scripts -> whether what it starts has Spark's classes."""
_MADE = "made.jsa"
_MAKING = (*_QUICK, f"-XX:ArchiveClassesAtExit={_MADE}", "-Xlog:disable")


def quicken(environ: MutableMapping[str, str]) -> None:
    """Lets Spark's programs that inherit ``environ`` start fast; what the user set goes on top of it."""
    # An archive that is not there, or is of other jars, is passed over in silence.
    shared = (*_QUICK, f"-XX:SharedArchiveFile={archive()}", "-Xlog:disable")
    for name, with_archive in _READ_BY.items():
        ours = shlex.join(shared if with_archive else _QUICK)
        given = environ.get(name, "")
        if ours not in given:  # pytest's workers inherit what the first process has set
            environ[name] = f"{ours} {given}".strip()


@cache
def archive() -> Path:
    """Where the archive of Spark's loaded classes is: it saves loading and checking them again (40 % of a start)."""
    java = Path(os.environ.get("JAVA_HOME", "/"), "bin", "java")
    used = [Path(shutil.which("java") or "/"), java, Path(_find_spark_home(), "jars")]
    made_of = [(str(one), one.stat().st_mtime_ns) for one in map(Path.resolve, used) if one.exists()]
    name = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]  # others could not use it
    return Path(__file__).parents[1] / ".pytest_cache" / f"spark-{name}.jsa"


@contextmanager
def archive_made() -> Iterator[None]:
    """Makes the archive meanwhile, unless it is there: once in a checkout.

    It takes 25 to 30 seconds of CPU time, and saves five of each start of dozens. Other checkouts cannot use it: their
    jars lie elsewhere.
    """
    if archive().exists():
        yield
        return
    archive().parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive().parent) as folder:
        maker = subprocess.Popen(
            [sys.executable, __file__, str(archive())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "SPARK_SUBMIT_OPTS": shlex.join(_MAKING), "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(maker.pid, signal.SIGKILL)
            maker.wait()


def _make(target: Path) -> None:
    """Uses what most tests use, in a Java machine that writes at its end what it has loaded."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sf

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    for name in ("json", "parquet"):
        frame = spark.range(9).select((sf.col("id") % 2).alias("key"), sf.col("id").cast("string").alias("text"))
        frame.createOrReplaceTempView("rows")
        spark.sql("SELECT key, max(text) AS text FROM rows GROUP BY key").write.format(name).save(name)
        assert spark.read.format(name).load(name).count() == 2
    spark.stop()
    machine = SparkContext._gateway.proc
    machine.stdin.close()
    machine.wait()
    Path(_MADE).rename(target)


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
