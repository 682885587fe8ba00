"""Measures data on Spark: the aggregates of all checks, and the profile, in one query; the rest check by check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from falcon_assets.compute.engines.computing.task import exits_refused
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain, is_of_spark
from falcon_assets.errors import ExpressionError, FalconError, WorkflowError
from falcon_assets.features.quality.profile import ColumnProfile, column_profile, profile_sql, profiled_columns
from falcon_assets.model.quality_check import Figures, QualityCheck
from falcon_assets.model.spark_schema import SparkType

_VIEW, _OTHER = "data", "other_data"
_AT_ONCE = 1000
"""Aggregates in a query: Spark compiles more than that for longer than it computes."""
_WORD = re.compile(r"\w+")
_Wanted: TypeAlias = Mapping[Any, str]


@dataclass(frozen=True)
class CheckedInstance:
    """The second argument of functions of the rule ``python``; ``nominal_time`` is aware, in UTC."""

    feed: str
    cluster: str
    nominal_time: datetime


@dataclass(frozen=True)
class Measured:
    """Figures by title of the check, and problems of those that cannot be measured."""

    figures: Mapping[str, Figures]
    problems: Mapping[str, str] = field(default_factory=dict)


class InstanceMeasuring:
    """Fulfils :class:`.Measuring`: the data of an instance in a session of its own; ``other`` reads another feed."""

    def __init__(
        self, spark: SparkSession, data: DataFrame, instance: CheckedInstance, other: Callable[[str], DataFrame]
    ) -> None:
        self._spark, self._data, self._instance, self._other = spark, data, instance, other
        self.row = spark_type(data.schema)
        data.createOrReplaceTempView(_VIEW)

    def rows(self, sql: str) -> list[Sequence[Any]]:
        return [tuple(row) for row in self._spark.sql(sql).collect()]

    def other(self, feed: str) -> tuple[str, SparkType]:
        found = self._other(feed)
        found.createOrReplaceTempView(_OTHER)
        return _OTHER, spark_type(found.schema)

    def violations(self, function: str) -> int:
        name, _, attribute = function.partition(":")
        try:
            with exits_refused():
                found = getattr(import_module(name), attribute)(self._data, self._instance)
                if isinstance(found, bool):
                    return int(not found)
                return found if isinstance(found, int) else int(found.count())
        except (Exception, SystemExit) as error:
            said = explain(error) if is_of_spark(error) else f"{type(error).__name__}: {error}"
            raise ExpressionError(f"{function}: {said}") from error

    def measure(self, checks: Iterable[QualityCheck]) -> Measured:
        """Raises WorkflowError where that is because of Spark, and nothing is known of the data."""
        figures, problems = dict[str, dict[str, Any]](), dict[str, str]()
        wanted = dict[str, dict[tuple[str, str], str]]()
        checks = list(checks)
        for check in checks:
            try:
                wanted[check.title] = {(check.title, name): sql for name, sql in check.aggregates(self.row).items()}
            except ExpressionError as error:
                problems[check.title] = str(error)
        for (title, name), value in self._aggregates(wanted, problems).items():
            figures.setdefault(title, {})[name] = value
        for check in checks:
            if check.title in figures:
                try:
                    figures[check.title] |= check.measure(self)
                except (*SPARK_ERRORS, ExpressionError) as error:
                    del figures[check.title]
                    problems[check.title] = self._own_problem(error)
        return Measured(figures, problems)

    def profile(self) -> tuple[int, tuple[ColumnProfile, ...]]:
        """The number of rows, and the figures of each column; raises WorkflowError."""
        columns = list(profiled_columns(self.row))
        wanted: dict[Any, str] = {"records": "count(1)"}
        for number, column in enumerate(columns):
            wanted |= {(number, name): sql for name, sql in profile_sql(column).items()}
        try:
            found = self._query(wanted)
        except SPARK_ERRORS as error:
            raise WorkflowError(f"the data cannot be profiled: {explain(error)}") from error
        of_columns: list[dict[str, Any]] = [{} for _ in columns]
        records = found.pop("records")
        for (number, name), value in found.items():
            of_columns[number][name] = value
        return records, tuple(map(column_profile, columns, of_columns))

    def records(self) -> int:
        """The number of rows; raises WorkflowError where the data cannot be read."""
        try:
            return self._data.count()
        except SPARK_ERRORS as error:
            raise WorkflowError(f"the data cannot be read: {explain(error)}") from error

    def _aggregates(self, wanted: Mapping[str, _Wanted], problems: dict[str, str]) -> dict[tuple[str, str], Any]:
        """All in one query; where that fails, check by check, so that each has its own problem."""
        try:
            return self._query({key: sql for one in wanted.values() for key, sql in one.items()})
        except SPARK_ERRORS as error:
            self._own_problem(error)
        found: dict[tuple[str, str], Any] = {}
        for title, one in wanted.items():
            try:
                found |= self._query(one)
            except SPARK_ERRORS as error:
                problems[title] = self._own_problem(error)
        return found

    def _query(self, wanted: _Wanted) -> dict[Any, Any]:
        """Equal aggregates are computed once."""
        every, found = list(dict.fromkeys(wanted.values())), dict[str, Any]()
        for first in range(0, len(every), _AT_ONCE):
            part = every[first : first + _AT_ONCE]
            row = self._data.selectExpr(*(f"{sql} AS a{number}" for number, sql in enumerate(part))).collect()[0]
            found |= zip(part, row, strict=True)
        return {key: found[sql] for key, sql in wanted.items()}

    def _own_problem(self, error: Exception) -> str:
        """Why a check cannot be measured; raises WorkflowError where Spark does not say that it is the check."""
        if isinstance(error, FalconError):
            return str(error)
        if not condition_of(error):
            raise WorkflowError(explain(error)) from error
        return explain(error)


def spark_type(found: DataType) -> SparkType:
    fields = tuple((one.name, spark_type(one.dataType)) for one in found) if isinstance(found, StructType) else ()
    return SparkType(_WORD.match(found.simpleString())[0], fields)  # type: ignore[index]  # all begin with a word
