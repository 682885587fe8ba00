"""The schema of an input whose feed declares none: one for all files, or an error that names those that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.avro_schemas import avro_schema
from falcon_assets.spark.data.dataset import InputData
from falcon_assets.spark.data.input_files import listed_by_spark
from falcon_assets.spark.data.layout import Layout
from falcon_assets.spark.data.paths import literal, path_of, path_of_file
from falcon_assets.spark.failures import SPARK_ERRORS, explain
from falcon_assets.storage.instances.data_files import is_hidden, shown

COLUMNAR = ("parquet", "orc")
"""Formats whose files know their columns."""
_AVRO_OWN = {"avroschema", "avroschemaurl"}
"""Options that say the schema of Avro."""
_NOT_MERGED = "[CANNOT_MERGE_SCHEMAS"
_MALFORMED = ("[MALFORMED_RECORD_IN", "[INVALID_JSON_RECORD_TYPE")
_CORRUPT, _NO_COLUMN = "_falcon_corrupt", "_falcon_none"
_SHOWN = 5


def inferred(
    spark: SparkSession, reader: DataFrameReader, data: InputData, paths: Sequence[str], layout: Layout
) -> DataFrame:
    """The input with the schema of all its files.

    Raises:
        WorkflowError: the files have no common schema, or records are broken; names the files.
        PySparkException: they cannot be read.
    """
    own = {key.lower() for key in data.feed.options}
    try:
        frame = reader.load(list(paths))
        frame.schema  # noqa: B018 - Connect looks at it only then
        if data.feed.format == "avro" and not own & _AVRO_OWN:
            frame = reader.schema(avro_schema(reader, data, files_of(spark, data, layout))).load(list(paths))
    except SPARK_ERRORS as error:
        found = None
        if is_unlike(error):
            found = _unlike(reader, data, files_of(spark, data, layout))
        elif any(name in explain(error) for name in _MALFORMED):
            found = _broken(reader, data, paths)
        if found is None:
            raise
        raise found from error
    return frame


def is_unlike(error: BaseException) -> bool:
    """Whether Spark failed because the columns of files do not go together."""
    return _NOT_MERGED in explain(error)


def files_of(spark: SparkSession, data: InputData, layout: Layout) -> list[str]:
    """The URLs of the files of an input, by name, with nothing escaped.

    Raises:
        PySparkException: the folders cannot be listed.
    """
    urls = map(unquote, listed_by_spark(spark, data, layout.options))
    return sorted(url for url in urls if not is_hidden(url.rpartition("/")[2]))


def with_texts(schema: StructType, names: Sequence[str]) -> StructType:
    """``schema`` with these columns as texts, where it has them."""
    lowered = {name.lower() for name in names}
    return StructType(
        [StructField(one.name, StringType()) if one.name.lower() in lowered else one for one in schema.fields]
    )


def _unlike(reader: DataFrameReader, data: InputData, files: Sequence[str]) -> WorkflowError | None:
    """Names the first file whose columns do not go with those of the files before it; few looks find it."""
    places = [literal(file) for file in files]
    fits, fails = 0, len(places)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if _schema(reader, places[:middle]) is None:
            fails = middle
        else:
            fits = middle
    before, found = _schema(reader, places[:fits]), _schema(reader, places[fits:fails])
    if before is None or found is None:
        return None
    types = {one.name.lower(): one.dataType.simpleString() for one in before}
    other = [
        f"{one.name} is {one.dataType.simpleString()} in {shown(path_of(files[fits]))} and "
        f"{types[one.name.lower()]} in files before it"
        for one in found
        if types.get(one.name.lower(), text := one.dataType.simpleString()) != text
    ]
    return WorkflowError(
        f"{data.title}: the files have no common schema: {'; '.join(other)}: declare `schema:` in the feed, "
        "or have the file written anew"
    )


def _schema(reader: DataFrameReader, places: Sequence[str]) -> StructType | None:
    try:
        return reader.load(list(places)).schema
    except SPARK_ERRORS as error:
        if is_unlike(error):
            return None
        raise


def _broken(reader: DataFrameReader, data: InputData, paths: Sequence[str]) -> WorkflowError | None:
    """Names the files with broken records."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    records = reader.options(**options).schema(f"{_NO_COLUMN} string, {_CORRUPT} string").load(list(paths))
    found = records.selectExpr("_metadata.file_path AS file", _NO_COLUMN, _CORRUPT).where(
        f"{_CORRUPT} IS NOT NULL AND {_NO_COLUMN} IS NULL"  # Spark refuses to look at the first alone
    )
    counts = found.groupBy("file").count().orderBy("file").limit(_SHOWN + 1).collect()
    if not counts:
        return None
    texts = [f"{shown(path_of_file(row['file']))} ({row['count']})" for row in counts[:_SHOWN]]
    more = " and more" if len(counts) > _SHOWN else ""
    return WorkflowError(
        f"{data.title}: records are no {data.feed.format.upper()}, so many in each file: {', '.join(texts)}{more}: "
        "correct them, or say in the feed's options what becomes of them (`mode: DROPMALFORMED`)"
    )
