"""The data files of a partition in a folder: what columns they have, and whether a table takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from falcon_assets.errors import StorageError
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.tables.catalog import TableLayout
from falcon_assets.storage.tables.column_types import columns_of

_TEXTS = re.compile(r"(var)?char\(\d+\)")


class TableFiles(NamedTuple):
    """What the files in a folder say of themselves."""

    columns: pa.Schema
    """Their columns."""
    records: Mapping[Path, int]
    """How many records each of them holds."""


def data_files(folder: Path) -> Iterator[Path]:
    """The data files in a folder, at any depth, in order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(map(is_hidden, path.relative_to(folder).parts)):
            yield path


def table_files(folder: Path, kind: str) -> TableFiles:
    """Reads the ends of the files in ``folder``, which are of the format ``kind``.

    Raises:
        StorageError: there is none, or one is not of that format.
        OSError: as the operating system says.
    """
    columns, records = None, dict[Path, int]()
    for path in data_files(folder):
        try:
            if kind == "orc":
                file = pyarrow.orc.ORCFile(path)
                found, number = file.schema, file.nrows
            else:
                metadata = pyarrow.parquet.read_metadata(path)
                found, number = metadata.schema.to_arrow_schema(), metadata.num_rows
        except pa.ArrowInvalid:
            raise StorageError(f"{path.name} is no {kind} file: the table is in {kind}") from None
        columns, records[path] = found if columns is None else columns, number
        if not columns.equals(found):
            raise StorageError(f"{path.name} has other columns than the files beside it")
    if columns is None:
        raise StorageError(f"nothing was written to {folder}")
    return TableFiles(columns, records)


def new_columns(columns: pa.Schema, layout: TableLayout) -> pa.Schema:
    """Those of the columns of files that a table does not have."""
    there = {one.name.lower() for one in (*layout.columns, *layout.keys)}
    return pa.schema([field for field in columns if field.name.lower() not in there])


def require_fit(columns: pa.Schema, layout: TableLayout) -> None:
    """Makes sure that files with these columns hold what the table says.

    Raises:
        StorageError: a column is missing, is too much or has another type; all of them are named.
    """
    try:
        found = {one.name.lower(): one for one in columns_of(columns)}
    except ValueError as error:
        raise StorageError(f"table {layout.name}: {error}") from None
    wanted = {one.name.lower(): one for one in layout.columns}
    keys = {one.name.lower() for one in layout.keys}
    wrong = [f"{one} is not there" for name, one in wanted.items() if name not in found]
    wrong += [
        f"{one.name} is a partition key, which is not written into the files" if name in keys else f"{one} is not in it"
        for name, one in found.items()
        if name not in wanted
    ]
    wrong += [
        f"{one.name} is {one.type}, and {wanted[name].type} in the table"
        for name, one in found.items()
        if name in wanted and _plain(one.type) != _plain(wanted[name].type)
    ]
    if wrong:
        raise StorageError(f"the output does not fit table {layout.name}: {'; '.join(wrong)}")


def _plain(text: str) -> str:
    """The type as it is in files: how long a text may be is not said there, nor what a Hive timestamp means."""
    return _TEXTS.sub("string", text.replace(" ", "").lower()).replace("timestamp_ntz", "timestamp")
