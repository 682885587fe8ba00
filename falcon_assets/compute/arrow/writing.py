"""Writes an output that a function returned as Arrow data, batch by batch, and counts its records."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import orc

from falcon_assets.compute.arrow.reading import FORMATS, local_path
from falcon_assets.compute.arrow.spark_types import arrow_schema
from falcon_assets.compute.arrow.text_files import TEXTUAL, lines_of, read_text, text_options
from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.errors import StorageError, WorkflowError
from falcon_assets.storage.instances.data_files import is_data

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OF_WRITING = {"compression", "mergeschema"}
_MOST_ROWS = 1 << 17
"""Of a batch that is written at once."""


def reader_of(value: object) -> pa.RecordBatchReader | None:
    """Returns what a function returned as batches; None: it is no data."""
    if isinstance(value, pd.DataFrame):
        value = pa.Table.from_pandas(value, preserve_index=False).replace_schema_metadata(None)
    elif isinstance(value, ds.Dataset):
        value = value.scanner()
    if isinstance(value, ds.Scanner):
        return value.to_reader()
    return pa.RecordBatchReader.from_stream(value) if hasattr(value, "__arrow_c_stream__") else _of_batch(value)


def _of_batch(value: object) -> pa.RecordBatchReader | None:
    return pa.RecordBatchReader.from_batches(value.schema, [value]) if isinstance(value, pa.RecordBatch) else None


def title_of(data: OutputData) -> str:
    return f"output {data.name!r} (feed {data.feed.name!r})"


def folder_of(data: OutputData) -> Path:
    return Path(local_path(data.url, title_of(data)))


def declared_columns(data: OutputData) -> pa.Schema:
    """Those of the feed's schema, and texts for partitions that it leaves out; raises KeyError."""
    declared = arrow_schema(data.feed.schema_ or "")
    known = {name.lower() for name in declared.names}
    return pa.schema([*declared, *((one, pa.string()) for one in data.partitions if one.lower() not in known)])


def write_rows(reader: pa.RecordBatchReader, data: OutputData) -> tuple[int, pa.Schema]:
    """Writes the batches into the folder of the output, even if there are none; returns their rows and columns.

    A declared schema is enforced: its columns in its order, with its types, whose values lose nothing. Partitions of
    the feed become folders ``key=value``.

    Raises:
        WorkflowError: they do not fit, or files of that format cannot hold them.
        Exception: what a function that yields the batches raises.
    """
    where = title_of(data)
    if data.feed.format not in FORMATS:
        raise WorkflowError(f"{where}: the engine python writes {', '.join(FORMATS)}, not {data.feed.format}")
    fit = _Fit(reader.schema, data)
    with ExitStack() as held:
        writing = _Writing(data, pa.schema([one for one in fit.schema if one.name not in fit.folders]), held)
        for batch in reader:
            for at in range(0, len(batch), _MOST_ROWS):
                for folder, rows in fit.by_folder(pa.Table.from_batches([batch.slice(at, _MOST_ROWS)])):
                    writing.write(folder, rows)
        if not writing.records:  # a file without rows shows the columns
            writing.write("", writing.schema.empty_table())
    return writing.records, fit.schema


class _Fit:
    """How batches become rows of an output."""

    def __init__(self, found: pa.Schema, data: OutputData) -> None:
        self._where = title_of(data)
        names = {name.lower(): name for name in found.names}
        if len(names) < len(found.names):
            raise WorkflowError(f"{self._where}: two columns have one name: {', '.join(found.names)}")
        wanted = self._declared(data)
        if wanted is None:
            wanted = pa.schema([field.with_type(self._storable(field)) for field in found])
        wrong = [f"{field.name} is missing" for field in wanted if field.name.lower() not in names]
        declared = {name.lower() for name in wanted.names}
        wrong += [f"{name} is not declared" for name in found.names if name.lower() not in declared]
        wrong += [f"{name}, a partition, is missing" for name in data.partitions if name.lower() not in names]
        if wrong:
            raise WorkflowError(f"{self._where}: the columns are not those of the feed: {'; '.join(wrong)}")
        self.schema = wanted
        self._names = [names[field.name.lower()] for field in wanted]
        own = {name.lower(): name for name in wanted.names}
        self.folders = [own[name.lower()] for name in data.partitions]

    def _declared(self, data: OutputData) -> pa.Schema | None:
        if data.feed.schema_ is None:
            return None
        try:
            return declared_columns(data)
        except KeyError as error:
            raise WorkflowError(f"{self._where}: the engine python does not know the type {error}") from None

    def _storable(self, field: pa.Field) -> pa.DataType:
        """The type that Spark reads again: microseconds, and no dictionaries."""
        kind = field.type
        if pa.types.is_null(kind):
            raise WorkflowError(
                f"{self._where}: column {field.name!r} has no type, as all its values are null: declare `schema:` in "
                "the feed"
            )
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", kind.tz and "UTC")
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def by_folder(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        columns = []
        for field, name in zip(self.schema, self._names, strict=True):
            try:
                columns.append(pc.cast(table.column(name), field.type))
            except pa.ArrowException as error:
                raise WorkflowError(
                    f"{self._where}: column {name!r} is {table.column(name).type} and does not fit into {field.type}: "
                    f"{error}"
                ) from error
        rows = pa.table(columns, schema=self.schema)
        if not self.folders:
            yield "", rows
            return
        texts = pa.table([pc.cast(rows.column(name), pa.string()) for name in self.folders], self.folders)
        paths = [
            "/".join(f"{quote(key, safe='')}={quote(one[key] or _NO_VALUE, safe=' ')}" for key in self.folders)
            for one in texts.to_pylist()
        ]
        of_rows, kept = pa.array(paths), rows.drop_columns(self.folders)
        for path in dict.fromkeys(paths):
            yield path, kept.filter(pc.equal(of_rows, path))


class _OutputFile(Protocol):
    def write(self, rows: pa.Table) -> Any: ...

    def close(self) -> Any: ...


class _Writing:
    """The files of an output: one in each folder."""

    def __init__(self, data: OutputData, schema: pa.Schema, held: ExitStack) -> None:
        self.schema, self.records = schema, 0
        self._data, self._held = data, held
        self._files: dict[str, _OutputFile] = {}

    def write(self, folder: str, rows: pa.Table) -> None:
        if folder not in self._files:
            self._files[folder] = self._opened(folder_of(self._data) / folder)
            self._held.callback(self._files[folder].close)
        try:
            self._files[folder].write(rows)
        except (pa.ArrowException, StorageError) as error:
            raise WorkflowError(f"{title_of(self._data)}: {error}") from error
        self.records += len(rows)

    def _opened(self, folder: Path) -> _OutputFile:
        feed = self._data.feed
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if feed.format in TEXTUAL:
                return _TextRows(folder, feed.format, feed.options)
            if unknown := [key for key in feed.options if key.lower() not in _OF_WRITING]:
                raise StorageError(f"the engine python does not know the option {unknown[0]} of its feed")
            codec = {key.lower(): value.lower() for key, value in feed.options.items()}.get("compression")
            file = str(folder / f"part-00000.{feed.format}")
            if feed.format == "parquet":
                packed = "none" if codec == "uncompressed" else codec or "snappy"
                return _Columns(pq.ParquetWriter(file, self.schema, compression=packed, store_schema=False))
            return _OrcRows(file, self.schema, "uncompressed" if codec == "none" else codec or "zstd")
        except (pa.ArrowException, StorageError) as error:
            raise WorkflowError(f"{title_of(self._data)}: {error}") from error


class _Columns:
    def __init__(self, written: Any) -> None:
        self._written = written

    def write(self, rows: pa.Table) -> None:
        self._written.write(rows)

    def close(self) -> None:
        self._written.close()


class _OrcRows(_Columns):
    """Instants are what clocks show in UTC, as Spark writes them."""

    def __init__(self, file: str, schema: pa.Schema, codec: str) -> None:
        super().__init__(orc.ORCWriter(file, compression=codec))
        fields = [one.with_type(pa.timestamp("ns")) if pa.types.is_timestamp(one.type) else one for one in schema]
        self._schema = pa.schema(fields)
        self.write(schema.empty_table())  # else a file without rows has no columns

    def write(self, rows: pa.Table) -> None:
        super().write(rows.cast(self._schema))


class _TextRows:
    def __init__(self, folder: Path, file_format: str, options: Any) -> None:
        packed = text_options(file_format, options).get("compression", "none").lower() == "gzip"
        file = folder / f"part-00000.{file_format}{'.gz' if packed else ''}"
        self._opened: Any = gzip.open(file, "wb") if packed else file.open("wb")  # noqa: SIM115 - closed by close
        self._format, self._options, self._is_first = file_format, options, True

    def write(self, rows: pa.Table) -> None:
        self._opened.write(lines_of(rows, self._format, self._options, is_first=self._is_first))
        self._is_first = False

    def close(self) -> None:
        self._opened.close()


def count_written(data: OutputData) -> int:
    """Returns the records of the files that a function wrote itself; raises WorkflowError where they are none."""
    root, where = folder_of(data), title_of(data)
    names = [str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()]
    files = [root / name for name in names if is_data(name, data.feed.availability_flag)]
    if not files:
        raise WorkflowError(f"{where}: it was neither returned nor written to {root}")
    try:
        return sum(_count(one, data) for one in files if one.stat().st_size)
    except (pa.ArrowException, OSError, StorageError, ValueError) as error:
        raise WorkflowError(f"{where}: what was written cannot be read as {data.feed.format}: {error}") from error


def _count(file: Path, data: OutputData) -> int:
    match data.feed.format:
        case "parquet":
            return int(pq.read_metadata(file).num_rows)
        case "orc":
            return int(orc.ORCFile(file).nrows)
        case "csv" | "json" as textual:
            return len(read_text(file, textual, data.feed.options, None))
        case "text":
            with pa.input_stream(str(file), compression="detect") as opened:
                return int(opened.read().count(b"\n"))
    return 1  # a file is the record of binaryFile, and what a record of others is nobody knows here
