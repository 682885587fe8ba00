"""Programs in Python, which do with Spark what people do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceReader

from tests.spark.capture.corpus.world import DRIVER, Program, World

PROGRAMS: list[Program] = []


def program(
    name: str, rows: str | None, /, *, reads: str = "", writes: str = "", unread: str = "", **columns: str
) -> Callable[[Callable[[World], DataFrame | None]], None]:
    """Adds the function below."""

    def add(run: Callable[[World], DataFrame | None]) -> None:
        PROGRAMS.append(Program(name, run, columns, rows, reads, writes, unread))

    return add


class Numbers(DataSource):
    """Rows that Python makes."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "n int"

    def reader(self, schema: Any) -> DataSourceReader:
        class Reader(DataSourceReader):
            def read(self, partition: Any) -> Iterator[tuple[int]]:
                yield (1,)

        return Reader()


@program("a table of a database", "a.k jdbc.k", reads="jdbc", unread="b", v="a.v", score="jdbc.score")
def _(world: World) -> DataFrame:
    table = world.spark.read.jdbc(world.jdbc, "t", properties={"driver": DRIVER})
    return world.a.join(table, world.a.k == table.k).select("v", table.score.alias("score"))


@program("into a table of a database", "", writes="jdbc", v="a.v")
def _(world: World) -> DataFrame:
    world.b.write.jdbc(world.jdbc, "aside", "overwrite", {"driver": DRIVER})
    return world.a.select("v")


@program("a data source in Python", "", reads="numbers", unread="a b", n="numbers.n")
def _(world: World) -> DataFrame:
    world.spark.dataSource.register(Numbers)
    return world.spark.read.format("numbers").load()


@program("lines as an RDD", None, reads="text", unread="a b", value="text.value")
def _(world: World) -> DataFrame:
    lines = world.spark.sparkContext.textFile(world.url("data/text/lines.txt"))
    return lines.map(lambda line: (line,)).toDF(["value"])


@program("whole files as an RDD", None, reads="text", unread="a b", value="text.value")
def _(world: World) -> DataFrame:
    files = world.spark.sparkContext.wholeTextFiles(world.url("data/text"))
    return files.map(lambda one: (one[1],)).toDF("value string")


@program("an input as an RDD", None, unread="b", k="a.k", more="a.v")
def _(world: World) -> DataFrame:
    return world.a.rdd.map(lambda row: (row.k, row.v + 1)).toDF("k string, more int")


@program("an undeclared feed as an RDD", None, reads="names", unread="a b", label="names.label")
def _(world: World) -> DataFrame:
    names = world.spark.read.parquet(world.url("data/names/05"))
    return names.rdd.map(lambda row: (row.label,)).toDF("label string")


@program("an RDD that is collected", "", reads="names", unread="b", v="a.v", label="names.label")
def _(world: World) -> DataFrame:
    found = world.spark.read.parquet(world.url("data/names/05")).rdd.map(lambda row: row.label).collect()
    return world.a.select("v", sf.lit(found[0]).alias("label"))


@program("rows that were collected", None, unread="b", k="a.k", v="a.v")
def _(world: World) -> DataFrame:
    return world.spark.createDataFrame(world.a.select("k", "v").collect(), "k string, v int")


@program("a value that was collected", "", k="b.k", top="a.v")
def _(world: World) -> DataFrame:
    top = world.a.agg(sf.max("v")).first()[0]
    return world.b.select("k", sf.lit(top).alias("top"))


@program("a filter by what was collected", "a.v b.n", n="b.n")
def _(world: World) -> DataFrame:
    low = world.a.agg(sf.min("v")).collect()[0][0]
    return world.b.where(sf.length("n") > low).select("n")


@program("a list that was collected", "a.k b.k", n="b.n")
def _(world: World) -> DataFrame:
    keys = [row.k for row in world.a.select("k").toLocalIterator()]
    return world.b.where(sf.col("k").isin(keys)).select("n")


@program("a limit that was collected", "a.v", n="b.n")
def _(world: World) -> DataFrame:
    return world.b.limit(world.a.agg(sf.min("v")).head()[0]).select("n")


@program("through pandas", None, unread="b", k="a.k", twice="a.v")
def _(world: World) -> DataFrame:
    known = world.a.select("k", "v").toPandas()
    known["twice"] = known["v"] * 2
    return world.spark.createDataFrame(known[["k", "twice"]])


@program("a metric that is observed", "", k="b.k", top="a.v")
def _(world: World) -> DataFrame:
    seen = Observation()
    world.a.observe(seen, sf.max("v").alias("top")).write.format("noop").mode("overwrite").save()
    return world.b.select("k", sf.lit(seen.get["top"]).alias("top"))


@program("a function that remembers", "", n="b.n", more="a.v b.n")
def _(world: World) -> DataFrame:
    top = world.a.agg(sf.max("v")).first()[0]
    longer = sf.udf(lambda text: len(text) + top, "int")
    return world.b.select("n", longer("n").alias("more"))


@program("a function of Python", "", unread="a", loud="b.n")
def _(world: World) -> DataFrame:
    return world.b.select(sf.udf(str.upper, "string")("n").alias("loud"))


@program("a session of its own", "", reads="names", unread="b", v="a.v", label="names.label")
def _(world: World) -> DataFrame:
    other = world.spark.newSession()
    label = other.read.parquet(world.url("data/names/05")).first().label
    return world.a.select("v", sf.lit(label).alias("label"))


@program("a session of its own in a thread", "", reads="place", writes="aside", unread="b", v="a.v")
def _(world: World) -> DataFrame:
    def work() -> None:
        other = world.spark.newSession()
        other.read.parquet(world.url("data/place")).write.mode("overwrite").parquet(world.url("data/aside"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return world.a.select("v")


@program("a thread", "", reads="names", unread="b", v="a.v", n="names.label")
def _(world: World) -> DataFrame:
    found: list[str] = []

    def work() -> None:
        found.append(world.spark.read.parquet(world.url("data/names/05")).first().label)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return world.a.select("v", sf.lit(found[0]).alias("n"))


@program("an RDD in a thread", "", reads="text", unread="b", v="a.v", n="text.value")
def _(world: World) -> DataFrame:
    found: list[str] = []

    def work() -> None:
        found.append(world.spark.sparkContext.textFile(world.url("data/text/lines.txt")).first())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return world.a.select("v", sf.lit(found[0]).alias("n"))


@program("two feeds in one read", "", reads="names", unread="b", k="a.k names.k")
def _(world: World) -> DataFrame:
    both = world.spark.read.parquet(world.url("data/a/05"), world.url("data/names/05"))
    return both.select("k")


@program("everything below a folder", "", reads="names", unread="b", k="a.k names.k")
def _(world: World) -> DataFrame:
    found = world.spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    folders = [world.url("data/a"), world.url("data/names")]
    return found.schema("k string").parquet(*folders).select("k")


@program("a pattern", "", reads="names", unread="b", k="a.k names.k")
def _(world: World) -> DataFrame:
    return world.spark.read.schema("k string").parquet(world.url("data/") + "/[an]*[as]/05", world.url("data/a/05"))


@program("two appends", None, k="a.k b.k", v="a.v b.n")
def _(world: World) -> None:
    world.a.select("k", "v").write.parquet(world.url("out"))
    world.b.select("k", sf.length("n").alias("v")).write.mode("append").parquet(world.url("out"))


@program("scratch", "a.v", unread="b", one="a.k")
def _(world: World) -> DataFrame:
    world.a.where("v > 0").select(sf.col("k").alias("kk")).write.mode("overwrite").parquet(world.url("working/one"))
    return world.spark.read.parquet(world.url("working/one")).select(sf.col("kk").alias("one"))


@program("scratch of a scratch", "a.k names.k", reads="names", unread="b", label="names.label")
def _(world: World) -> DataFrame:
    names = world.spark.read.parquet(world.url("data/names/05")).select("k", sf.col("label").alias("l1"))
    names.write.mode("overwrite").parquet(world.url("working/first"))
    first = world.spark.read.parquet(world.url("working/first")).withColumnRenamed("l1", "l2")
    first.write.mode("overwrite").json(world.url("working/second"))
    second = world.spark.read.json(world.url("working/second"))
    return world.a.join(second, "k").select(sf.col("l2").alias("label"))


@program("scratch of an earlier time", "", unread="a b", old="nobody.knows")
def _(world: World) -> DataFrame:
    return world.spark.read.schema("old string").parquet(world.url("working/earlier"))


@program("whole rows", None, unread="b", k="a.k a.v", v="a.k a.v")
def _(world: World) -> DataFrame:
    return world.a.select("k", "v").mapInPandas(lambda parts: parts, "k string, v int")


@program("groups of rows", None, unread="b", k="a.k a.v", v="a.k a.v")
def _(world: World) -> DataFrame:
    return world.a.select("k", "v").groupBy("k").applyInPandas(lambda rows: rows, "k string, v int")


@program("kept in memory", "a.k", unread="b", k="a.k", top="a.v")
def _(world: World) -> DataFrame:
    kept = world.a.groupBy("k").agg(sf.max("v").alias("top")).persist()
    kept.count()
    return kept


@program("cut off", "", unread="b", k="a.k", v="a.v")
def _(world: World) -> DataFrame:
    return world.a.select("k", "v").localCheckpoint()


@program("lines written as an RDD", "", writes="lines", v="a.v")
def _(world: World) -> DataFrame:
    world.b.rdd.map(lambda row: row.n).saveAsTextFile(world.url("data/lines"))
    return world.a.select("v")


@program("a stream", "", reads="names", writes="streamed", unread="b", v="a.v")
def _(world: World) -> DataFrame:
    schema = world.spark.read.parquet(world.url("data/names/05")).schema
    rows = world.spark.readStream.schema(schema).parquet(world.url("data/names/05"))
    to = rows.writeStream.option("checkpointLocation", world.url("working/checkpoint")).trigger(availableNow=True)
    to.start(world.url("data/streamed"), format="parquet").awaitTermination()
    return world.a.select("v")


@program("a structure with another field", "", unread="b", x="a.s", z="a.v")
def _(world: World) -> DataFrame:
    made = world.a.select(sf.col("s").withField("z", sf.col("v")).alias("t"))
    return made.select("t.x", "t.z")


@program("once each", "a.k", unread="b", v="a.v")
def _(world: World) -> DataFrame:
    return world.a.dropDuplicates(["k"]).select("v")


@program("by name", "", k="a.k b.k", v="a.v", n="b.n")
def _(world: World) -> DataFrame:
    return world.a.select("k", "v").unionByName(world.b.select("n", "k"), allowMissingColumns=True)


@program("aside", "", reads="place", writes="aside2", unread="b", v="a.v")
def _(world: World) -> DataFrame:
    world.spark.read.parquet(world.url("data/place")).write.partitionBy("k").mode("overwrite").json(
        world.url("data/aside2")
    )
    return world.a.select("v")


@program("bytes of files", "", reads="text", unread="a b", content="text.content")
def _(world: World) -> DataFrame:
    return world.spark.read.format("binaryFile").load(world.url("data/text")).select("content")
