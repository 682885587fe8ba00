"""The base of checks of instances: keys that all have, what is measured, and how figures are judged.

What is measured is Spark SQL over a view ``data``. :meth:`QualityCheck.aggregates` of all checks are computed in one
query; what needs a query of its own is in :meth:`QualityCheck.measure`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import AfterValidator, Field

from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.spark_schema import SparkType
from falcon_assets.model.sql_columns import SqlColumn, find_column

Figures: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str | int, ...]
_OF_OTHERS = ("sla", "process_sla")


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w{0,99}", name, re.ASCII):
        raise ValueError(f"{name!r} is not legal: write a letter, then letters, digits or '_', 100 characters at most")
    if name in _OF_OTHERS:
        raise ValueError(f"{name!r} is the name of the check of SLAs: choose another")
    return name


CheckName = Annotated[str, AfterValidator(_check_name)]
Columns = Annotated[tuple[NonEmpty, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Judgement:
    """Whether a check passed, and why; ``figures`` are kept, and shown as metadata."""

    passed: bool
    said: str
    figures: Figures = field(default_factory=dict)


class Measuring(Protocol):
    """The data of an instance on Spark, as the view ``data``, for checks that need more than an aggregate."""

    row: SparkType

    def rows(self, sql: str) -> list[Sequence[Any]]:
        """The rows of a query."""

    def other(self, feed: str) -> tuple[str, SparkType]:
        """The view of the instance of another feed at or before the nominal time, and its columns."""

    def violations(self, function: str) -> int:
        """What the Python function finds."""


class QualityCheck(Declaration):
    """A check of each version of an instance."""

    rule: str
    name: CheckName | None = None
    """Name in Dagster, unique in the feed; omitted: made of the rule and its columns (``not_null_item``)."""
    severity: Literal["warn", "error"] = "error"
    """``error``: an instance that fails it is invalid; ``warn``: a failure is only shown."""
    suite: Literal["quick", "full"] = "quick"
    """``full``: measured only after a quick check has failed, or on request."""
    where: NonEmpty | None = None
    """A condition in Spark SQL: only rows that meet it are checked."""

    @property
    def title(self) -> str:
        """The declared name, else one of the rule and its columns."""
        words = re.sub(r"\W", "_", "_".join([self.rule, *(name for _, name in self.columns_read())]), flags=re.ASCII)
        return self.name or words[:100]

    def columns_read(self) -> Iterator[tuple[Path, str]]:
        """The columns that it names, by key."""
        yield from ()

    def feeds_read(self) -> Iterator[tuple[Path, str]]:
        """The feeds that it reads besides its own, by key."""
        yield from ()

    def aggregates(self, row: SparkType) -> dict[str, str]:
        """Figure -> an aggregate of ``data``; raises ExpressionError where it does not fit the columns."""
        return {"rows": self.counted()}

    def measure(self, data: Measuring) -> Figures:
        """Figures that need a query of their own."""
        return {}

    def judge(self, found: Figures, nominal: datetime, past: Sequence[Figures]) -> Judgement:
        """``past`` are the figures of the last valid instances before it, the newest first."""
        violations = found["violations"]
        said = f"{f'{violations:,}' if violations else 'none'} of {found['rows']:,} rows: {self.wrong}"
        return Judgement(not violations, said, found)

    @property
    def wrong(self) -> str:
        """What a violating row is like."""
        return ""

    def counted(self, condition: str = "") -> str:
        """Counts rows, of those it looks at; where the condition is null, it is not met."""
        conditions = [f"(\n{one}\n)" for one in (self.where, condition) if one]
        return f"count_if({' AND '.join(conditions)})" if conditions else "count(1)"

    def looked_at(self, value: str) -> str:
        """The value, null in rows that it does not look at."""
        return f"CASE WHEN (\n{self.where}\n) THEN {value} END" if self.where else value

    def rows_with(self, columns: Sequence[SqlColumn]) -> str:
        """``WHERE`` the columns are not null, of the rows that it looks at."""
        conditions = [*([f"(\n{self.where}\n)"] if self.where else []), *(f"{one.sql} IS NOT NULL" for one in columns)]
        return f"WHERE {' AND '.join(conditions)}"


class OfOneColumn(QualityCheck):
    """A check of one column."""

    column: NonEmpty
    """Name of a column, or the path of a field of a struct (``address.city``)."""

    def columns_read(self) -> Iterator[tuple[Path, str]]:
        """Its one column."""
        yield ("column",), self.column

    def one_of(self, row: SparkType, kinds: Sequence[str]) -> SqlColumn:
        """The column; raises ExpressionError where it is not there, or of no type in ``kinds``."""
        column = find_column(row, self.column)
        if column.kind not in kinds:
            legal = ", ".join(kinds)
            raise ExpressionError(f"{column.name} is of type {column.kind}: {self.rule} is for columns of {legal}")
        return column


class OfColumns(QualityCheck):
    """A check of some columns together."""

    columns: Columns
    """Names of columns, or paths of fields of structs (``address.city``)."""

    def columns_read(self) -> Iterator[tuple[Path, str]]:
        """All of its columns."""
        for number, name in enumerate(self.columns):
            yield ("columns", number), name
