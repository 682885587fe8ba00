"""Reads the instances of an input as an Arrow dataset, from files on this machine, without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs, orc

from falcon_assets.compute.arrow.columns import common_schema, wider, with_instants
from falcon_assets.compute.arrow.spark_types import arrow_schema
from falcon_assets.compute.arrow.text_files import TEXTUAL, read_text
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.errors import FalconError, StorageError, WorkflowError
from falcon_assets.storage.instances.data_files import is_data, shown

_OF_FORMATS: Mapping[str, ds.FileFormat] = {
    "parquet": ds.ParquetFileFormat(coerce_int96_timestamp_unit="us"),
    "orc": ds.OrcFileFormat(),
}
FORMATS = (*_OF_FORMATS, *TEXTUAL)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OF_READING = {"mergeschema", "compression", "recursivefilelookup"}
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?://[^/]*)?")
Values: TypeAlias = Mapping[str, str | None]
"""The columns that a file has from its folders."""


@dataclass(frozen=True)
class _File:
    path: str
    folders: Values


def local_path(url: str, title: str) -> str:
    """The path of a URL of this machine, nothing in which is escaped; raises WorkflowError for any other."""
    scheme = _SCHEME.match(url)
    if scheme and scheme[1].lower() != "file":
        raise WorkflowError(f"{title} lies at {url}, which the engine python cannot reach: use an engine with Spark")
    return url[scheme.end() :] if scheme else url


def dataset_of(data: InputData) -> ds.Dataset:
    """Returns all instances of the input as one dataset; of Parquet and ORC, rows are read when they are asked for.

    A declared schema is enforced, as :func:`~falcon_assets.compute.spark.data.reading.read_input` does: its columns in
    its order; one that files lack is null, a type that does not fit is an error. Without one, there are the columns of
    all files, by name. Partitions are columns, too. Exactly the files that were counted are read.

    Raises:
        WorkflowError: it cannot be read as the feed declares; or there is no data, and no schema.
    """
    try:
        return _dataset(data)
    except WorkflowError:
        raise
    except (pa.ArrowException, OSError, FalconError, UnicodeDecodeError) as error:
        raise WorkflowError(f"{data.title}: {error}") from error


def _dataset(data: InputData) -> ds.Dataset:
    feed = data.feed
    if feed.format not in FORMATS:
        raise WorkflowError(
            f"{data.title}: the engine python reads rows of {', '.join(FORMATS)}, not {feed.format}: read its files in "
            f"instance.inputs[{data.name!r}], or use an engine with Spark"
        )
    if data.partitions or feed.table is not None:
        raise WorkflowError(f"{data.title}: the engine python reads no tables: use an engine with Spark")
    files = [one for one in _files(data) if _is_wanted(data, one)]
    declared = _declared(data)
    if not files:
        if declared is None:
            raise WorkflowError(
                f"{data.title}: no instance is available, and without a declared schema an empty input has no columns: "
                "declare `schema:` in the feed"
            )
        return ds.dataset(_with_folders(declared, _keys(data, files)).empty_table())
    if feed.format in TEXTUAL:
        return _of_text(data, files, declared)
    _require_options(data)
    in_files = _schema(data, files, declared)
    schema = declared if declared is not None else in_files
    schema = _with_folders(schema, _keys(data, files))
    local, read_by = fs.LocalFileSystem(), _OF_FORMATS[feed.format]
    fragments = [
        read_by.make_fragment(one.path, local, partition_expression=_expression(one.folders, schema)) for one in files
    ]
    return ds.FileSystemDataset(fragments, schema, read_by, local)


def _declared(data: InputData) -> pa.Schema | None:
    if data.feed.schema_ is None:
        return None
    try:
        return arrow_schema(data.feed.schema_)
    except KeyError as error:
        raise WorkflowError(f"{data.title}: the engine python does not know the type {error} of its schema") from None


def _require_options(data: InputData) -> None:
    if unknown := [key for key in data.feed.options if key.lower() not in _OF_READING]:
        raise WorkflowError(f"{data.title}: the engine python does not know the option {unknown[0]} of its feed")


def _of_text(data: InputData, files: Sequence[_File], declared: pa.Schema | None) -> ds.Dataset:
    folders = {name.lower() for one in files for name in one.folders}
    own = declared and pa.schema([field for field in declared if field.name.lower() not in folders])
    tables = []
    for one in files:
        try:
            tables.append(read_text(Path(one.path), data.feed.format, data.feed.options, own))
        except (pa.ArrowException, StorageError, ValueError) as error:
            raise WorkflowError(f"{data.title}: {shown(one.path)}: {error}") from error
    schema = own if own is not None else common_schema([(one.path, table.schema) for one, table in _zip(files, tables)])
    if own is None and data.feed.format == "csv":
        _require_same_header(data, files, tables)
    schema = _with_folders(declared if declared is not None else schema, _keys(data, files))
    found = [_whole(table, one.folders, schema) for one, table in _zip(files, tables)]
    return ds.dataset(pa.concat_tables(found))


def _zip(files: Sequence[_File], tables: Sequence[pa.Table]) -> Iterator[tuple[_File, pa.Table]]:
    return zip(files, tables, strict=True)


def _require_same_header(data: InputData, files: Sequence[_File], tables: Sequence[pa.Table]) -> None:
    first = tables[0].column_names
    for one, table in _zip(files, tables):
        if table.column_names != first:
            raise WorkflowError(
                f"{data.title}: {shown(one.path)} has the columns {', '.join(table.column_names)}, and "
                f"{shown(files[0].path)} {', '.join(first)}: declare `schema:` in the feed, or write the file again"
            )


def _whole(table: pa.Table, folders: Values, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        if field.name in folders:
            value = pa.scalar(folders[field.name], pa.string())
            columns.append(pa.repeat(value, len(table)).cast(field.type))
        elif field.name in table.column_names:
            columns.append(table.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(len(table), field.type))
    return pa.table(columns, schema=schema)


def _files(data: InputData) -> Iterator[_File]:
    for index, url in enumerate(data.urls):
        root = local_path(url, data.title)
        member = {data.members.column: data.members.of[index]} if data.members and data.members.column else {}
        for name in sorted(_names(data, index, root)):
            path = f"{root}/{name}" if name else root
            yield _File(path, {**_of_folders(data, name), **member})


def _names(data: InputData, index: int, root: str) -> Iterator[str]:
    if data.counted:
        yield from (name for name, size in data.counted[index].sizes.items() if size)
        return
    place = Path(root)
    below = [""] if place.is_file() else [str(one.relative_to(place)) for one in place.rglob("*") if one.is_file()]
    yield from (one for one in below if is_data(one, data.feed.availability_flag) and (place / one).stat().st_size)


def _of_folders(data: InputData, name: str) -> Values:
    steps = name.split("/")[:-1]
    if data.feed.partitions:
        padded = [*steps, *[None] * len(data.feed.partitions)]
        return {key: _value(step, key) for key, step in zip(data.feed.partitions, padded, strict=False)}
    return {unquote(key): _value(step, key) for step in steps for key, has, _ in [step.partition("=")] if has}


def _value(step: str | None, key: str) -> str | None:
    if step is None:
        return None
    value = unquote(step[len(key) + 1 :]) if step.startswith(f"{key}=") else step
    return None if value == _NO_VALUE else value


def _is_wanted(data: InputData, one: _File) -> bool:
    names, wanted = data.feed.partitions, [part for part in (data.partition or "").split("/") if part]
    if len(wanted) > len(names):
        raise WorkflowError(
            f"input {data.name!r}: partition {data.partition!r} has {len(wanted)} levels, but feed {data.feed.name!r} "
            f"declares these partitions: {', '.join(names) or 'none'}"
        )
    pairs = [(one.folders[name], part.removeprefix(f"{name}=")) for name, part in zip(names, wanted, strict=False)]
    return all(pattern == "*" or (value is not None and fnmatchcase(value, pattern)) for value, pattern in pairs)


def _keys(data: InputData, files: Sequence[_File]) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in files for name in one.folders)
    if not data.feed.partitions and (wrong := [one for one in files if one.folders.keys() != found.keys()]):
        other = next(one for one in files if one.folders.keys() != wrong[0].folders.keys())
        raise WorkflowError(
            f"{data.title}: the folders of {shown(wrong[0].path)} and {shown(other.path)} make different columns: "
            f"declare `partitions: [{', '.join(found)}]` in the feed, or move them"
        )
    members = (data.members.column,) if data.members and data.members.column else ()
    return tuple(found) or (*data.feed.partitions, *members)


def _with_folders(schema: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    known = {name.lower() for name in schema.names}
    return pa.schema([*schema, *(pa.field(key, pa.string()) for key in keys if key.lower() not in known)])


def _expression(folders: Values, schema: pa.Schema) -> ds.Expression:
    found = ds.scalar(True)
    for name, value in folders.items():
        field = ds.field(name)
        typed = None if value is None else pa.scalar(value, pa.string()).cast(schema.field(name).type)
        found = found & (field.is_null() if typed is None else field == ds.scalar(typed))
    return found


def _schema(data: InputData, files: Sequence[_File], declared: pa.Schema | None) -> pa.Schema:
    """The columns of all files, by name; raises WorkflowError where they do not fit into what is declared."""
    of_files = [(shown(one.path), _schema_of(data, one.path)) for one in files]
    if declared is None:
        try:
            return common_schema(of_files)
        except StorageError as error:
            raise WorkflowError(
                f"{data.title}: the files have no common schema: {error}: declare `schema:` in the feed, or write the "
                "file again"
            ) from error
    names = {field.name.lower(): field for field in declared}
    for file, schema in of_files:
        for found in schema:
            field = names.get(found.name.lower())
            if field is None:
                continue
            if field.name != found.name:
                raise WorkflowError(
                    f"{data.title}: the column {found.name} of {file} is declared as {field.name}: the engine python "
                    "takes names as they are written"
                )
            if not _fits(found.type, field.type):
                raise WorkflowError(
                    f"{data.title}: the files do not have the declared schema: {found.name} is {found.type} in {file}, "
                    f"declared {field.type}"
                )
    return declared


def _schema_of(data: InputData, path: str) -> pa.Schema:
    try:
        if data.feed.format == "parquet":
            with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as found:
                return _plain(with_instants(found))
        return _plain(orc.ORCFile(path).schema, is_orc=True)
    except (pa.ArrowException, OSError) as error:
        raise WorkflowError(f"{data.title}: {shown(path)} cannot be read as {data.feed.format}: {error}") from error


def _plain(schema: pa.Schema, *, is_orc: bool = False) -> pa.Schema:
    """ORC has instants as what clocks show in UTC, as Spark writes them."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC" if is_orc or field.type.tz else None))
        if pa.types.is_timestamp(field.type)
        else field
        for field in schema
    ]
    return pa.schema(fields)


def _fits(found: pa.DataType, declared: pa.DataType) -> bool:
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(declared):
        return True
    common = wider(declared, found)
    return common is not None and common.equals(declared)
