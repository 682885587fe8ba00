"""The data files of an Iceberg table: their partitions, and the metadata of new ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, IsNull
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, NestedField, StringType

from falcon_assets.storage.tables.catalog import Values
from falcon_assets.storage.tables.key_values import NO_VALUE
from falcon_assets.storage.tables.table_files import data_files

_EPOCH = date(1970, 1, 1)


def table_name(table: Table) -> str:
    """``database.table``."""
    return ".".join(table.name()[-2:])


def key_fields(table: Table) -> list[NestedField]:
    return [table.schema().find_field(field.source_id) for field in table.spec().fields]


def equal(table: Table, fixed: Mapping[str, str]) -> BooleanExpression:
    """Selects files by canonical values of keys, by their lower-case names."""
    fields = {field.name.lower(): field for field in key_fields(table)}
    each = [
        IsNull(term=fields[key].name) if value == NO_VALUE else EqualTo(term=fields[key].name, value=value)
        for key, value in fixed.items()
    ]
    if not each:
        return AlwaysTrue()
    return And(*each) if len(each) > 1 else each[0]


class PathsOfFiles(dict[str, int]):
    """Numbers of columns by their paths in files, regardless of case; raises ValueError for unknown ones."""

    def __init__(self, schema: Schema) -> None:
        exact = parquet_path_to_id_mapping(schema)
        super().__init__(exact)
        self._lowered = {path.lower(): number for path, number in exact.items()}

    def __missing__(self, path: str) -> int:
        number = self._lowered.get(path.lower())
        if number is None:
            raise ValueError(f"a file has the column {path}, which the table does not have")
        return number


def data_files_at(table: Table, values: Values, places: Sequence[str]) -> Iterator[tuple[DataFile, pa.Schema]]:
    """Returns metadata and columns of Parquet files there; ValueError: required values or columns are missing."""
    schema, record = table.schema(), _record(table, values)
    plan, paths = compute_statistics_plan(schema, table.metadata.properties), PathsOfFiles(schema)
    keys = {field.field_id for field in key_fields(table)}
    required = [field for field in schema.fields if field.required and field.field_id not in keys]
    for url in _files_at(places):
        metadata, size = file_end(table, url)
        for field in required:
            if nulls := _nulls(metadata, field.name):
                raise ValueError(f"{field.name} has no value in {nulls} rows, and the table requires one")
        statistics = data_file_statistics_from_parquet_metadata(metadata, plan, paths)
        yield (
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=url,
                file_format=FileFormat.PARQUET,
                partition=record,
                file_size_in_bytes=size,
                sort_order_id=None,
                spec_id=table.spec().spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            ),
            metadata.schema.to_arrow_schema(),
        )


def _nulls(file: pq.FileMetaData, name: str) -> int:
    """Counts the null values of a column without inner ones; 0 if the file has no statistics."""
    parts = (file.row_group(group).column(at) for group in range(file.num_row_groups) for at in range(file.num_columns))
    own = (one.statistics for one in parts if one.path_in_schema.lower() == name.lower())
    return sum(one.null_count for one in own if one is not None and one.has_null_count)


def _files_at(places: Sequence[str]) -> Iterator[str]:
    for place in places:
        path = _mounted(place)
        if path and path.is_dir():
            yield from (f"file://{file}" for file in data_files(path))
        else:
            yield place


def _mounted(place: str) -> Path | None:
    return Path("/" + place.removeprefix("file:").lstrip("/")) if place.startswith("file:") else None


def file_end(table: Table, url: str) -> tuple[pq.FileMetaData, int]:
    if path := _mounted(url):
        return pq.read_metadata(path), path.stat().st_size
    given = table.io.new_input(url)
    with given.open() as file:
        return pq.read_metadata(file), len(given)


def _record(table: Table, values: Values) -> Record:
    return Record(*(_stored(field, value) for field, value in zip(key_fields(table), values, strict=True)))


def _stored(field: NestedField, text: str) -> Any:
    """Returns the value of a key as manifests have it; raises ValueError if it would not be read back as it is."""
    if text == NO_VALUE:
        return None
    if isinstance(field.field_type, StringType):
        return text
    found = (date.fromisoformat(text) - _EPOCH).days if isinstance(field.field_type, DateType) else int(text)
    if text_of(field, found) != text:
        raise ValueError(f"the {field.field_type} {text!r} of partition key {field.name} is {text_of(field, found)!r}")
    return found


def text_of(field: NestedField, stored: Any) -> str:
    if stored is None:
        return NO_VALUE
    return str(_EPOCH + timedelta(days=stored)) if isinstance(field.field_type, DateType) else str(stored)


def version_of_files(files: Sequence[DataFile]) -> str | None:
    """Hashes the names of the files: new data has new names, and files never change."""
    if not files:
        return None
    names = "\n".join(sorted(file.file_path for file in files))
    return hashlib.blake2b(names.encode(), digest_size=16).hexdigest()
