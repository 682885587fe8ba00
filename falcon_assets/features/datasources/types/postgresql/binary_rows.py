"""Rows in the binary format of PostgreSQL's COPY, encoded column by column.

Each column becomes binary values with the length of each before it; one kernel of Arrow joins them to rows. Values that
are not of text are exact without being parsed, and the server spends less than half of the time that it needs for CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_DAYS_TO_2000 = 10_957
_MICROSECONDS_TO_2000 = 946_684_800_000_000
_MOST_BYTES = 1 << 26
"""Of a batch that is encoded at once: offsets of Arrow's binary values end at 2 GiB."""


class Encoding(NamedTuple):
    """How a column is encoded.

    Attributes:
        kind: One of :data:`KINDS`.
        element: Of a column of arrays, the number of the type of their elements, which ``kind`` is about.
    """

    kind: str
    element: int | None = None


class UnfitValueError(ValueError):
    """A value that the type of its column does not have."""


def encoded(batch: pa.RecordBatch, encodings: Sequence[Encoding]) -> Iterator[bytes]:
    """Yields rows, without :data:`HEADER` and :data:`TRAILER`; raises UnfitValueError, which names the column."""
    pieces = max(1, -(-batch.nbytes // _MOST_BYTES))
    step = max(1, -(-batch.num_rows // pieces))
    for first in range(0, batch.num_rows, step):
        yield _rows(batch.slice(first, step), encodings)


def _rows(batch: pa.RecordBatch, encodings: Sequence[Encoding]) -> bytes:
    number = _same_size(np.full(batch.num_rows, len(encodings), ">i2"))
    columns = [number]
    for name, column, encoding in zip(batch.schema.names, batch.columns, encodings, strict=True):
        try:
            columns += _values(column, encoding)
        except UnfitValueError as error:
            raise UnfitValueError(f"column {name}: {error}") from None
    return _content(pc.binary_join_element_wise(*columns, b""))


def _values(column: pa.Array, encoding: Encoding) -> list[pa.Array]:
    encode = KINDS[encoding.kind]
    return encode(column) if encoding.element is None else _arrays(column, encode, encoding.element)


def _content(values: pa.Array) -> bytes:
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    content = values.buffers()[2]
    return b"" if content is None else content[int(offsets[0]) : int(offsets[-1])].to_pybytes()


def _same_size(values: np.ndarray) -> pa.Array:
    """As binary values, without copying them."""
    size = values.dtype.itemsize
    offsets = np.arange(0, (len(values) + 1) * size, size, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(values)])


def _or_null(values: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), values, _NULL) if column.null_count else values


def _numbers(column: pa.Array, dtype: str) -> np.ndarray:
    """The values as they lie in memory; null: anything."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * size)


def _fixed(column: pa.Array, values: np.ndarray, dtype: str) -> list[pa.Array]:
    made = np.empty(len(column), [("size", ">i4"), ("value", dtype)])
    made["size"], made["value"] = np.dtype(dtype).itemsize, values
    return [_or_null(_same_size(made), column)]


def _plain(dtype: str, less: int = 0) -> Callable[[pa.Array], list[pa.Array]]:
    def encode(column: pa.Array) -> list[pa.Array]:
        values = _numbers(column, f"<{dtype}")
        return _fixed(column, values - less if less else values, f">{dtype}")

    return encode


def _boolean(column: pa.Array) -> list[pa.Array]:
    return _fixed(column, np.asarray(pc.fill_null(column.cast(pa.uint8()), 0)), "u1")


def _bytes(column: pa.Array) -> list[pa.Array]:
    sizes = np.asarray(pc.fill_null(pc.binary_length(column), -1)).astype(">i4")
    return [_same_size(sizes), pc.fill_null(column.cast(pa.binary()), b"")]


def _jsonb(column: pa.Array) -> list[pa.Array]:
    """Text after the number of the format, which is 1."""
    made = np.empty(len(column), [("size", ">i4"), ("version", "u1")])
    made["size"], made["version"] = np.asarray(pc.fill_null(pc.binary_length(column), 0)) + 1, 1
    return [_or_null(_same_size(made), column), pc.fill_null(column.cast(pa.binary()), b"")]


def _uuid(column: pa.Array) -> list[pa.Array]:
    digits = pc.fill_null(pc.utf8_lower(pc.replace_substring(column, "-", "")), "0" * 32)
    if not pc.all(pc.match_substring_regex(digits, "^[0-9a-f]{32}$")).as_py():
        raise UnfitValueError("has text that is no UUID, such as 123e4567-e89b-12d3-a456-426614174000")
    ascii_ = np.frombuffer(_content(digits.cast(pa.binary())), np.uint8).reshape(-1, 32)
    nibbles = np.where(ascii_ < ord("a"), ascii_ - ord("0"), ascii_ - (ord("a") - 10)).astype(np.uint8)
    made = np.empty(len(column), [("size", ">i4"), ("value", "u1", 16)])
    made["size"], made["value"] = 16, nibbles[:, ::2] << 4 | nibbles[:, 1::2]
    return [_or_null(_same_size(made), column)]


def _numeric(column: pa.Array) -> list[pa.Array]:
    """Digits to the base of 10,000, as many for each value as the type has; the server drops zeros at both ends."""
    precision, scale = column.type.precision, column.type.scale
    padding = -scale % 4
    before, after = -(-(precision - scale) // 4), (scale + padding) // 4
    limbs, negative = _magnitude(column, 10**padding)
    made = np.empty(len(column), [("size", ">i4"), ("head", ">i2", 4), ("digits", ">i2", before + after)])
    made["size"] = 8 + 2 * (before + after)
    made["head"][:, 0], made["head"][:, 1], made["head"][:, 3] = before + after, before - 1, scale
    made["head"][:, 2] = np.where(negative, 0x4000, 0)
    for number in reversed(range(before + after)):
        made["digits"][:, number] = _divided(limbs, 10_000)
    return [_or_null(_same_size(made), column)]


def _magnitude(column: pa.Array, factor: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Absolute values times ``factor`` as numbers to the base of 2**32, highest first, and which are negative."""
    words = np.frombuffer(column.buffers()[1], "<u4", 4 * len(column), 16 * column.offset).reshape(-1, 4)
    negative = words[:, 3] >= 1 << 31
    low_first: list[np.ndarray] = []
    carry: Any = negative.astype(np.uint64)
    for number in range(4):
        word = np.where(negative, ~words[:, number], words[:, number]).astype(np.uint64) + carry
        low_first.append(word & 0xFFFFFFFF)
        carry = word >> 32
    carry = np.uint64(0)
    for number in range(4):
        word = low_first[number] * np.uint64(factor) + carry
        low_first[number] = word & 0xFFFFFFFF
        carry = word >> 32
    return [carry, *reversed(low_first)], negative


def _divided(limbs: list[np.ndarray], by: int) -> np.ndarray:
    """Divides the numbers in place, and returns the remainders."""
    remainder = np.zeros(len(limbs[-1]), np.uint64)
    for number, limb in enumerate(limbs):
        whole = (remainder << np.uint64(32)) | limb
        limbs[number] = whole // np.uint64(by)
        remainder = whole - limbs[number] * np.uint64(by)
    return remainder


def _arrays(column: pa.Array, encode: Callable[[pa.Array], list[pa.Array]], element: int) -> list[pa.Array]:
    """Arrays of one dimension; an empty one has none."""
    values = column.flatten()
    sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])
    one_by_one = pc.binary_join_element_wise(*encode(values), b"")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), one_by_one), b"")
    made = np.empty(
        len(column), [(name, ">i4") for name in ("size", "dimensions", "nulls", "element", "many", "first")]
    )
    made["size"], made["dimensions"], made["nulls"] = (
        20 + np.asarray(pc.binary_length(joined)),
        1,
        values.null_count > 0,
    )
    made["element"], made["many"], made["first"] = element, sizes, 1
    empty = pa.scalar(np.array([12, 0, 0, element], ">i4").tobytes(), pa.binary())
    heads = pc.if_else(pa.array(sizes > 0), _same_size(made), empty)
    return [_or_null(heads, column), joined]


KINDS: dict[str, Callable[[pa.Array], list[pa.Array]]] = {
    "boolean": _boolean,
    "smallint": _plain("i2"),
    "integer": _plain("i4"),
    "bigint": _plain("i8"),
    "real": _plain("f4"),
    "double precision": _plain("f8"),
    "numeric": _numeric,
    "date": _plain("i4", _DAYS_TO_2000),
    "timestamp": _plain("i8", _MICROSECONDS_TO_2000),
    "text": _bytes,
    "bytea": _bytes,
    "jsonb": _jsonb,
    "uuid": _uuid,
}
"""Kinds of columns, and how their Arrow arrays are encoded."""
