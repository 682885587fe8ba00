"""The profile of data: figures of each column, all from one query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from falcon_assets.model.quantiles import quantiles_sql
from falcon_assets.model.spark_schema import SparkType
from falcon_assets.model.sql_columns import FRACTIONS, NUMBERS, SqlColumn, quoted_name
from falcon_assets.operations.operation import Result

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LONGEST_TEXT = 100
_COMPARABLE = (*NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class ColumnProfile(Result):
    """Figures of a column or a field of a struct; None: its type has none, or there is no value.

    Attributes:
        nulls: Rows in which it is null.
        nans: Of floating-point numbers, which no other figure counts.
        mean: Of true and false: the share of true.
        distinct: An estimate, off by 5 % (HyperLogLog).
        quantiles: Of :data:`QUANTILES`.
    """

    name: str
    type: str
    nulls: int
    nans: int | None = None
    min: Any = None
    max: Any = None
    mean: Any = None
    distinct: int | None = None
    quantiles: tuple[Any, ...] | None = None

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> ColumnProfile:
        quantiles = said["quantiles"]
        return cls(**{**said, "quantiles": None if quantiles is None else tuple(quantiles)})


def profiled_columns(row: SparkType, above: tuple[str, ...] = ()) -> Iterator[SqlColumn]:
    """The columns, and in place of structs their fields, at any depth."""
    for name, one in row.fields:
        path = (*above, name)
        if one.kind == "struct" and one.fields:
            yield from profiled_columns(one, path)
        else:
            yield SqlColumn(".".join(path), ".".join(map(quoted_name, path)), one.kind)


def profile_sql(column: SqlColumn) -> dict[str, str]:
    """Figure -> its aggregate."""
    found = {"nulls": f"count_if({column.sql} IS NULL)"}
    if column.kind not in _COMPARABLE:
        return found
    value = column.sql
    if column.kind in FRACTIONS:
        found["nans"] = f"count_if(isnan({value}))"
        value = f"nanvl({value}, NULL)"
    found |= {"min": _plain(f"min({value})", column.kind), "max": _plain(f"max({value})", column.kind)}
    found["distinct"] = f"approx_count_distinct({value})"
    if column.kind in NUMBERS:
        found |= {"mean": f"avg({value})", "quantiles": quantiles_sql(value, QUANTILES)}
    elif column.kind == "boolean":
        found["mean"] = f"avg(CAST({value} AS INT))"
    return found


def _plain(value: str, kind: str) -> str:
    """A time as a text or a number that is the same in every zone."""
    if kind == "timestamp":
        return f"unix_micros({value})"
    if kind == "string":
        return f"left({value}, {_LONGEST_TEXT})"
    return f"CAST({value} AS STRING)" if kind in ("date", "timestamp_ntz") else value


def column_profile(column: SqlColumn, found: Mapping[str, Any]) -> ColumnProfile:
    """The figures as JSON has them; ``found`` are those of :func:`profile_sql`."""
    values = {name: _as_json(value) for name, value in found.items()}
    if column.kind == "timestamp":
        values |= {name: values[name] and _moment(values[name]) for name in ("min", "max") if values[name] is not None}
    return ColumnProfile(column.name, column.kind, **values)


def _as_json(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_as_json, value))
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, date | datetime) else value


def _moment(micros: int) -> str | int:
    try:
        return (datetime.fromtimestamp(0, UTC) + datetime.resolution * micros).isoformat()
    except OverflowError:  # beyond the years that Python has
        return micros
