"""The data files of a partition in a folder: their columns, and whether a table accepts them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.orc
import pyarrow.parquet

from falcon_assets.errors import StorageError
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.tables.catalog import TableLayout
from falcon_assets.storage.tables.column_types import TEXTS, columns_of, plain_type


class TableFiles(NamedTuple):
    columns: pa.Schema
    records: Mapping[str, int]


def data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(map(is_hidden, path.relative_to(folder).parts)):
            yield path


def table_files(
    names: Iterable[str], opened: Callable[[str], AbstractContextManager[IO[bytes]]], kind: str
) -> TableFiles:
    """Reads the ends of files; StorageError: there is none, or one has another format or other columns."""
    columns, records = None, dict[str, int]()
    for name in (one for one in names if not any(map(is_hidden, one.split("/")))):
        file_name = name.rpartition("/")[2]
        try:
            with opened(name) as file:
                found, records[name] = _read(file, kind)
        except pa.ArrowInvalid:
            raise StorageError(f"{file_name} is no {kind} file: the table is in {kind}") from None
        columns = found if columns is None else columns
        if not columns.equals(found):
            raise StorageError(f"{file_name} has other columns than the files beside it")
    if columns is None:
        raise StorageError("nothing was written")
    return TableFiles(columns, records)


def _read(file: IO[bytes], kind: str) -> tuple[pa.Schema, int]:
    if kind == "orc":
        whole = pyarrow.orc.ORCFile(file)
        return whole.schema, whole.nrows
    metadata = pyarrow.parquet.read_metadata(file)
    return metadata.schema.to_arrow_schema(), metadata.num_rows


def new_columns(columns: pa.Schema, layout: TableLayout) -> pa.Schema:
    there = {one.name.lower() for one in (*layout.columns, *layout.keys)}
    return pa.schema([field for field in columns if field.name.lower() not in there])


def require_no_keys(columns: pa.Schema, layout: TableLayout) -> None:
    """Raises StorageError if the columns include partition keys of the table."""
    keys = {one.name.lower() for one in layout.keys}
    if wrong := [
        f"{name} is a partition key, which is not written into the files"
        for name in columns.names
        if name.lower() in keys
    ]:
        raise StorageError(f"the output does not fit table {layout.name}: {'; '.join(wrong)}")


def require_fit(columns: pa.Schema, layout: TableLayout) -> None:
    """Raises StorageError if columns are missing, unknown or of another type; names all of them."""
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
        if name in wanted and plain_type(one.type) != plain_type(wanted[name].type)
    ]
    if wrong:
        raise StorageError(f"the output does not fit table {layout.name}: {'; '.join(wrong)}")


def require_short(
    names: Iterable[str], opened: Callable[[str], AbstractContextManager[IO[bytes]]], layout: TableLayout
) -> None:
    """Raises StorageError if a text is longer than the table says; files do not record that."""
    limited = [one for one in layout.columns if TEXTS.search(one.type.lower())]
    limits = {one.name.lower(): int(found[2]) for one in limited if (found := TEXTS.fullmatch(one.type.lower()))}
    if inside := [str(one) for one in limited if one.name.lower() not in limits]:
        raise StorageError(
            f"table {layout.name} limits texts inside of {inside[0]}, which no process writes: use string"
        )
    types = {one.name.lower(): one.type for one in limited}
    for name in names if limits else ():
        with opened(name) as file:
            for column, longest in _longest(file, layout.format, limits):
                if longest > limits[column.lower()]:
                    raise StorageError(
                        f"the output does not fit table {layout.name}: {column} has a text of {longest} characters, "
                        f"and is {types[column.lower()]} in the table"
                    )


def _longest(file: IO[bytes], kind: str, wanted: Collection[str]) -> Iterator[tuple[str, int]]:
    whole = pyarrow.orc.ORCFile(file) if kind == "orc" else pyarrow.parquet.ParquetFile(file)
    schema = whole.schema if kind == "orc" else whole.schema_arrow
    columns = [one.name for one in schema if one.name.lower() in wanted]
    parts = (
        (whole.read_stripe(number, columns) for number in range(whole.nstripes))
        if kind == "orc"
        else whole.iter_batches(columns=columns)
    )
    for part in parts:
        for column in columns:
            yield column, pyarrow.compute.max(pyarrow.compute.utf8_length(part[column])).as_py() or 0
