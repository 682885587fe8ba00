"""CSV and JSON files as Spark writes and reads them: values as texts, columns in one pass each."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import json as json_files

from falcon_assets.errors import StorageError

TEXTUAL = ("csv", "json")
_OPTIONS = {
    "csv": {"header", "sep", "delimiter", "quote", "escape", "nullvalue", "compression", "mode", "multiline"},
    "json": {"compression", "mode"},
}
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
_ESCAPES = re.compile(rb'\\(["\\])|\\')
_CONTROL = "[\\x00-\\x1f]"
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def text_options(file_format: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a feed in lower case; raises StorageError for those that only Spark knows."""
    known = {key.lower(): value for key, value in options.items()}
    if unknown := [key for key in options if key.lower() not in _OPTIONS[file_format]]:
        raise StorageError(f"the engine python does not know the option {unknown[0]} of {file_format}")
    if known.get("mode", "FAILFAST").upper() != "FAILFAST":
        raise StorageError(f"the engine python reads {file_format} in mode FAILFAST only")
    if known.get("compression", "none").lower() not in ("none", "uncompressed", "gzip"):
        raise StorageError(f"the engine python packs {file_format} by gzip only")
    if "delimiter" in known:
        known["sep"] = known.pop("delimiter")
    return known


def read_text(path: Path, file_format: str, options: Mapping[str, str], schema: pa.Schema | None) -> pa.Table:
    """Returns the rows of a file, with these columns; None: all, CSV as texts.

    Raises StorageError, ValueError or an ArrowException, which says where the file is not like that.
    """
    said = text_options(file_format, options)
    with pa.input_stream(str(path), compression="detect") as opened:
        content = opened.read()
    as_texts = None if schema is None else pa.schema([field.with_type(_as_text(field.type)) for field in schema])
    found = _csv(content, said, as_texts) if file_format == "csv" else _json(content, as_texts)
    if schema is None:
        return found
    columns = []
    for field in schema:
        if field.name not in found.column_names:
            columns.append(pa.chunked_array([pa.nulls(len(found), field.type)]))
            continue
        try:
            columns.append(_typed(found.column(field.name), field.type))
        except pa.ArrowException as error:
            raise StorageError(f"column {field.name!r} is not {field.type}: {error}") from error
    return pa.table(columns, schema=schema)


def _as_text(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind) else kind


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_date(kind) and pa.types.is_string(column.type):
        return column.cast(kind)
    if pa.types.is_binary(kind):
        return pa.chunked_array([pa.array([one and b64decode(one) for one in column.to_pylist()], kind)])
    if not pa.types.is_timestamp(kind) or not pa.types.is_string(column.type):
        return column.cast(kind)
    has_zone, nothing = pc.match_substring_regex(column, _ZONE), pa.scalar(None, pa.string())
    aware = pc.if_else(has_zone, column, nothing).cast(pa.timestamp("us", "UTC"))
    naive = pc.if_else(has_zone, nothing, column).cast(pa.timestamp("us"))
    if kind.tz is None:
        return pc.coalesce(naive, aware.cast(kind))
    return pc.coalesce(aware, naive.cast(kind))  # what clocks show in UTC, as in sessions of Spark


def _csv(content: bytes, said: Mapping[str, str], schema: pa.Schema | None) -> pa.Table:
    escape = said.get("escape", "\\")
    if b"\\" in content and escape == "\\":  # one that escapes nothing is itself
        content = _ESCAPES.sub(lambda one: one[0] if one[1] else b"\\\\", content)
    parsed = csv.ParseOptions(
        delimiter=said.get("sep", ","),
        quote_char=said.get("quote", '"') or False,
        escape_char=False if escape == said.get("quote", '"') else escape,
        newlines_in_values=said.get("multiline", "").lower() == "true",
    )
    has_header = said.get("header", "").lower() == "true"
    names = None if schema is None else schema.names
    block = max(len(content), 1) + 1
    if has_header or names is None:
        lines = csv.ReadOptions(autogenerate_column_names=not has_header, block_size=block)
        in_file = csv.open_csv(pa.BufferReader(content), lines, parsed, _converted(said)).schema.names
        if not has_header:
            in_file = [f"_c{number}" for number in range(len(in_file))]
        if names is not None and in_file != names:
            raise StorageError(f"the header is {', '.join(in_file)}, and the declared columns are {', '.join(names)}")
        names = in_file
    types = schema if schema is not None else pa.schema([(name, pa.string()) for name in names])
    lines = csv.ReadOptions(column_names=names, skip_rows=int(has_header), block_size=block)
    return csv.read_csv(pa.BufferReader(content), lines, parsed, _converted(said, types))


def _converted(said: Mapping[str, str], types: pa.Schema | None = None) -> csv.ConvertOptions:
    return csv.ConvertOptions(
        column_types=types,
        null_values=[said.get("nullvalue", "")],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _json(content: bytes, schema: pa.Schema | None) -> pa.Table:
    block = json_files.ReadOptions(block_size=max(len(content), 1) + 1)

    def read(wanted: pa.Schema | None) -> pa.Table:
        others = "infer" if wanted is None else "ignore"
        parsed = json_files.ParseOptions(explicit_schema=wanted, unexpected_field_behavior=others)
        return json_files.read_json(pa.BufferReader(content), block, parsed)

    if schema is not None:
        return read(schema)
    found = read(None).schema
    texts = pa.schema([one.with_type(pa.string()) if pa.types.is_timestamp(one.type) else one for one in found])
    return read(texts)


def lines_of(table: pa.Table, file_format: str, options: Mapping[str, str], *, is_first: bool) -> bytes:
    """The rows as lines of a file; the first ones with the header, if there is one."""
    said = text_options(file_format, options)
    if file_format == "json":
        lines = [f"{line}\n" for line in _json_lines(table)]
    else:
        sep, null = said.get("sep", ","), said.get("nullvalue", "")
        quote, escape = said.get("quote", '"'), said.get("escape", "\\")
        header = [sep.join(table.column_names)] if is_first and said.get("header", "").lower() == "true" else []
        columns = [pc.fill_null(_csv_values(column, quote, escape), null) for column in table.columns]
        rows = pc.binary_join_element_wise(*columns, sep).to_pylist() if columns and len(table) else []
        lines = [f"{line}\n" for line in (*header, *rows)]
    return "".join(lines).encode()


def _csv_values(column: pa.ChunkedArray, quote: str, escape: str) -> pa.ChunkedArray:
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise StorageError(f"CSV has no values of the type {column.type}")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return _plain_text(column)
    if escape != quote:
        column = pc.replace_substring(column, escape, escape * 2)
    escaped = pc.replace_substring(column.cast(pa.string()), quote, f"{escape}{quote}")
    return pc.binary_join_element_wise(quote, escaped, quote, "")


def _floats(column: pa.ChunkedArray, nan: str, most: str, least: str) -> pa.ChunkedArray:
    infinite = pc.if_else(pc.greater(column, 0), most, least)
    return pc.if_else(pc.is_finite(column), column.cast(pa.string()), pc.if_else(pc.is_nan(column), nan, infinite))


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return _floats(column, "NaN", "Inf", "-Inf")
    text = column.cast(pa.string())
    return pc.replace_substring(text, " ", "T", max_replacements=1) if pa.types.is_timestamp(column.type) else text


def _json_lines(table: pa.Table) -> list[str]:
    if not len(table):
        return []
    if not table.num_columns:
        return ["{}"] * len(table)
    fields = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        fields.append(pc.binary_join_element_wise(f"{json.dumps(name, ensure_ascii=False)}:", _json_values(column), ""))
    # What is null is left out. Arrow loses the rows that would be empty without the first one.
    joined = pc.binary_join_element_wise(pa.repeat("", len(table)), *fields, ",", null_handling="skip")
    found: list[str] = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "").to_pylist()
    return found


def _json_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = column.cast(pa.string())
        for letter, escaped in _SHORT.items():
            text = pc.replace_substring(text, letter, escaped)
        if not pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
            return pc.binary_join_element_wise('"', text, '"', "")
    elif pa.types.is_floating(kind):
        return _floats(column, '"NaN"', '"Infinity"', '"-Infinity"')
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pc.binary_join_element_wise('"', _plain_text(column), '"', "")
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string())
    values = column.to_pylist(maps_as_pydicts="strict") if pa.types.is_nested(kind) else column.to_pylist()
    texts = [None if one is None else json.dumps(_as_json(one), ensure_ascii=False) for one in values]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _as_json(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value
