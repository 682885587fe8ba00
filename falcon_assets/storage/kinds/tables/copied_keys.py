"""Copies of files with content that a table does not have in its files: partition keys, numbers of another table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.kinds.objects.written import Written

_NUMBER = b"PARQUET:field_id"


def take_keys_out(written: Written, name: str, files: Iterable[str], keys: Sequence[str]) -> None:
    """Rewrites Parquet files that hold partition keys, as PyIceberg's do, or number their columns.

    Iceberg identifies columns by these numbers, and those of one table mean other columns in another.
    """
    lowered = {key.lower() for key in keys}
    for file in files:
        if any(map(is_hidden, file.split("/"))):
            continue
        with written.open(name, file) as opened:
            try:
                whole = pq.ParquetFile(opened)
            except pa.ArrowInvalid:
                continue
            schema = whole.schema_arrow
            kept = [one.name for one in schema if one.name.lower() not in lowered]
            if len(kept) == len(schema) and not any(map(_is_numbered, schema)):
                continue
            with tempfile.TemporaryDirectory(prefix="falcon-copy-") as made:
                path = Path(made, "file")
                plain = pa.schema([_plain(schema.field(one)) for one in kept])
                with pq.ParquetWriter(path, plain) as writer:
                    for group in range(whole.num_row_groups):
                        rows = whole.read_row_group(group, columns=kept).select(kept)
                        writer.write_table(rows.cast(plain))
                written.replace(name, file, path)


def _is_numbered(field: pa.Field) -> bool:
    return _NUMBER in (field.metadata or {})


def _plain(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_plain(one) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_field), _plain(kind.item_field))
    return kind
