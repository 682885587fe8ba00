"""Comparison of two data sets by their columns, and by their rows in any order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, struct, to_json
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import WorkflowError

SAMPLE = 10


@dataclass(frozen=True)
class OtherColumn:
    """A column that one of two data sets does not have (None), or that has another type (in Spark SQL)."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Comparison:
    """The differences of two data sets; rows are compared only if all columns are equal.

    ``records`` and ``only`` are numbers of rows, of the first and of the second; duplicates count.
    """

    columns: tuple[OtherColumn, ...]
    records: tuple[int, int]
    only: tuple[int, int] = (0, 0)
    samples: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())

    @property
    def is_same(self) -> bool:
        return not self.columns and self.only == (0, 0) and self.records[0] == self.records[1]


def compare(before: DataFrame, after: DataFrame) -> Comparison:
    """Compares columns, in any order, and rows of two data sets; raises WorkflowError if one is unreadable."""
    try:
        return _compare(before, after)
    except SPARK_ERRORS as error:
        raise WorkflowError(f"the two versions cannot be compared: {explain(error)}") from error


def as_in_table(files: DataFrame, table: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the data of files with the columns of a table, to which other data may have added columns.

    Catalogs ignore the case of names; a missing column is null. ``keys`` are texts in the names of folders.
    """
    own, lowered = {name.lower(): name for name in files.columns}, {key.lower() for key in keys}
    columns = []
    for field in table.schema:
        name = field.name.lower()
        column = _quoted(own.pop(name)) if name in own else lit(None).cast(field.dataType)
        columns.append((column.cast(field.dataType) if name in lowered else column).alias(field.name))
    return files.select(*columns, *map(_quoted, own.values()))


def _compare(before: DataFrame, after: DataFrame) -> Comparison:
    types = [{field.name: field.dataType.simpleString() for field in one.schema} for one in (before, after)]
    first, second = types
    others = tuple(
        OtherColumn(name, first.get(name), second.get(name))
        for name in dict.fromkeys((*first, *second))
        if first.get(name) != second.get(name)
    )
    if others:
        return Comparison(others, (before.count(), after.count()))
    columns = [_comparable(field.name, field.dataType) for field in before.schema]
    left, right = before.select(*columns), after.select(*columns)
    lost, come = left.exceptAll(right), right.exceptAll(left)
    only = (lost.count(), come.count())
    samples = (_sample(lost) if only[0] else (), _sample(come) if only[1] else ())
    return Comparison((), (before.count(), after.count()), only, samples)


def _sample(rows: DataFrame) -> tuple[Any, ...]:
    whole = to_json(struct("*"), {"ignoreNullFields": "false"}).alias("row")
    return tuple(json.loads(row["row"]) for row in rows.limit(SAMPLE).select(whole).collect())


def _comparable(name: str, kind: DataType) -> Column:
    column = _quoted(name)
    return column.cast("string").alias(name) if _is_incomparable(kind) else column


def _quoted(name: str) -> Column:
    return col(f"`{name.replace('`', '``')}`")


def _is_incomparable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_is_incomparable(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _is_incomparable(kind.elementType)
    return isinstance(kind, MapType | VariantType)
