"""One schema for all files of an input in Avro: Spark takes that of one file, and loses columns of the others."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrameReader
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.dataset import InputData
from falcon_assets.spark.data.paths import literal, path_of
from falcon_assets.storage.instances.data_files import shown

_AT_ONCE = 8
"""So many files are asked for their schema at once: of each the driver reads the beginning."""


def avro_schema(reader: DataFrameReader, data: InputData, files: Sequence[str]) -> StructType:
    """The columns of all files by name, each of which may be null; those of the first file come first.

    Raises:
        WorkflowError: files have a column of the same name with other types; names the first such file.
        PySparkException: a file cannot be read.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="avro") as pool:
        schemas = pool.map(lambda file: reader.load(literal(file)).schema, files)
        known = StructType()
        for file, schema in zip(files, schemas, strict=True):
            known, other = merged(known, schema)
            if other:
                told = [
                    f"{name} is {now} in {shown(path_of(file))} and {before} in files before it"
                    for name, before, now in other
                ]
                raise WorkflowError(
                    f"{data.title}: the files have no common schema: {'; '.join(told)}: declare `schema:` in the feed, "
                    "or have the file written anew"
                )
    return known


def merged(before: StructType, found: StructType, above: str = "") -> tuple[StructType, list[tuple[str, str, str]]]:
    """The fields of both by name, and of those that have different types the name and both types."""
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
