"""Jars of Hadoop that pip does not bring, fetched by Maven's own client and kept where it keeps what it fetched."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock
from pyspark.find_spark_home import _find_spark_home

SPARK_JARS = Path(_find_spark_home(), "jars")
_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"


def hadoop_version() -> str:
    """The version of the Hadoop that Spark brings."""
    (client,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return client.stem.removeprefix("hadoop-client-api-")


def jar(group: str, artifact: str, version: str) -> Path:
    """The file of a jar, without what it depends on."""
    place = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"
    with FileLock(Path(tempfile.gettempdir(), "falcon-tests-maven.lock")):
        if not place.exists():
            command = ["mvn", "-q", "-B", _GET, "-Dtransitive=false", f"-Dartifact={group}:{artifact}:{version}"]
            subprocess.run(command, check=True)
    return place
