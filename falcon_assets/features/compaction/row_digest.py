"""A checksum of rows that depends neither on their order nor on how they are stored: before and after are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Hashes: TypeAlias = NDArray[np.uint64]
_STEP, _NULL, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x6A09E667F3BCC909), np.uint64(0xBB67AE8584CAA73B)
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)
"""By the number of bytes of a word that count."""
_TEXT = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


@dataclass(frozen=True)
class RowDigest:
    """The number of rows, and two sums of their hashes: equal rows in another order give the same."""

    rows: int = 0
    first: int = 0
    second: int = 0

    def of(self, tables: Iterable[pa.Table]) -> RowDigest:
        """With the rows of these, too."""
        rows, first, second = self.rows, np.uint64(self.first), np.uint64(self.second)
        with np.errstate(over="ignore"):
            for batch in (batch for table in tables for batch in table.to_batches()):
                hashes = row_hashes(batch)
                rows += batch.num_rows
                first = first + hashes.sum(dtype=np.uint64)
                second = second + _mixed(hashes ^ _SECOND).sum(dtype=np.uint64)
        return RowDigest(rows, int(first), int(second))

    def __str__(self) -> str:
        return f"{self.first:016x}{self.second:016x}"


def row_hashes(batch: pa.RecordBatch) -> _Hashes:
    """A hash per row, of the bits of its values: 0.0 and -0.0 differ, null and empty too."""
    return _combined([batch.column(number) for number in range(batch.num_columns)], batch.num_rows)


def _combined(columns: Iterable[pa.Array], rows: int) -> _Hashes:
    found = np.zeros(rows, np.uint64)
    for column in columns:
        found = _mixed(found * _STEP + _hashes(column))
    return found


def _hashes(array: pa.Array) -> _Hashes:
    array = _plain(array)
    if pa.types.is_null(array.type):
        return np.full(len(array), _NULL)
    found = _of_values(array)
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def _plain(array: pa.Array) -> pa.Array:
    """The same values in a layout that is hashed; equal values may be stored in several."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_boolean(kind):
        return array.cast(pa.uint8())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_fixed_size_list(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def _of_values(array: pa.Array) -> _Hashes:
    kind = array.type
    if any(is_text(kind) for is_text in _TEXT):
        return _of_bytes(array)
    if pa.types.is_struct(kind):
        return _combined([array.field(number) for number in range(kind.num_fields)], len(array))
    if pa.types.is_map(kind):
        entries = _combined([array.keys, array.items], len(array.keys))
        return _of_lists(array.offsets, entries)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_lists(array.offsets, _hashes(array.values))
    return _of_fixed(array, kind.bit_width // 8)  # raises for a type that has none: nothing goes unverified


def _of_fixed(array: pa.Array, width: int) -> _Hashes:
    data = array.buffers()[1]
    if not len(array) or data is None:
        return np.zeros(len(array), np.uint64)
    start, stop = array.offset * width, (array.offset + len(array)) * width
    if width in (1, 2, 4, 8):
        return _mixed(np.frombuffer(data, np.dtype(f"<u{width}"))[array.offset :][: len(array)].astype(np.uint64))
    words = -(-width // 8)
    padded = np.zeros((len(array), words * 8), np.uint8)
    padded[:, :width] = np.frombuffer(data, np.uint8)[start:stop].reshape(len(array), width)
    found = np.zeros(len(array), np.uint64)
    for word in padded.view("<u8").T:
        found = _mixed(found * _STEP + word)
    return found


def _of_bytes(array: pa.Array) -> _Hashes:
    """Word by word for all values at once, so that it costs as many steps as the longest has words."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, where, data = array.buffers()
    if not len(array) or where is None:
        return np.zeros(len(array), np.uint64)
    every = np.frombuffer(where, np.int64 if is_large else np.int32)
    offsets = every[array.offset : array.offset + len(array) + 1].astype(np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    content = np.zeros(end - begin + 8, np.uint8)
    if data is not None:
        content[:-8] = np.frombuffer(data, np.uint8)[begin:end]
    words = np.ndarray((len(content) - 7,), np.dtype("<u8"), content.data, strides=(1,))
    starts, lengths = offsets[:-1] - begin, np.diff(offsets)
    found = _mixed(lengths.astype(np.uint64) + _STEP)
    left = np.flatnonzero(lengths)
    at = 0
    while left.size:
        rest = lengths[left] - at
        word = words[starts[left] + at] & _MASKS[np.minimum(rest, 8)]
        found[left] = _mixed(found[left] ^ word)
        left, at = left[rest > 8], at + 8
    return found


def _of_lists(offsets: pa.Array, values: _Hashes) -> _Hashes:
    """Of lists whose elements have these hashes; their order counts."""
    where = offsets.to_numpy().astype(np.int64)
    begin, lengths = int(where[0]), np.diff(where)
    own = values[begin : int(where[-1])]
    position = np.arange(len(own)) - np.repeat(where[:-1] - begin, lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(own + position.astype(np.uint64) * _STEP))])
    return _mixed((sums[where[1:] - begin] - sums[where[:-1] - begin]) ^ (lengths.astype(np.uint64) + _STEP))


def _mixed(value: _Hashes) -> _Hashes:
    """The finalizer of splitmix64: each bit of the result depends on each bit of the value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
