"""Which columns of feeds fit columns of MySQL, so that every value arrives as it is, or is refused."""

from __future__ import annotations

import re
from typing import NamedTuple

from falcon_assets.features.datasources.target_fitness import TargetDialect
from falcon_assets.features.datasources.types.mysql.column_types import spark_type as imported_as
from falcon_assets.features.datasources.types.mysql.connecting import quoted

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Whole numbers in feeds, and their digits."""
_DIGITS = {**_WHOLE, "boolean": 1}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"})
_AS_TEXT = frozenset({*_TEXTS, "enum", "set", "time", "uuid", "inet4", "inet6", "decimal"})
"""Types that a string is written to; the server refuses texts that it would change, or the task does."""
_IN_DOUBLES = ("float", "double", "tinyint", "smallint", "int")
_NATURAL = {"timestamp": "datetime(6)", "timestamp_ntz": "datetime(6)", "binary": "longblob"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NESTED = re.compile(r"(?:array|struct|map)<|variant")
_STRING = re.compile(r"string|(?:var)?char\(\d+\)|string collate .*|void")
_TYPE = re.compile(r"([a-z0-9]+)(?:\((\d+)(?:,(\d+))?\))?")
_MEMBER = re.compile(r"'((?:[^']|'')*)'")
_ZONES = {"date": "date", "datetime": "UTC", "timestamp": "UTC"}


class MysqlColumn(NamedTuple):
    """A column of a target.

    Attributes:
        charset: What defines the character set of texts, in SQL.
    """

    name: str
    type: str
    charset: str
    is_required: bool
    is_filled: bool
    is_generated: bool

    @property
    def base(self) -> str:
        """The type without lengths."""
        found = _TYPE.match(self.type)
        return found[1] if found else ""

    @property
    def lengths(self) -> tuple[int, ...]:
        """What stands in its parentheses, if that is numbers."""
        found = _TYPE.match(self.type)
        return tuple(int(one) for one in found.groups()[1:] if one) if found else ()

    @property
    def members(self) -> tuple[str, ...]:
        """Of an enum or a set."""
        return tuple(one.replace("''", "'") for one in _MEMBER.findall(self.type))


class MysqlFit(NamedTuple):
    """How a column of a feed travels to its column in the target.

    Attributes:
        literal: How its values are written in SQL: a key of :data:`.LITERALS`.
        expression: Spark SQL of what tasks load, with ``{}`` for the name.
    """

    literal: str
    expression: str = "{}"


def fit_of(spark_type: str, target: MysqlColumn) -> MysqlFit | None:
    """How values of a Spark type get there as they are; None: some would not.

    A column takes what an import would make of it, and what is narrower: values of that which it does not have, such as
    negative ones in an unsigned column, are refused one by one.
    """
    base, there = target.base, imported_as(target.type)
    if _NESTED.match(spark_type):
        return MysqlFit("text", "to_json({})") if base in ("json", "longtext") else None
    if _STRING.fullmatch(spark_type):
        return MysqlFit("text", "CAST({} AS string)") if base in _AS_TEXT else None
    if base in ("float", "double"):
        return MysqlFit("double", "CAST({} AS double)") if _in_floats(spark_type, target) else None
    if base in ("datetime", "timestamp"):
        return MysqlFit("instant") if spark_type in (there, "timestamp") else None
    if spark_type in ("date", "binary"):
        return MysqlFit(spark_type) if spark_type == there else None
    return _number(spark_type, target, there)


def natural_type(spark_type: str, in_key: bool) -> str:
    """The type of MySQL that holds all values of a Spark type as they are."""
    if _NESTED.match(spark_type):
        return "json"
    if _STRING.fullmatch(spark_type):
        return "varchar(255)" if in_key else "longtext"
    return _NATURAL.get(spark_type, spark_type)


def _in_floats(spark_type: str, target: MysqlColumn) -> bool:
    """With lengths it rounds."""
    if target.lengths:
        return False
    return spark_type in _IN_DOUBLES if target.base == "double" else spark_type in ("float", "tinyint", "smallint")


def _number(spark_type: str, target: MysqlColumn, there: str) -> MysqlFit | None:
    decimal = _DECIMAL.fullmatch(spark_type)
    digits, scale = (int(decimal[1]), int(decimal[2])) if decimal else (_DIGITS.get(spark_type, 0), 0)
    fit = MysqlFit("number", "CAST({} AS tinyint)" if spark_type == "boolean" else "{}")
    if not digits:
        return None
    if target.base == "decimal":
        most, own = target.lengths[0], (*target.lengths, 0)[1]
        return fit if own >= scale and most - own >= digits - scale else None
    if there == "decimal(20,0)":  # bigint unsigned
        return fit if scale == 0 and digits <= 20 else None
    most = _WHOLE.get(there, 0)
    # All numbers of so many digits fit only where they are fewer than the most.
    return fit if scale == 0 and (digits < most if decimal else digits <= most) else None


DIALECT = TargetDialect[MysqlColumn](
    quoted,
    lambda spark_type, column: fit_of(spark_type, column) is not None,
    natural_type,
    "MODIFY COLUMN {name} {type}",
    "CREATE UNIQUE INDEX {index} ON {table} ({names})",
    "datetime",
    lambda column: _ZONES[column.base],
)
