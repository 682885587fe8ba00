"""Files of many instances that one query writes, which are those that each would have written alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from falcon_assets.compute.engines.computing.together_joins import KEY, AloneError
from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.compute.spark.data.input_files import path_of
from falcon_assets.compute.spark.data.writing import NO_MARKER
from falcon_assets.compute.spark.failures import condition_of, explain

_REFUSED = ("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", "INTERNAL_ERROR", "UNRESOLVED_COLUMN")
"""Conditions by which Spark refuses a query when it plans it, though it could be computed for one instance."""


@dataclass(frozen=True)
class BatchRows:
    """The rows of all instances for an output.

    Attributes:
        frame: Its first column is :data:`KEY`, the number of the instance; the others are those of the output.
        order: The order of the rows of an instance; empty: any.
    """

    frame: DataFrame
    order: tuple[Column, ...] = ()


def write_folders(
    rows: BatchRows, outputs: Sequence[OutputData], place: str, schema: pa.Schema, writers: int
) -> list[Path]:
    """Writes a folder for each instance below ``place`` and returns them; ``schema`` is that of an instance alone.

    Raises:
        AloneError: files would not be those that each would have written alone.
        PySparkException: the query failed; rows of one instance may be the cause.
    """
    output = outputs[0]
    names = rows.frame.columns[1:]
    frame = rows.frame.select(KEY, *(_like(rows.frame, name, schema) for name in names)).repartition(writers, KEY)
    if rows.order:
        frame = frame.sortWithinPartitions(KEY, *(f"`{name}`" for name in output.partitions), *rows.order)
    _save(frame, output, place, KEY, *output.partitions)
    folders = [local_folder(place) / f"{KEY}={number}" for number in range(len(outputs))]
    if empty := [folder for folder in folders if not folder.exists()]:
        _save(_no_rows(frame, schema), output, nothing := f"{place}/{KEY}=none")
        for folder in empty:
            shutil.copytree(local_folder(nothing), folder)
    for folder in {folders[0], *empty[:1]}:
        found = schema_of(folder, output.feed.format)
        if not found.equals(schema, check_metadata=True):
            differing = [f"{one} and not {two}" for one, two in zip(found, schema, strict=False) if one != two]
            raise AloneError(f"its columns are not those of an instance alone: {', '.join(differing)}")
    return folders


def _save(frame: DataFrame, output: OutputData, place: str, *keys: str) -> None:
    writer = frame.write.format(output.feed.format).options(**output.feed.options).option(NO_MARKER, "false")
    try:
        (writer.partitionBy(*keys) if keys else writer).save(place)
    except Exception as error:
        if isinstance(error, AnalysisException | ParseException) or condition_of(error).startswith(_REFUSED):
            raise AloneError(f"Spark refuses it for many instances at once: {explain(error)}") from error
        raise


def _like(frame: DataFrame, name: str, schema: pa.Schema) -> Column:
    """A column that is null nowhere if it is so in the file of the example: Spark makes a lateral join an outer one."""
    column, at = sf.col(f"`{name}`"), schema.get_field_index(name)
    if at < 0 or schema.field(at).nullable:
        return column
    known = sf.when(sf.col(KEY) >= 0, column)  # without it Spark thinks first that nothing has to be replaced
    return sf.coalesce(known, _no_null(frame.schema[name].dataType)).alias(name)


def _no_null(kind: DataType) -> Column:
    empty: dict[type[DataType], Any] = {
        BinaryType: b"",
        BooleanType: False,
        DateType: date(1970, 1, 1),
        NumericType: 0,
        StringType: "",
        TimestampType: datetime(1970, 1, 1, tzinfo=UTC),
    }
    if isinstance(kind, ArrayType):
        return sf.array().cast(kind)
    if isinstance(kind, MapType):
        return sf.create_map().cast(kind)
    if isinstance(kind, StructType):
        fields = [
            (sf.lit(None).cast(one.dataType) if one.nullable else _no_null(one.dataType)).alias(one.name)
            for one in kind.fields
        ]
        return sf.struct(*fields)
    for one, value in empty.items():
        if isinstance(kind, one):
            return sf.lit(value).cast(kind)
    raise AloneError(f"Spark makes a column nullable that is not so alone, of type {kind.simpleString()}")


def _no_rows(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of such a file and their nulls, which Spark loses where it drops all rows."""
    kinds = {one.name: one.dataType for one in frame.schema.fields}
    fields = [StructField(one.name, kinds[one.name], one.nullable) for one in schema if one.name in kinds]
    nothing = pa.table({one.name: pa.nulls(0) for one in fields})  # of a list, PySpark would make rows in Python
    return frame.sparkSession.createDataFrame(nothing, StructType(fields))


def move(places: Mapping[Path, Path]) -> None:
    """All of them or none, but for those where nobody waits any more; raises AloneError."""
    try:
        for folder, place in places.items():
            with suppress(FileNotFoundError):  # who was to publish it has been stopped
                folder.rename(place)
    except OSError as error:  # they belong to another user, for example
        for place in places.values():
            shutil.rmtree(place, ignore_errors=True)
        raise AloneError(f"what Spark writes for many cannot be moved: {error}") from error


def local_folder(url: str) -> Path:
    """Raises AloneError."""
    if not url.startswith("file:"):
        raise AloneError(f"its output is written to {url.partition(':')[0]}:, and not to folders of this machine")
    return Path(path_of(url))


def _files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith((".", "_")))


def schema_of(folder: Path, file_format: str) -> pa.Schema:
    """The schema of the first file, as the file has it."""
    first = _files(folder)[0]
    return pq.read_schema(first) if file_format == "parquet" else orc.ORCFile(first).schema


def records_in(folder: Path, file_format: str) -> int:
    """Counted by what the files say of themselves."""
    if file_format == "parquet":
        return sum(pq.read_metadata(file).num_rows for file in _files(folder))
    return sum(orc.ORCFile(file).nrows for file in _files(folder))


@contextmanager
def removed_at_the_end(urls: Sequence[str]) -> Iterator[None]:
    """Raises AloneError where they are no folders of this machine."""
    with ExitStack() as left:
        for url in urls:
            left.callback(shutil.rmtree, local_folder(url), ignore_errors=True)
        yield
