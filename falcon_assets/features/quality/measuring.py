"""Measures data on Spark: the aggregates of all checks, and the profile, in one query; the rest check by check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from falcon_assets.compute.engines.computing.task import exits_refused
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain, is_of_spark
from falcon_assets.errors import ExpressionError, FalconError, WorkflowError
from falcon_assets.features.quality.profile import column_profile, profile_sql, profiled_columns
from falcon_assets.features.quality.verdict import Measured
from falcon_assets.model.quality_check import QualityCheck
from falcon_assets.model.spark_schema import SparkType

_VIEW, _OTHER = "data", "other_data"
_OF_DATA = ""
"""In the place of the title of a check."""
_AT_ONCE = 1000
"""Aggregates in a query: Spark compiles more than that for longer than it computes."""
_WORD = re.compile(r"\w+")
_NOT_OF_THE_CHECK = re.compile(
    r"OutOfMemoryError|Java heap space|GC overhead limit|No space left on device|ExecutorLostFailure|FetchFailed"
    r"|cancelled|shut down"
)
_Wanted: TypeAlias = Mapping[Any, str]


@dataclass(frozen=True)
class CheckedInstance:
    """The second argument of functions of the rule ``python``; ``nominal_time`` is aware, in UTC."""

    feed: str
    cluster: str
    nominal_time: datetime


class UnreadableDataError(WorkflowError):
    """Spark works, and cannot read the data."""


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

    def measure(self, checks: Sequence[QualityCheck], *, profile: bool = False) -> Measured:
        """Raises WorkflowError where nothing is known of the data: UnreadableDataError where that is because of it."""
        figures, problems = dict[str, dict[str, Any]](), dict[str, str]()
        columns = list(profiled_columns(self.row)) if profile else []
        of_data: dict[Any, str] = {"records": "count(1)"}
        for number, column in enumerate(columns):
            of_data |= {(number, name): sql for name, sql in profile_sql(column).items()}
        wanted: dict[Any, _Wanted] = {_OF_DATA: of_data}
        for check in checks:
            try:
                wanted[check.title] = check.aggregates(self.row)
            except ExpressionError as error:
                problems[check.title] = str(error)
        found = self._aggregates(wanted, problems)
        of_data_found = found.pop(_OF_DATA, None) or {"records": self._records()}
        for check in checks:
            if check.title in found:
                try:
                    figures[check.title] = {**found[check.title], **check.measure(self)}
                except (*SPARK_ERRORS, ExpressionError) as error:
                    problems[check.title] = self._own_problem(error)
        records = of_data_found.pop("records")
        of_columns: list[dict[str, Any]] = [{} for _ in columns]
        for (number, name), value in of_data_found.items():
            of_columns[number][name] = value
        made = tuple(map(column_profile, columns, of_columns)) if profile and of_data_found else None
        return Measured(records, figures, problems, made)

    def _records(self) -> int:
        try:
            return self._data.count()
        except SPARK_ERRORS as error:
            raise UnreadableDataError(f"the data cannot be read: {self._own_problem(error)}") from error

    def _aggregates(self, wanted: Mapping[Any, _Wanted], problems: dict[str, str]) -> dict[Any, dict[Any, Any]]:
        """All in one query; where that fails, check by check, so that each has its own problem."""
        try:
            every = self._query([sql for one in wanted.values() for sql in one.values()])
            return {title: {name: every[sql] for name, sql in one.items()} for title, one in wanted.items()}
        except SPARK_ERRORS as error:
            self._own_problem(error)
        found: dict[Any, dict[Any, Any]] = {}
        for title, one in wanted.items():
            try:
                values = self._query(one.values())
                found[title] = {name: values[sql] for name, sql in one.items()}
            except SPARK_ERRORS as error:
                problems[title] = self._own_problem(error)
        problems.pop(_OF_DATA, None)
        return found

    def _query(self, aggregates: Iterable[str]) -> dict[str, Any]:
        """Equal aggregates are computed once."""
        every, found = list(dict.fromkeys(aggregates)), dict[str, Any]()
        for first in range(0, len(every), _AT_ONCE):
            part = every[first : first + _AT_ONCE]
            row = self._data.selectExpr(*(f"{sql} AS a{number}" for number, sql in enumerate(part))).collect()[0]
            found |= zip(part, row, strict=True)
        return found

    def _own_problem(self, error: Exception) -> str:
        """Why a check cannot be measured; raises WorkflowError where that is because of Spark, or of its machine."""
        if isinstance(error, FalconError):
            return str(error)
        said = explain(error)
        if condition_of(error):
            return said
        try:
            if not _NOT_OF_THE_CHECK.search(f"{error} {said}"):
                self._spark.range(1).count()
                return said
        except SPARK_ERRORS:
            pass
        raise WorkflowError(said) from error


def spark_type(found: DataType) -> SparkType:
    fields = tuple((one.name, spark_type(one.dataType)) for one in found) if isinstance(found, StructType) else ()
    return SparkType(_WORD.match(found.simpleString())[0], fields)  # type: ignore[index]  # all begin with a word
