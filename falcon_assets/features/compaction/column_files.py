"""Parquet and ORC files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from falcon_assets.compute.arrow.columns import as_schema, common_schema, with_instants
from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.row_files import DataFile, RowFiles, RowWriter

_BATCH_ROWS = 1 << 16
_WRITTEN_BY = b"org.apache.spark.version"
"""Spark reads dates before 1583 by it."""
_OTHER_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


class ColumnFiles(RowFiles):
    """Files that know their columns."""

    kind: str
    codec: str

    def __init__(self, files: Sequence[DataFile], sort: Sequence[str], options: Mapping[str, str]) -> None:
        found = [(file.name, self._columns(file)) for file in files]
        self.schema = common_schema(found).with_metadata(self._kept([schema for _, schema in found]))
        own = {name.lower(): name for name in self.schema.names}
        if lost := [one for one in sort if one.lower() not in own]:
            raise StorageError(f"there is no column {lost[0]!r} to sort by; there is: {', '.join(self.schema.names)}")
        self.columns, self.keys = self.schema.names, [own[one.lower()] for one in sort]
        if said := options.get("compression"):
            self.codec = "uncompressed" if said.lower() == "none" else said.lower()
        self.suffix = f".{self.kind}"

    def read(self, file: DataFile) -> Iterator[pa.Table]:
        with _readable(file, self.kind), file.open() as opened:
            for table in self._tables(opened):
                yield as_schema(table, self.schema, file.name)

    def _columns(self, file: DataFile) -> pa.Schema:
        with _readable(file, self.kind), file.open() as opened:
            return self._schema(opened, file.name)

    def _schema(self, opened: IO[bytes], name: str) -> pa.Schema:
        raise NotImplementedError

    def _tables(self, opened: IO[bytes]) -> Iterator[pa.Table]:
        raise NotImplementedError

    def _kept(self, schemas: Sequence[pa.Schema]) -> Mapping[bytes, bytes] | None:
        """What files say of themselves is of that file; only what all say the same stays."""
        return None


class ParquetFiles(ColumnFiles):
    kind, codec = "parquet", "snappy"

    def _schema(self, opened: IO[bytes], name: str) -> pa.Schema:
        found = _parquet(opened)
        said = found.metadata.metadata or {}
        if any(one in said for one in _OTHER_CALENDAR):
            raise StorageError(f"{name} has dates of the Julian calendar, as Spark 2 wrote them: write it again first")
        if found.metadata.num_row_groups and found.metadata.num_columns:
            self.codec = found.metadata.row_group(0).column(0).compression.lower()
        schema = with_instants(found)
        return schema.with_metadata({_WRITTEN_BY: said[_WRITTEN_BY]} if _WRITTEN_BY in said else None)

    def _kept(self, schemas: Sequence[pa.Schema]) -> Mapping[bytes, bytes] | None:
        said = [schema.metadata for schema in schemas]
        return said[0] if said and all(said) else None

    def _tables(self, opened: IO[bytes]) -> Iterator[pa.Table]:
        found = _parquet(opened)
        schema = with_instants(found)
        for batch in found.iter_batches(_BATCH_ROWS, use_threads=False):
            table = pa.Table.from_batches([batch])
            yield table if table.schema.equals(schema) else table.cast(schema)

    def writer(self, sink: IO[bytes]) -> RowWriter:
        codec = "none" if self.codec == "uncompressed" else self.codec
        written = pq.ParquetWriter(sink, self.schema, compression=codec, version="2.6")
        return _TableWriter(written)


class OrcFiles(ColumnFiles):
    kind, codec = "orc", "zstd"

    def _schema(self, opened: IO[bytes], name: str) -> pa.Schema:
        found = orc.ORCFile(opened)
        if found.nrows:
            self.codec = found.compression.lower()
        return found.schema.remove_metadata()

    def _tables(self, opened: IO[bytes]) -> Iterator[pa.Table]:
        found = orc.ORCFile(opened)
        for stripe in range(found.nstripes):
            yield pa.Table.from_batches([found.read_stripe(stripe)])

    def writer(self, sink: IO[bytes]) -> RowWriter:
        written = orc.ORCWriter(sink, compression=self.codec)
        written.write(self.schema.empty_table())  # else a file without rows has no columns
        return _TableWriter(written)


class _TableWriter:
    def __init__(self, written: pq.ParquetWriter | orc.ORCWriter) -> None:
        self._written = written

    def write(self, rows: pa.Table) -> None:
        self._written.write(rows)

    def close(self) -> None:
        self._written.close()


def _parquet(opened: IO[bytes]) -> pq.ParquetFile:
    return pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")


@contextmanager
def _readable(file: DataFile, kind: str) -> Iterator[None]:
    """Raises StorageError for what is no such file, or is encrypted."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise StorageError(f"{file.name} cannot be read as {kind}: {error}") from None
