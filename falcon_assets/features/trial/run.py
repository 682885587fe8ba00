"""Computation of an instance into a folder of its own, which is deleted after inspection."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.base.texts import hidden, visible
from falcon_assets.compute.arrow.reading import dataset_of
from falcon_assets.compute.arrow.spark_types import spark_name
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import apply_settings, isolated
from falcon_assets.errors import StorageError
from falcon_assets.instances.runs.instance_data import InstanceData
from falcon_assets.instances.runs.instance_run import InstanceRunner, ReadyInstance
from falcon_assets.model.instant import Instant
from falcon_assets.model.table_uri import TableUri
from falcon_assets.operations.operation import Result
from falcon_assets.planning.data_usage import Usage
from falcon_assets.planning.process_instance import OutputPlan
from falcon_assets.planning.version_columns import OutputColumn
from falcon_assets.storage.files.path_lock import path_lock

_LOCK = ".lock"


@dataclass(frozen=True)
class TriedColumn(Result):
    """A column of an output as its readers see it, with its lineage, if that is known."""

    name: str
    type: str
    lineage: OutputColumn | None
    keys = ("name", "type", "from=origins", "opaque")

    @property
    def origins(self) -> list[str] | None:
        return [f"{feed}.{name}" for feed, name in self.lineage.inputs] if self.lineage else None

    @property
    def opaque(self) -> bool | None:
        return self.lineage.is_opaque if self.lineage else None


@dataclass(frozen=True)
class TriedOutput(Result):
    """An output as its readers would see it; values in ``rows`` are texts, None for null."""

    name: str
    feed: str
    instance: Instant
    records: int
    columns: tuple[TriedColumn, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Tried:
    outputs: tuple[TriedOutput, ...]
    usage: Usage
    seconds: float


@dataclass
class Trial:
    """Computes an instance into a folder that is deleted at the end, or after a kill by the next trial."""

    runner: InstanceRunner
    ready: ReadyInstance
    rows: int
    _folder: Path | None = field(default=None, init=False)

    def compute(self) -> Tried:
        """Computes the instance; published data stays unchanged. Raises as :func:`.try_instance`."""
        runner, plan, started = self.runner, self.ready.plan, time.monotonic()
        if not runner.data(self.ready).executor.shares_folders:
            raise StorageError(
                f"the Spark of cluster {runner.cluster.name!r} shares no folder with this machine, where its results "
                "are shown from: try it where the execute endpoint is local[N], the server of falcon spark start, or a "
                "standalone master on this machine"
            )
        with self._own_folder() as folder:
            data = runner.data(self.ready)
            with data.readable(self.ready.available) as read:
                urls = {output.name: f"file://{folder / output.name}" for output in plan.outputs}
                result = runner.compute(self.ready, data.settings, read, urls)
                used, _ = runner.used(plan, read, urls, result)
                outputs = tuple(self._shown(data, urls, result.records, used))
        return Tried(outputs, used, time.monotonic() - started)

    def forget(self) -> None:
        """Deletes the output, also of a trial in another thread that does not answer."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _own_folder(self) -> Iterator[Path]:
        """Creates a folder, after deleting those of killed processes."""
        place = Path(self.runner.store.working) / "tries"
        place.mkdir(parents=True, exist_ok=True)
        for one in place.iterdir():
            if one.suffix != _LOCK:
                with path_lock(one.with_suffix(_LOCK), 0) as is_dead:
                    if is_dead:
                        shutil.rmtree(one, ignore_errors=True)
        folder = place / uuid.uuid4().hex
        with path_lock(folder.with_suffix(_LOCK), 0):
            folder.mkdir(mode=0o700)
            self._folder = folder
            try:
                yield folder
            finally:
                self.forget()

    def _shown(
        self, data: InstanceData, urls: Mapping[str, str], records: Mapping[str, int], used: Usage
    ) -> Iterator[TriedOutput]:
        if not data.needs_spark:
            for one in self.ready.plan.outputs:
                table = dataset_of(InputData(one.name, one.feed, (urls[one.name],))).head(self.rows)
                types = {field.name: spark_name(field.type) for field in table.schema}
                values = zip(*(column.to_pylist() for column in table.columns), strict=True)
                yield self._output(one, records[one.name], types, values, used)
            return
        with in_utc(), isolated(self.runner.executor.session()) as spark:
            apply_settings(spark, data.settings, self.runner.process.name)
            for one in self.ready.plan.outputs:
                frame = self._read(spark, one, urls[one.name], records[one.name])
                fields = [] if frame is None else frame.schema.fields
                types = {field.name: field.dataType.simpleString() for field in fields}
                found = [] if frame is None else frame.limit(self.rows).collect()
                yield self._output(one, records[one.name], types, found, used)

    @staticmethod
    def _output(
        one: OutputPlan, records: int, types: Mapping[str, str], found: Iterable[Iterable[Any]], used: Usage
    ) -> TriedOutput:
        known = used.columns.get(one.name)
        lineage = {column.name: column for column in known.each} if known else {}
        columns = tuple(TriedColumn(name, kind, lineage.get(name)) for name, kind in types.items())
        rows = tuple(tuple(None if value is None else _shown(value) for value in row) for row in found)
        return TriedOutput(one.name, one.feed.name, one.instance, records, columns, rows)

    def _read(self, spark: SparkSession, output: OutputPlan, url: str, records: int) -> DataFrame | None:
        feed = output.feed
        if feed.table_on(self.runner.cluster.name):
            feed = feed.model_copy(update={"partitions": TableUri.parse(output.path).open_keys})
        if not records and feed.schema_ is None and feed.format not in ("parquet", "orc", "avro"):
            return None
        return read_input(spark, InputData(output.name, feed, (url,)))


def _shown(value: object) -> str:
    """Hides secrets and control characters for a terminal."""
    return visible(hidden(str(value)))
