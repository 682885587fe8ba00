"""Reads the instances of an input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain, compress

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import (
    flag_options,
    listed_by_spark,
    literal,
    path_of,
    relative_names,
    require_counted,
    steps_of,
)
from falcon_assets.compute.spark.data.layout import Layout, layout_of, wanted_partitions, with_folders, with_partitions
from falcon_assets.compute.spark.data.schemas import (
    COLUMNAR,
    FIXED_SCHEMAS,
    compare_orc,
    files_of,
    inferred,
    is_unlike,
    parse_schema,
    with_texts,
)
from falcon_assets.compute.spark.data.tables import read_partitions
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain
from falcon_assets.errors import WorkflowError
from falcon_assets.model.feed import Feed
from falcon_assets.model.table_uri import TableUri

_TEXTUAL = ("json", "csv", "xml")


def read_input(spark: SparkSession, data: InputData) -> DataFrame:
    """Returns all instances of the input as one DataFrame, lazily.

    A declared schema is enforced: its columns are read, in its order; a column missing in the files is null (in CSV,
    where columns are positional, an error), a value or column of another type is an error. Without a declared schema,
    all files of all instances have one schema with the columns of all, by name; CSV's headers must be equal. For JSON,
    CSV and XML that means Spark's ``mode: FAILFAST``; the feed's options may override it. The declared partitions of
    the feed are columns too, whether the folders are named ``US`` or ``country=US``, and so are undeclared folders like
    ``country=US``, as texts. If the files were counted, it checks that Spark reads them all.

    Raises:
        WorkflowError: the data cannot be read as the feed declares, the files have no common schema, Spark would skip a
            file, or there is no data and no schema is declared.
    """
    try:
        return _read(spark, data)
    except SPARK_ERRORS as error:
        raise WorkflowError(f"{data.title}: {explain(error)}") from error


def _read(spark: SparkSession, data: InputData) -> DataFrame:
    feed = data.feed
    wanted_partitions(data)
    if not data.urls:
        return _empty(spark, data)
    if data.partitions:
        return read_partitions(spark, data)
    if feed.partitions and len(of_depths := _by_depth(data)) > 1:
        return reduce(_union, (_read(spark, one) for one in of_depths))
    layout = layout_of(data, _names(spark, data))
    reader = spark.read.format(feed.format).options(**_options(feed, layout.options))
    paths = [literal(url) for url in data.urls]
    folders = feed.partitions or layout.keys
    declared = None
    if feed.schema_ is None:
        frame = inferred(spark, reader, data, paths, layout)
    elif not folders and not layout.by_spark and feed.format != "orc":
        frame = reader.schema(feed.schema_).load(paths)  # Spark parses the text: no round trip of ours
    else:
        declared = parse_schema(feed.schema_)
        in_files = _without(declared, folders)
        if feed.format == "orc":
            _check_orc(spark, reader, data, layout, in_files)
        frame = reader.schema(in_files).load(paths)
    if layout.by_spark:
        known = {field.name.lower() for field in declared or ()}
        texts = [name for name in layout.by_spark if name.lower() not in known]
        frame = reader.schema(with_texts(frame.schema, texts)).load(paths)
    require_counted(spark, data, layout.options, frame)
    if feed.partitions:
        return with_partitions(frame, data, declared)
    return with_folders(frame, layout.keys, declared) if layout.keys else frame


def _by_depth(data: InputData) -> list[InputData]:
    """Members of a roll-up may lie at different depths, where partitions are folders at others."""
    depths = [len(steps_of(path_of(url))) for url in data.urls]
    return [
        replace(data, urls=tuple(compress(data.urls, own)), counted=tuple(compress(data.counted, own)))
        for depth in sorted(set(depths))
        if (own := [one == depth for one in depths])
    ]


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _names(spark: SparkSession, data: InputData) -> Iterator[str]:
    if data.counted:
        yield from chain.from_iterable(one.sizes for one in data.counted)
    else:
        yield from relative_names(data, listed_by_spark(spark, data, {"recursiveFileLookup": "true"}))


def _options(feed: Feed, layout: Mapping[str, str]) -> dict[str, str]:
    options = {**feed.options, **flag_options(feed), **layout}
    own = {key.lower(): value for key, value in feed.options.items()}
    if feed.format in _TEXTUAL and "mode" not in own:
        options["mode"] = "FAILFAST"
        if feed.format == "csv" and "columnpruning" not in own:
            options["columnPruning"] = "false"  # else rows of which no column is used are not looked at
    if own.get("header", "").lower() == "true" and "enforceschema" not in own:
        options["enforceSchema"] = "false"  # Spark's word for: compare the header
    if feed.format in COLUMNAR and "mergeschema" not in own:
        options["mergeSchema"] = "true"  # else it is that of one file, and the columns of others are lost
    return options


def _empty(spark: SparkSession, data: InputData) -> DataFrame:
    feed = data.feed
    text = feed.schema_ or FIXED_SCHEMAS.get(feed.format)
    if text is None:
        raise WorkflowError(
            f"input {data.name!r}: no instance of feed {feed.name!r} is available, and without a declared schema an "
            "empty input has no columns: declare `schema:` in the feed"
        )
    schema = parse_schema(text)
    present = {field.name.lower() for field in schema}
    keys = TableUri.parse(feed.table.uri).keys if feed.table else ()
    for name in (*feed.partitions, *(key for key, _ in keys)):
        if name.lower() not in present:
            schema = schema.add(name, "string")
    return spark.createDataFrame([], schema)


def _without(schema: StructType, names: tuple[str, ...]) -> StructType:
    lowered = {name.lower() for name in names}
    return StructType([field for field in schema if field.name.lower() not in lowered])


def _check_orc(
    spark: SparkSession, reader: DataFrameReader, data: InputData, layout: Layout, declared: StructType
) -> None:
    try:
        compare_orc(data, reader.load([literal(url) for url in data.urls]).schema, declared)
    except SPARK_ERRORS as error:
        if condition_of(error) == "UNABLE_TO_INFER_SCHEMA":  # no file at all: nothing can be wrong
            return
        if not is_unlike(error):
            raise
        # Each may fit though they are not alike, as `int` and `bigint` do.
        for file in files_of(spark, data, layout):
            compare_orc(data, reader.load(literal(file)).schema, declared)
