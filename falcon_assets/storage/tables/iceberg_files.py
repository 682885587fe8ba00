"""The data files of an Iceberg table: which partition they are in, and what the table is to know of new ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, IsNull
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
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
    """The columns that it is partitioned by."""
    return [table.schema().find_field(field.source_id) for field in table.spec().fields]


def equal(table: Table, fixed: Mapping[str, str]) -> BooleanExpression:
    """The files of partitions with these values, by the lower-case names of their keys."""
    fields = {field.name.lower(): field for field in key_fields(table)}
    each = [
        IsNull(term=fields[key].name) if value == NO_VALUE else EqualTo(term=fields[key].name, value=value)
        for key, value in fixed.items()
    ]
    if not each:
        return AlwaysTrue()
    return And(*each) if len(each) > 1 else each[0]


def data_files_at(table: Table, values: Values, places: Sequence[str]) -> Iterator[DataFile]:
    """What the table is to know of Parquet files, which are at these URLs, or in folders there."""
    schema, record = table.schema(), _record(table, values)
    plan, paths = compute_statistics_plan(schema, table.metadata.properties), parquet_path_to_id_mapping(schema)
    for url in _files_at(places):
        metadata, size = _ends(table, url)
        statistics = data_file_statistics_from_parquet_metadata(metadata, plan, paths)
        yield DataFile.from_args(
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
        )


def _files_at(places: Sequence[str]) -> Iterator[str]:
    for place in places:
        path = _mounted(place)
        if path and path.is_dir():
            yield from (f"file://{file}" for file in data_files(path))
        else:
            yield place


def _mounted(place: str) -> Path | None:
    return Path("/" + place.removeprefix("file:").lstrip("/")) if place.startswith("file:") else None


def _ends(table: Table, url: str) -> tuple[pq.FileMetaData, int]:
    """What a file says of itself at its end, and its size."""
    if path := _mounted(url):
        return pq.read_metadata(path), path.stat().st_size
    given = table.io.new_input(url)
    with given.open() as file:
        return pq.read_metadata(file), len(given)


def _record(table: Table, values: Values) -> Record:
    return Record(*(_stored(field, value) for field, value in zip(key_fields(table), values, strict=True)))


def _stored(field: NestedField, text: str) -> Any:
    """The value of a partition key as manifests have it.

    Raises:
        ValueError: it would not come back as it is.
    """
    if text == NO_VALUE:
        return None
    if isinstance(field.field_type, StringType):
        return text
    found = (date.fromisoformat(text) - _EPOCH).days if isinstance(field.field_type, DateType) else int(text)
    if text_of(field, found) != text:
        raise ValueError(f"the {field.field_type} {text!r} of partition key {field.name} is {text_of(field, found)!r}")
    return found


def text_of(field: NestedField, stored: Any) -> str:
    """The value of a partition key as people write it."""
    if stored is None:
        return NO_VALUE
    return str(_EPOCH + timedelta(days=stored)) if isinstance(field.field_type, DateType) else str(stored)


def version_of_files(files: Sequence[DataFile]) -> str | None:
    """Over the names of its files: what is written gets new ones, and nothing in them ever changes."""
    if not files:
        return None
    names = "\n".join(sorted(file.file_path for file in files))
    return hashlib.blake2b(names.encode(), digest_size=16).hexdigest()
