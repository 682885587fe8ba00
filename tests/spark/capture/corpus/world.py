"""What the programs find: two declared inputs, a feed and a place that nobody declares, and somewhere to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.planning.data_usage import DeclaredData, DeclaredInput, FoundInstance

AT = datetime(2013, 1, 1, 5, tzinfo=UTC)
FEEDS = ("a", "b", "names")


@dataclass(frozen=True)
class World:
    """Where a program runs.

    Attributes:
        spark: Its session.
        folder: Below which all data lies.
        a: The input ``a``: k, v, w, items (an array), s (a structure of x and y).
        b: The input ``b``: k, n.
    """

    spark: SparkSession
    folder: Path
    a: DataFrame
    b: DataFrame

    def url(self, path: str) -> str:
        """Of a place below the folder; ``out`` is the output."""
        return f"file://{self.folder}/{ {'out': 'staging/x/out'}.get(path, path) }"

    @property
    def jdbc(self) -> str:
        """A database with a table ``t``: k, score."""
        return "jdbc:derby:memory:corpus"

    def declared(self) -> DeclaredData:
        """What the process says."""
        inputs = {name: DeclaredInput(name, (self.url(f"data/{name}/05"),)) for name in ("a", "b")}
        return DeclaredData(inputs, {"out": self.url("out")}, [self.url("staging"), self.url("working")])

    def find(self, place: str) -> FoundInstance | None:
        """The instances of feeds."""
        for name in FEEDS:
            if place == f"{self.folder}/data/{name}/05" or place.startswith(f"{self.folder}/data/{name}/05/"):
                return FoundInstance(name, AT)
        return None


@dataclass(frozen=True)
class Program:
    """A program and the truth about it.

    Attributes:
        name: Of it.
        run: Gives the rows of the output; None: it has written them itself.
        columns: By column of the output, what it was made from.
        rows: What decides which rows there are; None: nobody can say exactly (Python code decides).
        reads: What it reads besides its inputs: feeds, or places.
        writes: What it writes besides its output.
        unread: Inputs that it does not read.
    """

    name: str
    run: Callable[[World], DataFrame | None]
    columns: Mapping[str, str]
    rows: str | None
    reads: str
    writes: str
    unread: str


def make_world(spark: SparkSession, folder: Path) -> World:
    """Writes the data, and reads the inputs."""
    rows = {
        "a/05": "SELECT 'x' AS k, 1 AS v, 2 AS w, array(1, 2) AS items, named_struct('x', 5, 'y', 6) AS s "
        "UNION ALL SELECT 'y', 3, 4, array(3), named_struct('x', 7, 'y', 8)",
        "b/05": "SELECT 'x' AS k, 'ex' AS n UNION ALL SELECT 'y', 'why'",
        "names/05": "SELECT 'x' AS k, 'label' AS label",
        "place": "SELECT 'x' AS k, 9 AS p",
    }
    for path, query in rows.items():
        spark.sql(query).coalesce(1).write.parquet((folder / "data" / path).as_uri())
    spark.sql("SELECT 'old' AS old").write.parquet((folder / "working/earlier").as_uri())
    (folder / "data/text").mkdir()
    (folder / "data/text/lines.txt").write_text("x 1\ny 2\n")
    properties = {"driver": DRIVER}
    spark.sql("SELECT 'x' AS k, 7 AS score").write.jdbc(f"{JDBC};create=true", "t", "overwrite", properties)
    return world_in(spark, folder)


JDBC, DRIVER = "jdbc:derby:memory:corpus", "org.apache.derby.iapi.jdbc.AutoloadedDriver"


def world_in(spark: SparkSession, folder: Path) -> World:
    """The same for a session of a program's own."""
    frames: dict[str, Any] = {}
    for name in ("a", "b"):
        frames[name] = spark.read.parquet((folder / "data" / name / "05").as_uri())
        frames[name].createOrReplaceTempView(name)
    return World(spark, folder, frames["a"], frames["b"])
