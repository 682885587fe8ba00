"""Changes, and how they are merged into the rows of the instance before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf


def quoted(name: str) -> str:
    """The name of a column as Spark SQL writes it."""
    return f"`{name.replace('`', '``')}`"


def newest_of_each(rows: DataFrame, key: Sequence[str], column: str) -> DataFrame:
    """Of several rows with one key, that with the greatest value of the column; nulls are the smallest."""
    rank = "falcon rank"
    window = Window.partitionBy(*map(_column, key)).orderBy(_column(column).desc_nulls_last())
    return rows.withColumn(rank, sf.row_number().over(window)).where(_column(rank) == 1).drop(rank)


def merged(before: DataFrame, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows of ``before`` whose key is not among ``changes``, and these; columns of either that lack are null."""
    keys = changes.select(*map(_column, key)).distinct()
    same = reduce(and_, (before[quoted(one)].eqNullSafe(keys[quoted(one)]) for one in key))
    return before.join(keys, same, "left_anti").unionByName(changes, allowMissingColumns=True)


def _column(name: str) -> Column:
    return sf.col(quoted(name))
