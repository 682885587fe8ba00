"""Files of an import that the tasks which read its source write themselves: no row goes through Spark.

As with Spark's own writer, what a task writes is aside until the driver moves it: a file of an attempt that Spark does
not take, because it was killed or another one was faster, is never in the output.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.compute.spark.data.input_files import path_of
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import WorkflowError
from falcon_assets.features.datasources.datasource_type import ReadPart, SourceColumn, SourceReading
from falcon_assets.planning.captured import ColumnRead, DataWrite
from falcon_assets.planning.version_columns import OutputColumn
from falcon_assets.storage.errors import driver_explained

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

GROUP_BYTES, FILE_BYTES = 64 << 20, 1 << 30
"""A row group has so many bytes in memory, and a file so many on disk, and as many more as came at once."""
_SAMPLE = 10_000
_ASIDE = "_temporary"
"""As Hadoop names it: readers and publication ignore it."""
_CODECS = {
    "snappy": ("snappy", ".snappy"),
    "gzip": ("gzip", ".gz"),
    "zstd": ("zstd", ".zstd"),
    "none": ("none", ""),
    "uncompressed": ("none", ""),
}
"""As Spark names them -> as Arrow does, and what Spark adds to the names of files."""
_CODEC = "spark.sql.parquet.compression.codec"
_OURS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
_OF_FILES = re.compile(r"parquet|maxRecordsPerFile", re.IGNORECASE)


class TaskOutput(NamedTuple):
    """What all tasks have written; ``newest`` is text, None: there is none, or no column was named."""

    rows: int
    newest: str | None
    captured: DataWrite


def fits(data: OutputData, columns: Sequence[SourceColumn], settings: Mapping[str, str]) -> bool:
    """Whether tasks can write what :attr:`.ImportWorkload.spark_writes` leaves to them.

    They can where nothing has to be made of the values, on a file system that is mounted, and with ``settings`` of the
    session that say no more of files than how they are compressed.
    """
    names = [one.name.lower() for one in columns]
    is_plain = len(names) == len(set(names)) and not any(one.expression for one in columns)
    told = {key: value for key, value in settings.items() if _OF_FILES.search(key) and key != _CODEC}
    is_usual = told.items() <= _OURS.items() and _codec(data, settings) in _CODECS
    return data.url.startswith("file:") and is_plain and is_usual


def _codec(data: OutputData, settings: Mapping[str, str]) -> str:
    own = {key.lower(): value for key, value in data.feed.options.items()}
    return own.get("compression", settings.get(_CODEC, "snappy")).lower()


def write_in_tasks(
    frame: DataFrame, reading: SourceReading, data: OutputData, cluster: str, column: str | None = None
) -> TaskOutput:
    """Has each part written by a task; ``frame`` has the columns as Spark knows them, its rows are not asked for.

    Raises:
        WorkflowError: a part cannot be read or written.
        StorageError: the files cannot be put in their place on the cluster.
    """
    folder = Path(path_of(data.url))
    task = _task(frame, reading, data, folder / _ASIDE, column)
    with driver_explained(cluster, f"write {data.url}"):
        task.aside.mkdir(parents=True)
    try:
        files, rows, newest = _written(frame, task)
    except SPARK_ERRORS as error:
        raise WorkflowError(f"output {data.name!r} (feed {data.feed.name!r}): {explain(error)}") from error
    with driver_explained(cluster, f"write {data.url}"):
        for one in files or task.empty():
            (task.aside / one).rename(folder / one)
        shutil.rmtree(task.aside)
    columns = [OutputColumn[ColumnRead](one.name, one.dataType.simpleString(), is_opaque=True) for one in frame.schema]
    return TaskOutput(rows, newest, DataWrite(tuple(columns), (), True, path=data.url))


def _written(frame: DataFrame, task: _PartWriting) -> tuple[Sequence[str], int, str | None]:
    """The files of those attempts that Spark took, how many rows they have, and the newest value."""
    count = len(task.parts)
    if not count:
        return (), 0, None
    kind = frame.schema[task.column].dataType.simpleString() if task.column else "string"
    numbers = frame.sparkSession.range(0, count, 1, count)
    told = numbers.mapInArrow(task, f"files array<string>, rows bigint, newest {kind}")
    wanted = (sf.flatten(sf.collect_list("files")), sf.sum("rows"), sf.max("newest").cast("string"))
    files, rows, newest = told.agg(*wanted).collect()[0]
    return files, rows, newest


def _task(frame: DataFrame, reading: SourceReading, data: OutputData, aside: Path, column: str | None) -> _PartWriting:
    import pyarrow as pa  # noqa: PLC0415 - every code location would import it

    from falcon_assets.compute.arrow.spark_types import arrow_type  # noqa: PLC0415 - as above

    said = {  # what Spark writes into its own files, and reads again
        "org.apache.spark.version": frame.sparkSession.version,
        "org.apache.spark.sql.parquet.row.metadata": frame.schema.json(),
    }
    schema = pa.schema([(one.name, arrow_type(one.spark_type)) for one in reading.columns])
    codec, suffix = _CODECS[_codec(data, frame.sparkSession.conf.getAll)]
    return _PartWriting(tuple(reading.parts), aside, schema, said, codec, suffix, column)


@dataclass(frozen=True)
class _PartWriting:
    """Runs in Spark's workers: writes the parts whose numbers it gets, and says what it wrote for each."""

    parts: Sequence[ReadPart]
    aside: Path
    schema: pa.Schema
    said: Mapping[str, str]
    codec: str
    suffix: str
    column: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - only the workers need it

        for batch in batches:
            for number in batch.column(0).to_pylist():
                with _PartFiles(self, number) as written:
                    for rows in self.parts[number].batches():
                        written.add(rows)
                told = [
                    pa.array([written.files], pa.list_(pa.string())),
                    pa.array([written.rows], pa.int64()),
                    pa.array([written.newest], self.newest_type),
                ]
                yield pa.RecordBatch.from_arrays(told, ["files", "rows", "newest"])

    @property
    def newest_type(self) -> pa.DataType:
        import pyarrow as pa  # noqa: PLC0415 - as above

        return pa.string() if self.column is None else self.schema.field(self.column).type

    def empty(self) -> Sequence[str]:
        """Writes the file of an output without rows, which shows its columns."""
        with _PartFiles(self, 0) as written:
            written.open()
        return written.files


@dataclass
class _PartFiles:
    """The files of one attempt at a part, whose names no other attempt has.

    Attributes:
        files: Their names; a part without rows has none.
        newest: The greatest value of the column; None: no column was named, or there were no rows.
    """

    task: _PartWriting
    number: int
    files: list[str] = field(default_factory=list, init=False)
    rows: int = field(default=0, init=False)
    newest: pa.Scalar | None = field(default=None, init=False)
    _attempt: str = field(default_factory=lambda: str(uuid4()), init=False)
    _held: list[pa.RecordBatch] = field(default_factory=list, init=False)
    _held_bytes: int = field(default=0, init=False)
    _repeated: list[str] | None = field(default=None, init=False)
    _writer: pq.ParquetWriter | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None and self._held:
            self._write_held()
        self._close()

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= GROUP_BYTES:
            self._write_held()

    def open(self) -> pq.ParquetWriter:
        """The file that is being written, or a new one."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        if self._writer is None:
            task = self.task
            self.files.append(f"part-{self.number:05}-{self._attempt}-c{len(self.files):03}{task.suffix}.parquet")
            self._writer = pq.ParquetWriter(
                task.aside / self.files[-1],
                task.schema,
                compression=task.codec,
                store_schema=False,
                store_decimal_as_integer=True,
                write_page_index=True,
                use_dictionary=self._repeated or False,
            )
            self._writer.add_key_value_metadata(task.said)
        return self._writer

    def _write_held(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above
        import pyarrow.compute as pc  # noqa: PLC0415 - as above

        schema = self.task.schema
        group = pa.Table.from_batches(self._held).rename_columns(schema.names).cast(schema)
        self._held, self._held_bytes = [], 0
        if self.task.column is not None:
            self.newest = pc.max(pa.array([self.newest, pc.max(group[self.task.column])], self.task.newest_type))
        if self._repeated is None:
            self._repeated = [name for name in schema.names if _is_repeated(group[name])]
        self.open().write_table(group, group.num_rows)
        self.rows += group.num_rows
        if (self.task.aside / self.files[-1]).stat().st_size >= FILE_BYTES:
            self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _is_repeated(values: pa.ChunkedArray) -> bool:
    """Whether a dictionary pays, by the first values: where most differ, it takes half of the time, and is dropped."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    first = values.slice(0, _SAMPLE)
    return not pa.types.is_nested(values.type) and 2 * pc.count_distinct(first).as_py() < len(first)
