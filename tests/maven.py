"""Jars of Hadoop that pip does not bring, fetched by Maven's own client and kept where it keeps what it fetched."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock
from pyspark.find_spark_home import _find_spark_home

SPARK_JARS = Path(_find_spark_home(), "jars")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-project</artifactId><version>{version}</version>
    <relativePath/>
  </parent>
  <artifactId>connector</artifactId>
  <dependencies>{dependencies}</dependencies>
</project>
"""
"""Of Hadoop's project it has the versions that this was built with, as properties."""
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions>{}</exclusions>
    </dependency>"""
_ALONE = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"


_ANY = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>any</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""


def hadoop_version() -> str:
    """The version of the Hadoop that Spark brings."""
    (client,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return client.stem.removeprefix("hadoop-client-api-")


def jar(group: str, artifact: str, version: str) -> Path:
    """The file of a jar, without what it depends on."""
    place = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"
    with FileLock(Path(tempfile.gettempdir(), "falcon-tests-maven.lock")):
        if not place.exists():
            asked = ["-Dtransitive=false", f"-Dartifact={group}:{artifact}:{version}"]
            subprocess.run(["mvn", "-q", "-B", f"{_PLUGIN}:get", *asked], check=True)
    return place


def connector(folder: Path, artifact: str, *needs: tuple[str, str, str]) -> list[Path]:
    """The jars of a connector of the Hadoop that Spark brings.

    Args:
        folder: Where they are put.
        artifact: The connector's; it comes without what it declares that it needs, which may be half a gigabyte.
        needs: Group, artifact and version of what it needs instead, which come with all that they need.
    """
    own = _DEPENDENCY.format("org.apache.hadoop", artifact, hadoop_version(), _ALONE)
    rest = "".join(_DEPENDENCY.format(*one, "") for one in needs)
    (folder / "pom.xml").write_text(_POM.format(version=hadoop_version(), dependencies=own + rest))
    with FileLock(Path(tempfile.gettempdir(), "falcon-tests-maven.lock")):
        goal = [f"{_PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "-q", "-B", *goal], check=True, cwd=folder)
    return sorted(folder.glob("*.jar"))


def with_needs(folder: Path, group: str, artifact: str, version: str) -> list[Path]:
    """The jars of an artifact and of all that it needs, which are put into the folder once."""
    if not (folder / f"{artifact}-{version}.jar").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_ANY.format(_DEPENDENCY.format(group, artifact, version, "")))
        with FileLock(Path(tempfile.gettempdir(), "falcon-tests-maven.lock")):
            goal = [f"{_PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
            subprocess.run(["mvn", "-q", "-B", *goal], check=True, cwd=folder)
    return sorted(folder.glob("*.jar"))
