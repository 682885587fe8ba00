"""The rules of checks: for each a class with its keys, what it measures, and how it judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from falcon_assets.model.base import EntityName, NonEmpty
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.quality_check import (
    Columns,
    Figures,
    Judgement,
    Measuring,
    OfColumns,
    OfOneColumn,
    Path,
    QualityCheck,
)
from falcon_assets.model.quantiles import distance, percentiles_sql, share_distance
from falcon_assets.model.spark_schema import SparkType
from falcon_assets.model.sql_columns import (
    FRACTIONS,
    NUMBERS,
    TIMES,
    find_column,
    literal,
    moment_from,
    newest,
    quoted_name,
    text_literal,
)

_COMMON_VALUES = 50
_COMPARABLE = (*NUMBERS, "string", *TIMES)


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0:
        raise ValueError(f"{value} is not comparable: write a finite number")
    if not isinstance(value, bool | int | float | str):
        raise ValueError("must be a number, a text, a time, true or false; what is null passes in any case")
    return value


def _bound(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number, a text or a time")
    return _scalar(value)


Value = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["number", "string", "boolean"]})]
Bound = Annotated[Any, BeforeValidator(_bound), WithJsonSchema({"type": ["number", "string"]})]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Last = Annotated[int, Field(ge=1, le=1000, strict=True)]


class RowCount(QualityCheck):
    """The number of rows is within bounds, or near that of the last instances."""

    rule: Literal["row_count"]
    """Counts rows."""
    min: Count | None = None
    """The smallest legal number."""
    max: Count | None = None
    """The largest legal number."""
    last: Last | None = None
    """Compares with the mean of so many valid instances before it; fewer are enough, without any the check passes."""
    percent: Amount | None = None
    """With ``last``: the largest legal distance from the mean, in percent of it."""
    z_score: Amount | None = None
    """With ``last``: the largest legal distance, in standard deviations; with fewer than two instances it passes."""

    @model_validator(mode="after")
    def _has_bounds(self) -> RowCount:
        if self.min is None and self.max is None and self.last is None:
            raise ValueError("row_count needs min, max or last")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} must not be larger than max {self.max}")
        if (self.last is None) != (self.percent is None and self.z_score is None):
            raise ValueError("last needs percent or z_score, and these need last")
        return self

    def judge(self, found: Figures, nominal: datetime, past: Sequence[Figures]) -> Judgement:
        rows, wrong, figures = found["rows"], [], dict(found)
        if self.min is not None and rows < self.min:
            wrong.append(f"at least {self.min:,} are expected")
        if self.max is not None and rows > self.max:
            wrong.append(f"at most {self.max:,} are expected")
        before = [one["rows"] for one in past[: self.last or 0]]
        if before:
            figures["mean"] = usual = mean(before)
            apart = abs(rows - usual)
            if self.percent is not None and apart > usual * self.percent / 100:
                wrong.append(f"more than {self.percent:g} % from the mean of the last {len(before)}, {usual:,.6g}")
            if self.z_score is not None and len(before) > 1:
                figures["deviation"] = spread = stdev(before)
                if apart > spread * self.z_score:
                    wrong.append(f"more than {self.z_score:g} deviations of {spread:,.6g} from {usual:,.6g}")
        return Judgement(not wrong, "; ".join([f"{rows:,} rows", *wrong]), figures)


class NotNull(OfColumns):
    """No column is null, or not too often."""

    rule: Literal["not_null"]
    """Finds rows in which one of the columns is null; NaN is a value."""
    max_share: Share = 0.0
    """The largest legal share of such rows, 0 to 1."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        null = " OR ".join(f"{find_column(row, name).sql} IS NULL" for name in self.columns)
        return {**super().aggregates(row), "violations": self.counted(null)}

    def judge(self, found: Figures, nominal: datetime, past: Sequence[Figures]) -> Judgement:
        judged = super().judge(found, nominal, past)
        passed = judged.passed or found["violations"] <= found["rows"] * self.max_share
        return Judgement(passed, judged.said, found)

    @property
    def wrong(self) -> str:
        return f"{' or '.join(self.columns)} is null"


class Unique(OfColumns):
    """No two rows have the same values in the columns."""

    rule: Literal["unique"]
    """Finds rows that repeat an earlier one; those with a null in one of the columns pass."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        for name in self.columns:
            find_column(row, name)
        return super().aggregates(row)

    def measure(self, data: Measuring) -> Figures:
        columns = [find_column(data.row, name) for name in self.columns]
        keys = ", ".join(one.sql for one in columns)
        groups = f"SELECT count(1) AS n FROM data {self.rows_with(columns)} GROUP BY {keys}"
        ((repeated, values),) = data.rows(f"SELECT coalesce(sum(n - 1), 0), count(1) FROM ({groups}) WHERE n > 1")
        return {"violations": repeated, "repeated_values": values}

    @property
    def wrong(self) -> str:
        return f"{', '.join(self.columns)} is as in another row"


class InRange(OfOneColumn):
    """All values are within bounds, both included."""

    rule: Literal["in_range"]
    """Finds values outside of bounds; NaN is outside of any."""
    min: Bound | None = None
    """The smallest legal value: a number, a text, a date or a time (in UTC where it has no zone)."""
    max: Bound | None = None
    """The largest legal value."""

    @model_validator(mode="after")
    def _has_bounds(self) -> InRange:
        if self.min is None and self.max is None:
            raise ValueError("in_range needs min, max or both")
        ends: tuple[Any, Any] = (self.min, self.max)
        if None not in ends and len({isinstance(one, str) for one in ends}) == 1 and ends[0] > ends[1]:
            raise ValueError(f"min {self.min} must not be larger than max {self.max}")
        return self

    def aggregates(self, row: SparkType) -> dict[str, str]:
        column = self.one_of(row, _COMPARABLE)
        bounds = (("<", self.min), (">", self.max))
        outside = [f"{column.sql} {sign} {literal(bound, column)}" for sign, bound in bounds if bound is not None]
        if column.kind in FRACTIONS:
            outside.append(f"isnan({column.sql})")
        return {**super().aggregates(row), "violations": self.counted(" OR ".join(outside))}

    @property
    def wrong(self) -> str:
        sides = [f"below {self.min}"] * (self.min is not None) + [f"above {self.max}"] * (self.max is not None)
        return f"{self.column} is {' or '.join(sides)}"


class InSet(OfOneColumn):
    """All values are among some."""

    rule: Literal["in_set"]
    """Finds values that are not in a list."""
    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    """The legal values."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        column = self.one_of(row, (*_COMPARABLE, "boolean"))
        legal = ", ".join(literal(one, column) for one in self.values)
        return {**super().aggregates(row), "violations": self.counted(f"NOT ({column.sql} IN ({legal}))")}

    @property
    def wrong(self) -> str:
        return f"{self.column} is none of the {len(self.values)} legal values"


class Matching(OfOneColumn):
    """All texts have what a regular expression describes."""

    rule: Literal["matching"]
    """Finds texts in which a pattern does not occur."""
    pattern: NonEmpty
    """A regular expression of Java, found anywhere in the text; ``^...$`` matches the whole text."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        column = self.one_of(row, ("string",))
        unlike = f"NOT ({column.sql} RLIKE {text_literal(self.pattern)})"
        return {**super().aggregates(row), "violations": self.counted(unlike)}

    @property
    def wrong(self) -> str:
        return f"{self.column} does not match {self.pattern}"


class Freshness(OfOneColumn):
    """The newest value is not much older than the nominal time."""

    rule: Literal["freshness"]
    """Compares the newest date or time with the nominal time; without any value it fails."""
    within: Frequency
    """How much older it may be."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        column = self.one_of(row, TIMES)
        return {**super().aggregates(row), "newest": newest(self.looked_at(column.sql), column.kind)}

    def judge(self, found: Figures, nominal: datetime, past: Sequence[Figures]) -> Judgement:
        moment = None if found["newest"] is None else moment_from(found["newest"])
        figures = {**found, "newest": moment and moment.isoformat()}
        if moment is None:
            return Judgement(False, f"{self.column} has no value", figures)
        passed = moment >= nominal - self.within.length
        said = f"the newest {self.column} is {moment.isoformat()}"
        return Judgement(passed, said if passed else f"{said}, {nominal - moment} before the nominal time", figures)


class Referential(OfColumns):
    """All keys are in the instance of another feed at or before the nominal time, on the same cluster."""

    rule: Literal["referential"]
    """Finds rows whose key is not in another feed; those with a null in the key pass."""
    feed: EntityName
    """The other feed. Until its instance is available, the check waits."""
    keys: Columns | None = None
    """The columns there, in the same order; omitted: they have the same names."""

    @model_validator(mode="after")
    def _same_number(self) -> Referential:
        if self.keys is not None and len(self.keys) != len(self.columns):
            raise ValueError("keys must have as many names as columns")
        return self

    def feeds_read(self) -> Iterator[tuple[Path, str]]:
        yield ("feed",), self.feed

    def aggregates(self, row: SparkType) -> dict[str, str]:
        for name in self.columns:
            find_column(row, name)
        return super().aggregates(row)

    def measure(self, data: Measuring) -> Figures:
        view, there = data.other(self.feed)
        columns = [find_column(data.row, name) for name in self.columns]
        keys = [find_column(there, name) for name in self.keys or self.columns]
        names = [f"key_{number}" for number in range(len(columns))]
        mine = ", ".join(f"{one.sql} AS {name}" for one, name in zip(columns, names, strict=True))
        theirs = ", ".join(f"{one.sql} AS {name}" for one, name in zip(keys, names, strict=True))
        same = " AND ".join(f"mine.{name} = theirs.{name}" for name in names)
        left = f"(SELECT {mine} FROM data {self.rows_with(columns)}) mine"
        right = f"(SELECT {theirs} FROM {quoted_name(view)}) theirs"
        ((lost,),) = data.rows(f"SELECT count(1) FROM {left} LEFT ANTI JOIN {right} ON {same}")
        return {"violations": lost}

    @property
    def wrong(self) -> str:
        return f"{', '.join(self.columns)} is not in {self.feed}"


class Drift(OfOneColumn):
    """The values are distributed as in the last instances."""

    rule: Literal["drift"]
    """Compares the distribution of a column of numbers, texts or true and false with that of valid instances before."""
    last: Last = 7
    """The number of instances to compare with; fewer are enough, without any the check passes."""
    max_distance: Annotated[float, Field(gt=0, le=1, strict=True)]
    """The largest legal distance, 0 to 1: for numbers the Kolmogorov-Smirnov distance, for others the share of rows
    whose value would have to change."""

    def aggregates(self, row: SparkType) -> dict[str, str]:
        column = self.one_of(row, (*NUMBERS, "string", "boolean"))
        if column.kind not in NUMBERS:
            return super().aggregates(row)
        number = f"nanvl({column.sql}, NULL)" if column.kind in FRACTIONS else column.sql
        values = percentiles_sql(self.looked_at(f"CAST({number} AS DOUBLE)"))
        return {**super().aggregates(row), "percentiles": values}

    def measure(self, data: Measuring) -> Figures:
        column = find_column(data.row, self.column)
        if column.kind in NUMBERS:
            return {}
        rows, value = self.rows_with([column]), f"CAST({column.sql} AS STRING)"
        counts = f"SELECT {value} AS value, count(1) AS n FROM data {rows} GROUP BY 1"
        found = data.rows(
            f"SELECT value, n / sum(n) OVER () FROM ({counts}) ORDER BY n DESC, value LIMIT {_COMMON_VALUES}"
        )
        return {"shares": {value: float(share) for value, share in found}}

    def judge(self, found: Figures, nominal: datetime, past: Sequence[Figures]) -> Judgement:
        measured = "percentiles" if "percentiles" in found else "shares"
        before = [one[measured] for one in past[: self.last] if one.get(measured)]
        if not found[measured] or not before:
            said = "there is no earlier instance to compare with" if found[measured] else f"{self.column} has no value"
            return Judgement(True, said, found)
        apart = (distance if measured == "percentiles" else share_distance)(found[measured], before)
        said = f"the distance of {self.column} from the last {len(before)} is {apart:.3f}, {self.max_distance} is legal"
        return Judgement(apart <= self.max_distance, said, {**found, "distance": apart})


class SqlQuery(QualityCheck):
    """A query finds no rows."""

    rule: Literal["sql"]
    """Counts the rows of a query."""
    query: NonEmpty
    """Spark SQL that returns violating rows of the view ``data``."""

    @model_validator(mode="after")
    def _has_its_own_where(self) -> SqlQuery:
        if self.where is not None:
            raise ValueError("the query has a WHERE of its own: remove where")
        return self

    def measure(self, data: Measuring) -> Figures:
        query = re.sub(r"[\s;]+$", "", self.query)
        ((found,),) = data.rows(f"SELECT count(1) FROM (\n{query}\n)")
        return {"violations": found}

    @property
    def wrong(self) -> str:
        return "the query returns it"


class PythonFunction(QualityCheck):
    """A Python function finds nothing."""

    rule: Literal["python"]
    """Calls a function with the data, a DataFrame, and the instance."""
    function: Annotated[str, StringConstraints(pattern=r"^[\w.]+:\w+$")]
    """``package.module:name``. It returns whether the data is right, or the number of violations, or a DataFrame of
    violating rows."""

    def measure(self, data: Measuring) -> Figures:
        return {"violations": data.violations(self.function)}

    @model_validator(mode="after")
    def _has_its_own_where(self) -> PythonFunction:
        if self.where is not None:
            raise ValueError("the function filters the data itself: remove where")
        return self

    @property
    def wrong(self) -> str:
        return f"{self.function} finds it"


def _with_rule(base: type[QualityCheck]) -> Iterator[type[QualityCheck]]:
    for one in base.__subclasses__():
        yield from [one] if "rule" in one.__annotations__ else _with_rule(one)


RULES = tuple(_with_rule(QualityCheck))
if TYPE_CHECKING:
    AnyCheck = QualityCheck
else:
    AnyCheck = Annotated[Union[RULES], Field(discriminator="rule")]  # noqa: UP007 - of as many as there are
