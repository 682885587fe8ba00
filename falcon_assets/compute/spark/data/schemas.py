"""One schema for all files of an input: for Avro, Spark takes that of one file, and loses columns of the others."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import lru_cache
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import listed_by_spark, literal, path_of, path_of_file
from falcon_assets.compute.spark.data.layout import Layout
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import WorkflowError
from falcon_assets.storage.instances.data_files import is_hidden, shown

_AT_ONCE = 8
"""Number of files whose schema is read in parallel: the driver reads the beginning of each."""


def avro_schema(reader: DataFrameReader, data: InputData, files: Sequence[str]) -> StructType:
    """Returns the columns of all files by name, all nullable; those of the first file are first.

    Raises:
        WorkflowError: files have a column of the same name with different types; names the first such file.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="avro") as pool:
        schemas = pool.map(lambda file: reader.load(literal(file)).schema, files)
        known = StructType()
        for file, schema in zip(files, schemas, strict=True):
            known, other = merged(known, schema)
            if other:
                differences = [
                    f"{name} is {now} in {shown(path_of(file))} and {before} in files before it"
                    for name, before, now in other
                ]
                raise WorkflowError(
                    f"{data.title}: the files have no common schema: {'; '.join(differences)}: declare `schema:` in "
                    "the feed, or write the file again"
                )
    return known


def merged(before: StructType, found: StructType, above: str = "") -> tuple[StructType, list[tuple[str, str, str]]]:
    """Returns the fields of both by name, and name and types of those whose types differ."""
    fields = {one.name.lower(): StructField(one.name, one.dataType) for one in before}  # files may lack it
    other: list[tuple[str, str, str]] = []
    for one in found:
        was = fields.get(one.name.lower())
        kind, wrong = (one.dataType, []) if was is None else _together(was.dataType, one.dataType, f"{above}{one.name}")
        other += wrong
        fields[one.name.lower()] = StructField(was.name if was else one.name, kind)
    return StructType(list(fields.values())), other


def _together(before: DataType, found: DataType, name: str) -> tuple[DataType, list[tuple[str, str, str]]]:
    if isinstance(before, StructType) and isinstance(found, StructType):
        return merged(before, found, f"{name}.")
    if isinstance(before, ArrayType) and isinstance(found, ArrayType):
        element, wrong = _together(before.elementType, found.elementType, name)
        return ArrayType(element), wrong
    if isinstance(before, MapType) and isinstance(found, MapType):
        key, wrong = _together(before.keyType, found.keyType, name)
        value, more = _together(before.valueType, found.valueType, name)
        return MapType(key, value), [*wrong, *more]
    types = before.simpleString(), found.simpleString()
    return before, [] if types[0] == types[1] else [(name, *types)]


COLUMNAR = ("parquet", "orc")
_AVRO_OWN = {"avroschema", "avroschemaurl"}
_NOT_MERGED = "[CANNOT_MERGE_SCHEMAS"
_MALFORMED = ("[MALFORMED_RECORD_IN", "[INVALID_JSON_RECORD_TYPE")
_CORRUPT, _NO_COLUMN = "_falcon_corrupt", "_falcon_none"
_SHOWN = 5


def inferred(
    spark: SparkSession, reader: DataFrameReader, data: InputData, paths: Sequence[str], layout: Layout
) -> DataFrame:
    """Returns the input with the schema of all its files; raises WorkflowError with the files if there is none."""
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
    return _NOT_MERGED in explain(error)


def files_of(spark: SparkSession, data: InputData, layout: Layout) -> list[str]:
    """Returns the URLs of the files, by name, with nothing escaped; raises as :func:`.listed_by_spark`."""
    urls = map(unquote, listed_by_spark(spark, data, layout.options))
    return sorted(url for url in urls if not is_hidden(url.rpartition("/")[2]))


def with_texts(schema: StructType, names: Sequence[str]) -> StructType:
    lowered = {name.lower() for name in names}
    return StructType(
        [StructField(one.name, StringType()) if one.name.lower() in lowered else one for one in schema.fields]
    )


def _unlike(reader: DataFrameReader, data: InputData, files: Sequence[str]) -> WorkflowError | None:
    """Names the first file whose columns are incompatible with those of the files before it, by bisection."""
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
        "or write the file again"
    )


def _schema(reader: DataFrameReader, places: Sequence[str]) -> StructType | None:
    try:
        return reader.load(list(places)).schema
    except SPARK_ERRORS as error:
        if is_unlike(error):
            return None
        raise


def _broken(reader: DataFrameReader, data: InputData, paths: Sequence[str]) -> WorkflowError | None:
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
        "correct them, or drop them by the feed's option `mode: DROPMALFORMED`"
    )


FIXED_SCHEMAS = {
    "text": "value string",
    "binaryFile": "path string, modificationTime timestamp, length bigint, content binary",
}

_WIDER = {
    "tinyint": {"smallint", "int", "bigint"},
    "smallint": {"int", "bigint"},
    "int": {"bigint"},
    "float": {"double"},
}


def parse_schema(ddl: str) -> StructType:
    """Parses Spark's DDL, which needs a running session; raises PySpark's ParseException."""
    return deepcopy(_parsed(ddl))  # StructType.add changes it in place


@lru_cache(maxsize=512)
def _parsed(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    return parsed if isinstance(parsed, StructType) else StructType().add("value", parsed)


def compare_orc(data: InputData, found: StructType, declared: StructType) -> None:
    """Raises WorkflowError for columns that do not fit into the declared type: ORC's reader would make them null."""
    types = {field.name.lower(): field.dataType.simpleString() for field in found}
    wrong = [
        f"{field.name} is {types[field.name.lower()]}, declared {field.dataType.simpleString()}"
        for field in declared
        if field.name.lower() in types and not _fits(types[field.name.lower()], field.dataType.simpleString())
    ]
    if wrong:
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): "
            f"the files do not have the declared schema: {'; '.join(wrong)}"
        )


def _fits(found: str, declared: str) -> bool:
    return found == declared or declared in _WIDER.get(found, ())
