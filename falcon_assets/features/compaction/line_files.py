"""Files whose rows are lines: text, CSV and JSON. Lines stay as they are, byte by byte; only their order changes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa

from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.row_files import DataFile, RowFiles, RowWriter
from falcon_assets.model.spark_schema import column_types

_BLOCK_BYTES = 1 << 23
_LINE = "line"
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_OTHER_CODECS = re.compile(r"\.(lz4|snappy|deflate|xz|lzo)$", re.IGNORECASE)
_REFUSED = {
    "multiline": "rows of several lines",
    "linesep": "another end of lines",
    "wholetext": "files that are one row",
    "encoding": "another encoding than UTF-8",
    "charset": "another encoding than UTF-8",
}
"""Options by which a row is no line."""
_TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real", "double"), pa.float64()),
    **dict.fromkeys(("decimal", "dec", "numeric"), pa.decimal128(38, 9)),
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamp_ntz"), pa.timestamp("us")),
    **dict.fromkeys(("string", "char", "character", "varchar"), pa.string()),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
"""How columns of a schema are sorted."""


class LineFiles(RowFiles):
    """Lines with the values that they are sorted by beside them."""

    columns = (_LINE,)

    def __init__(
        self, files: Sequence[DataFile], kind: str, sort: Sequence[str], options: Mapping[str, str], schema: str | None
    ) -> None:
        self._kind, self._options = kind, {name.lower(): value for name, value in options.items()}
        self.keys = [f"key {number}" for number in range(len(sort))]
        types = {name.lower(): (name, kind) for name, kind in column_types(schema or "value string")}
        self._names = [name for name, _ in types.values()]
        self._sort = [types[one.lower()][0] for one in sort]
        self._key_types = [_TYPES[types[one.lower()][1]] for one in sort]
        fields = [pa.field(_LINE, pa.large_binary())]
        fields += [pa.field(*one) for one in zip(self.keys, self._key_types, strict=True)]
        self.schema = pa.schema(fields)
        codecs = {self._codec(file) for file in files}
        self._written_codec = codecs.pop() if len(codecs) == 1 else "gzip" if codecs else None
        ends = {codec: end for end, codec in _CODECS.items()}
        self.suffix = f".{'txt' if kind == 'text' else kind}{ends.get(self._written_codec or '', '')}"
        self._header = self._common_header(files) if self._has_header else None

    def read(self, file: DataFile) -> Iterator[pa.Table]:
        values = self._values()
        for lines in self._lines(file, skip=self._has_header):
            keys = values(lines) if self.keys else []
            arrays = [pa.array(lines, pa.large_binary()), *map(_as_keys, keys, self._key_types)]
            yield pa.Table.from_arrays(arrays, schema=self.schema)

    def writer(self, sink: IO[bytes]) -> RowWriter:
        return _LineWriter(pa.output_stream(sink, compression=self._written_codec), self._header)

    @property
    def _has_header(self) -> bool:
        return self._kind == "csv" and self._options.get("header", "").lower() == "true"

    def _common_header(self, files: Iterable[DataFile]) -> bytes | None:
        first: tuple[bytes, str] | None = None
        for file in files:
            header = next((lines[0] for lines in self._lines(file)), None)
            if header is None:
                continue
            if first and first[0] != header:
                raise StorageError(f"{first[1]} and {file.name} have different headers, and so other columns")
            first = first or (header, file.name)
        return first[0] if first else None

    def _lines(self, file: DataFile, *, skip: bool = False) -> Iterator[list[bytes]]:
        """The lines of a file, some at once; ``skip``: without the first."""
        left = b""
        with file.open() as opened, pa.input_stream(opened, compression=self._codec(file)) as stream:
            while block := stream.read(_BLOCK_BYTES):
                *lines, left = (left + block).split(b"\n")
                found, skip = self._rows(lines, skip)
                if found:
                    yield found
            found, _ = self._rows([left] if left else [], skip)
            if found:
                yield found

    def _rows(self, lines: list[bytes], skip: bool) -> tuple[list[bytes], bool]:
        """Empty lines are rows of text only, as Spark has it."""
        bare = [one.removesuffix(b"\r") for one in lines]
        found = bare if self._kind == "text" else list(filter(None, bare))
        return (found[1:], False) if skip and found else (found, skip)

    def _codec(self, file: DataFile) -> str | None:
        name = file.name.lower()
        if found := _OTHER_CODECS.search(name):
            raise StorageError(f"{file.name} is compressed as {found[1]}, which is not supported: use gz, bz2 or zst")
        return next((codec for end, codec in _CODECS.items() if name.endswith(end)), None)

    def _values(self) -> Callable[[list[bytes]], list[list[Any]]]:
        if self._kind == "json":
            return self._json_values
        return self._csv_values if self._kind == "csv" else lambda lines: [[one.decode() for one in lines]]

    def _json_values(self, lines: list[bytes]) -> list[list[Any]]:
        rows = [_json_row(one) for one in lines]
        return [[row.get(name) for row in rows] for name in self._sort]

    def _csv_values(self, lines: list[bytes]) -> list[list[Any]]:
        given = self._options
        options: dict[str, Any] = {
            "delimiter": (given.get("sep") or given.get("delimiter") or ",").replace("\\t", "\t"),
            "quotechar": given.get("quote") or '"',
            "escapechar": given.get("escape") or "\\",
        }
        texts = [one.decode(errors="replace") for one in lines]
        rows = list(csv.reader(texts, **options))
        if len(rows) != len(texts):  # a quote that is not closed
            rows = [next(csv.reader([one], **options), []) for one in texts]
        where = [self._names.index(name) for name in self._sort]
        return [[row[at] if at < len(row) else None for row in rows] for at in where]


def why_not_lines(kind: str, sort: Sequence[str], options: Mapping[str, str], schema: str | None) -> str | None:
    """Why a feed of that format cannot be compacted, or sorted by that; None: it can."""
    for name, value in options.items():
        if what := _REFUSED.get(name.lower()):
            if name.lower() == "multiline" and value.lower() != "true":
                continue
            if name.lower() in ("encoding", "charset") and value.lower().replace("-", "") == "utf8":
                continue
            return f"files with the option {name} ({what}) cannot be compacted"
    if kind == "text":
        wrong = next((one for one in sort if one.lower() != "value"), None)
        return f"the only column of text is value, and not {wrong}" if wrong else None
    types = {name.lower(): of for name, of in column_types(schema or "")}
    for one in sort:
        if one.lower() not in types:
            return f"the schema of the feed has no column {one!r}: {kind} is sorted by the types that `schema` declares"
        if types[one.lower()] not in _TYPES:
            return f"column {one!r} is {types[one.lower()]}, by which {kind} is not sorted"
    return None


class _LineWriter:
    def __init__(self, stream: pa.NativeFile, header: bytes | None) -> None:
        self._stream = stream
        if header is not None:
            stream.write(header + b"\n")

    def write(self, rows: pa.Table) -> None:
        lines = rows[_LINE].to_pylist()
        self._stream.write(b"\n".join([*lines, b""]))

    def close(self) -> None:
        self._stream.close()


def _json_row(line: bytes) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}  # Spark reads it as a row of nulls
    return row if isinstance(row, dict) else {}


def _as_keys(values: list[Any], kind: pa.DataType) -> pa.Array:
    """As that type; what cannot be is null, as where Spark reads it."""
    plain = [None if one is None or one == "" else one for one in values]
    try:
        return pa.array(plain).cast(kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([_as_key(one, kind) for one in plain], kind)


def _as_key(value: Any, kind: pa.DataType) -> Any:
    try:
        if isinstance(value, float) and pa.types.is_decimal(kind):
            value = Decimal(repr(value))
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return None
