"""Rows as literals of SQL, made column by column; and what the server would change without a word is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falcon_assets.features.datasources.types.mysql.fits import MysqlColumn, MysqlFit

_MOST_BYTES = 1 << 25
"""Of a batch whose literals are made at once."""
_BYTES_OF_TEXT = {"tinytext": 255, "text": 65_535, "mediumtext": (1 << 24) - 1}
_LETTERS_OF_TIME = r"^-?\d{2,3}:\d\d:\d\d"


class ChangedValueError(ValueError):
    """A value that its column does not have."""


@dataclass(frozen=True)
class MysqlStagedColumn:
    """A column that tasks load; it can be pickled."""

    target: MysqlColumn
    fit: MysqlFit

    def literals(self, column: pa.Array) -> pa.Array:
        """In SQL without backslash escapes; raises ChangedValueError, which names the column."""
        if self.target.is_required and column.null_count:
            raise ChangedValueError(f"column {self.target.name} must not be null, and is")
        if self.fit.literal == "double" and not pc.all(pc.is_finite(pc.fill_null(column, 0.0))).as_py():
            raise ChangedValueError(f"column {self.target.name} has NaN or infinity, which the database cannot hold")
        written = LITERALS[self.fit.literal](column)
        if self._changed(column):
            raise ChangedValueError(f"column {self.target.name}: {self.target.type} does not have all of its values")
        return pc.fill_null(written, b"NULL")

    def _changed(self, column: pa.Array) -> bool:
        """Whether the server would write another value for one of them, without an error or a warning."""
        check = _CHECKS.get(self.target.base)
        return check is not None and not all(pc.all(one).as_py() in (True, None) for one in check(column, self.target))


def statements(
    batch: pa.RecordBatch, columns: Sequence[MysqlStagedColumn], start: bytes, size: int
) -> Iterator[tuple[bytes, int]]:
    """Yields statements that begin with ``start``, and how many rows each has, of about ``size`` bytes at most."""
    pieces = max(1, -(-batch.nbytes // _MOST_BYTES))
    step = max(1, -(-batch.num_rows // pieces))
    for first in range(0, batch.num_rows, step):
        piece = batch.slice(first, step)
        values = [one.literals(column) for one, column in zip(columns, piece.columns, strict=True)]
        rows = pc.binary_join_element_wise(b"(", pc.binary_join_element_wise(*values, b","), b")", b"")
        ends = np.cumsum(np.asarray(pc.binary_length(rows)) + 1)
        at = 0
        while at < len(rows):
            before = ends[at - 1] if at else 0
            number = max(1, int(np.searchsorted(ends, before + size - len(start), "right")) - at)
            one = pa.ListArray.from_arrays(pa.array([0, number], pa.int32()), rows.slice(at, number))
            yield start + pc.binary_join(one, b",")[0].as_py(), number
            at += number


def _quoted(text: pa.Array, before: bytes = b"'") -> pa.Array:
    escaped = pc.replace_substring(text.cast(pa.binary()), "'", "''")
    return pc.binary_join_element_wise(before, escaped, b"'", b"")


def _number(column: pa.Array) -> pa.Array:
    """Whole ones are bare, as a year of '0' is 2000; others with exponents would be doubles if they were bare."""
    text = column.cast(pa.string())
    return text.cast(pa.binary()) if pa.types.is_integer(column.type) else _quoted(text)


def _instant(column: pa.Array) -> pa.Array:
    return _quoted(column.cast(pa.timestamp("us")).cast(pa.string()))


LITERALS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "number": _number,
    # Bare numbers would be parsed as decimals, and the shortest text of the largest float is more than a float can be.
    "double": lambda column: _quoted(column.cast(pa.float64()).cast(pa.string())),
    "date": lambda column: _quoted(column.cast(pa.string())),
    "instant": _instant,
    "text": _quoted,
    "binary": lambda column: _quoted(column, b"_binary'"),
}
"""Kinds of columns, and how their Arrow arrays are written; null: null."""


def _whole_fractions(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    """It rounds what has more decimals."""
    step = 10 ** (6 - (*target.lengths, 0)[0])
    instants = column.cast(pa.timestamp("us")).cast(pa.int64())
    yield pc.equal(pc.multiply(pc.divide(instants, step), step), instants)


def _years(column: pa.Array, _: MysqlColumn) -> Iterator[pa.Array]:
    """It takes 70 for 1970."""
    yield pc.or_(pc.equal(column, 0), pc.greater(column, 1900))


def _letters(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    """It cuts spaces that are too many, and char has none at the end."""
    yield pc.less_equal(pc.utf8_length(column), target.lengths[0])
    if target.base == "char":
        yield pc.invert(pc.ends_with(column, " "))


def _texts(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    yield pc.less_equal(pc.binary_length(column), _BYTES_OF_TEXT[target.base])


def _times(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    decimals = (*target.lengths, 0)[0]
    rest = rf"(\.\d{{1,{decimals}}})?$" if decimals else "$"
    yield pc.match_substring_regex(column, _LETTERS_OF_TIME + rest)


def _full(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    """It fills bytes up with zeros."""
    (length,) = target.lengths or (1,)
    yield pc.equal(pc.binary_length(column), length if target.base == "binary" else (length + 7) // 8)


def _member(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    """It takes numbers for members, and capitals for small letters."""
    known = target.members
    if target.base == "enum":
        yield pc.is_in(column, pa.array([*known, None], column.type))
        return
    for text in pc.unique(column).to_pylist():
        parts = text.split(",") if text else []
        yield pa.array([[one for one in known if one in parts] == parts])


def _decimals(column: pa.Array, target: MysqlColumn) -> Iterator[pa.Array]:
    """It rounds what has more of them."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        digits, scale = (*target.lengths, 0)[:2]
        fraction = rf"(\.\d{{1,{scale}}})?" if scale else ""
        yield pc.match_substring_regex(column, rf"^-?\d{{1,{max(1, digits - scale)}}}{fraction}$")


_CHECKS: dict[str, Callable[[pa.Array, MysqlColumn], Iterator[pa.Array]]] = {
    **dict.fromkeys(("datetime", "timestamp"), _whole_fractions),
    "year": _years,
    **dict.fromkeys(("char", "varchar"), _letters),
    **dict.fromkeys(_BYTES_OF_TEXT, _texts),
    "time": _times,
    **dict.fromkeys(("binary", "bit"), _full),
    **dict.fromkeys(("enum", "set"), _member),
    "decimal": _decimals,
}
"""By types of columns: what must be true of all values."""
