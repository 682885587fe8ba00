"""Computes many instances of a ``spark-sql`` workflow by one query, as each would have been computed alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from falcon_assets.compute.engines.computing.sql import bound_values, source_of
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together_joins import INSTANCES, KEY, AloneError, view_of
from falcon_assets.compute.engines.computing.together_sql import OrderTerm, Together, column_of, together
from falcon_assets.compute.spark.capture.listener_jar import INSTANCE, NOBODY
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import path_of, steps_of
from falcon_assets.compute.spark.data.layout import folder_at
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.data.writing import NO_MARKER
from falcon_assets.compute.spark.failures import condition_of, explain
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import add_libs, apply_settings, is_classic, isolated, libs_of
from falcon_assets.planning.data_usage import seen_by

_LISTED_BY_TASKS = "spark.sql.sources.parallelPartitionDiscovery.threshold"
"""More folders than that are listed by a job with a task for each, which takes far longer than to list local ones."""
_BYTES_OF_TASK, _CORES_OF_SERVER = 64 << 20, 4
_REFUSED = ("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", "INTERNAL_ERROR", "UNRESOLVED_COLUMN")
"""Conditions by which Spark refuses a query when it plans it, though it could be computed for one instance."""


@dataclass(frozen=True)
class Example:
    """An instance that was computed alone, which those that are computed together have to be like.

    Attributes:
        schema: That of the file that it wrote, as the file has it.
    """

    task: WorkflowTask
    result: WorkflowResult
    schema: pa.Schema

    @classmethod
    def of(cls, task: WorkflowTask, result: WorkflowResult) -> Example:
        """To be called before its output is published; raises AloneError."""
        return cls(task, result, _schema_of(_local(task.outputs[0].url), task.outputs[0].feed.format))

    def is_like(self, task: WorkflowTask) -> bool:
        """Whether an instance differs from this only in what it reads and writes, and in values of parameters."""
        return _shape(self.task) == _shape(task)


def _shape(task: WorkflowTask) -> tuple[object, ...]:
    inputs = [(one.name, one.feed, one.partition, bool(one.urls)) for one in task.inputs]
    outputs = [(one.name, one.feed, one.keys) for one in task.outputs]
    return task.workflow, task.entity_root, task.settings, sorted(task.properties), inputs, outputs


def compute_together(tasks: Sequence[WorkflowTask], file: str, example: Example) -> list[WorkflowResult]:
    """Computes and writes instances that are like ``example``; nothing of a failed call stays.

    Raises:
        AloneError: they have to be computed one by one.
        WorkflowError: inputs cannot be read; it may be that of one instance.
        PySparkException: the query failed; rows of one instance may be the cause.
    """
    first = tasks[0]
    query = together(source_of(first.entity_root / file))
    place = f"{first.outputs[0].url}-{uuid4().hex}"
    with in_utc(), isolated(first.executor.session()) as child, _removed(_local(place)):
        child.conf.set(INSTANCE, NOBODY)
        apply_settings(child, first.settings, first.process)
        add_libs(child, libs_of(first.entity_root, first.workflow.lib))
        frame = _frame(child, tasks, query, example)
        _write(frame, tasks, place, query.order)
        records = _handed_over(frame, tasks, place, example)
    urls = [[one.urls for one in task.inputs] for task in (example.task, *tasks)]
    captured = example.result.captured
    return [
        WorkflowResult(
            {task.outputs[0].name: number},
            example.result.application_id,
            seen_by(
                captured,
                [(was, now, _folders(one)) for was, now, one in zip(urls[0], own, task.inputs, strict=True)],
                (example.task.outputs[0].url, task.outputs[0].url),
            ),
        )
        for task, own, number in zip(tasks, urls[1:], records, strict=True)
    ]


def _folders(data: InputData) -> tuple[str, ...]:
    """The folders of an input's files."""
    found = (
        f"{url}/{name}".rstrip("/").rpartition("/")[0]
        for url, counted in zip(data.urls, data.counted, strict=False)
        for name, size in counted.sizes.items()
        if size
    )
    return tuple(dict.fromkeys(found))


def _frame(child: SparkSession, tasks: Sequence[WorkflowTask], query: Together, example: Example) -> DataFrame:
    """The rows of all instances, with the columns of ``example`` behind the number of the instance."""
    own = {row["function"].rpartition(".")[2].lower() for row in child.sql("SHOW USER FUNCTIONS").collect()}
    if called := sorted(own & query.functions):
        raise AloneError(f"{called[0]} is a function of a user")
    values = [bound_values(task) for task in tasks]
    varying = [name for name, value in values[0].items() if any(one[name] != value for one in values)]
    if all(url.startswith("file:") for task in tasks for one in task.inputs for url in one.urls):
        child.conf.set(_LISTED_BY_TASKS, str(sum(len(one.urls) for task in tasks for one in task.inputs)))
    for data in zip(*(task.inputs for task in tasks), strict=True):
        rows = _rows_of(child, data)
        for name in dict.fromkeys((data[0].name, data[0].name.replace("-", "_"))):
            rows.createOrReplaceTempView(f"`{view_of(name)}`")
            if query.spoken:
                rows.drop(KEY).createOrReplaceTempView(f"`{name}`")
    _instances(child, values, varying).createOrReplaceTempView(INSTANCES)
    sql = query.query([one.name for one in tasks[0].inputs], varying)
    own_columns = query.of_instance(varying)
    fixed = {name: value for name, value in values[0].items() if f":{name}" in sql}
    try:
        _require_alike(child, query.spoken, values[0])
        frame = child.sql(sql, args=fixed) if fixed else child.sql(sql)
        names = frame.columns[1 + len(varying) :]
        if len(set(map(str.lower, frame.columns))) < len(frame.columns):
            raise AloneError("the names of its columns are not unique")
        results = [
            sf.expr(own_columns[at]).alias(name) if at in own_columns else sf.col(f"`{name}`")
            for at, name in enumerate(names)
        ]
        frame = frame.alias(INSTANCES).select(KEY, *results)
        frame.schema  # noqa: B018 - Connect looks at it only then
    except (AnalysisException, ParseException) as error:
        raise AloneError(f"Spark refuses it for many instances at once: {explain(error)}") from error
    return frame.select(KEY, *(_like(frame, one, example.schema) for one in names))


def _require_alike(child: SparkSession, spoken: Sequence[str], values: Mapping[str, Any]) -> None:
    used = {name: value for name, value in values.items() if any(f":{name}" in one for one in spoken)}
    frames = [child.sql(one, args=used) if used else child.sql(one) for one in spoken]
    if any(not _is_same(one, frames[0]) or one.columns != frames[0].columns for one in frames[1:]):
        raise AloneError("it has SQL that only Spark understands, or WITH on Connect, beside outer joins or subqueries")


def _is_same(one: DataFrame, other: DataFrame) -> bool:
    """Whether two queries mean the same; where they have WITH, whose queries have numbers, Connect cannot know it."""
    if (is_same := one.sameSemantics(other)) or not isinstance(one, ClassicFrame):
        return is_same
    plans: list[Any] = [frame._jdf.queryExecution().optimizedPlan() for frame in (one, other)]
    return bool(plans[0].sameResult(plans[1]))


def _instances(child: SparkSession, values: Sequence[Mapping[str, Any]], varying: Sequence[str]) -> DataFrame:
    def said(value: Any) -> str:
        return value if isinstance(value, str) else value.isoformat()

    rows = [
        {KEY: number, **{column_of(name): said(one[name]) for name in varying}} for number, one in enumerate(values)
    ]
    types = {name: "string" if isinstance(values[0][name], str) else "timestamp" for name in varying}
    columns = "".join(f", {column_of(name)}: {kind}" for name, kind in types.items())
    return _table(child, rows, f"{KEY}: int{columns}")


def _table(child: SparkSession, rows: Sequence[Mapping[str, Any]], columns: str) -> DataFrame:
    """A small table, which Spark knows without a job."""
    return child.sql(f"SELECT inline(from_json(:rows, 'array<struct<{columns}>>'))", args={"rows": json.dumps(rows)})


def _rows_of(child: SparkSession, data: Sequence[InputData]) -> DataFrame:
    """The rows of an input for all instances, each read once, with the number of each instance that has it."""
    members: dict[str, list[int]] = {}
    counted = {url: files for one in data for url, files in zip(one.urls, one.counted, strict=False)}
    for number, one in enumerate(data):
        for url in one.urls:
            members.setdefault(url, []).append(number)
    urls = tuple(sorted(members))
    whole = replace(data[0], urls=urls, counted=tuple(counted[url] for url in urls if url in counted), versions=())
    frame = read_input(child, whole)
    if not urls:
        return frame.withColumn(KEY, sf.lit(0))
    if KEY.lower() in map(str.lower, frame.columns):
        raise AloneError(f"a column of input {whole.name} is called {KEY}")
    depth, *others = {len(steps_of(path_of(url))) for url in urls}
    if others:
        raise AloneError(f"the folders of input {whole.name} lie at different depths")
    folders = _table(
        child,
        [{"falcon_folder": path_of(url), "falcon_members": numbers} for url, numbers in members.items()],
        "falcon_folder: string, falcon_members: array<int>",
    )
    unknown = sf.raise_error(sf.concat(sf.lit("no instance has the file in "), sf.col("falcon_folder")))
    known = sf.coalesce(sf.col("falcon_members"), unknown.cast("array<int>"))
    joined = frame.withColumn("falcon_folder", folder_at(depth)).join(sf.broadcast(folders), "falcon_folder", "left")
    return joined.select(*(f"`{name}`" for name in frame.columns), sf.explode(known).alias(KEY))


def _like(frame: DataFrame, name: str, schema: pa.Schema) -> Column:
    """A column that is null nowhere if it is so in the file of the example: Spark makes a lateral join an outer one."""
    column, at = sf.col(f"`{name}`"), schema.get_field_index(name)
    if at < 0 or schema.field(at).nullable:
        return column
    known = sf.when(sf.col(KEY) >= 0, column)  # without it Spark thinks first that nothing has to be replaced
    return sf.coalesce(known, _no_null(frame.schema[name].dataType)).alias(name)


def _no_null(kind: DataType) -> Column:
    empty: dict[type[DataType], Any] = {
        BinaryType: b"",
        BooleanType: False,
        DateType: date(1970, 1, 1),
        NumericType: 0,
        StringType: "",
        TimestampType: datetime(1970, 1, 1, tzinfo=UTC),
    }
    if isinstance(kind, ArrayType):
        return sf.array().cast(kind)
    if isinstance(kind, MapType):
        return sf.create_map().cast(kind)
    if isinstance(kind, StructType):
        fields = [
            (sf.lit(None).cast(one.dataType) if one.nullable else _no_null(one.dataType)).alias(one.name)
            for one in kind.fields
        ]
        return sf.struct(*fields)
    for one, value in empty.items():
        if isinstance(kind, one):
            return sf.lit(value).cast(kind)
    raise AloneError(f"Spark makes a column nullable that is not so alone, of type {kind.simpleString()}")


def _write(frame: DataFrame, tasks: Sequence[WorkflowTask], place: str, order: Sequence[OrderTerm]) -> None:
    """Writes a folder for each instance that has rows, in the order of the query."""
    output = tasks[0].outputs[0]
    frame = frame.repartition(_writers(frame.sparkSession, tasks), KEY)
    if order:
        terms = [_term(one, frame.columns[1:]) for one in order]
        frame = frame.sortWithinPartitions(KEY, *(f"`{name}`" for name in output.partitions), *terms)
    writer = frame.write.format(output.feed.format).options(**output.feed.options).option(NO_MARKER, "false")
    try:
        writer.partitionBy(KEY, *output.partitions).save(place)
    except Exception as error:
        if isinstance(error, AnalysisException | ParseException) or condition_of(error).startswith(_REFUSED):
            raise AloneError(f"Spark refuses it for many instances at once: {explain(error)}") from error
        raise


def _writers(session: SparkSession, tasks: Sequence[WorkflowTask]) -> int:
    """How many tasks write: Spark would write many small files by one, as it looks only at how much there is."""
    cores = session.sparkContext.defaultParallelism if is_classic(session) else _CORES_OF_SERVER
    size = sum(sum(files.sizes.values()) for task in tasks for one in task.inputs for files in one.counted)
    return min(len(tasks), max(cores, size // _BYTES_OF_TASK))


def _term(one: OrderTerm, columns: Sequence[str]) -> Column:
    known = {name.lower(): name for name in columns}
    if isinstance(one.column, int):
        found = columns[one.column] if 0 <= one.column < len(columns) else None
    else:
        found = known.get(one.column.lower())
    if found is None:
        raise AloneError("it orders by what is no column of its result")
    column = sf.col(f"`{found}`")
    if one.is_descending:
        return column.desc_nulls_first() if one.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if one.nulls_first else column.asc_nulls_last()


def _handed_over(frame: DataFrame, tasks: Sequence[WorkflowTask], place: str, example: Example) -> list[int]:
    """Moves the folder of each instance to its own place; returns their numbers of records."""
    output, written = tasks[0].outputs[0], _local(place)
    folders = [written / f"{KEY}={number}" for number in range(len(tasks))]
    if empty := [folder for folder in folders if not folder.exists()]:
        nothing = f"{place}/{KEY}=none"
        writer = _no_rows(frame, example.schema).write.format(output.feed.format)
        writer.options(**output.feed.options).option(NO_MARKER, "false").save(nothing)
        for folder in empty:
            shutil.copytree(_local(nothing), folder)
    for folder in {folders[0], *empty[:1]}:
        found = _schema_of(folder, output.feed.format)
        if not found.equals(example.schema, check_metadata=True):
            differ = [f"{one} and not {two}" for one, two in zip(found, example.schema, strict=False) if one != two]
            raise AloneError(f"its columns are not those of an instance alone: {', '.join(differ)}")
    records = [sum(_rows_in(file, output.feed.format) for file in _files(folder)) for folder in folders]
    _move({folder: _local(task.outputs[0].url) for folder, task in zip(folders, tasks, strict=True)})
    return records


def _no_rows(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of the example's file and their nulls, which Spark loses where it drops all rows."""
    kinds = {one.name: one.dataType for one in frame.schema.fields}
    fields = [StructField(one.name, kinds[one.name], one.nullable) for one in schema if one.name in kinds]
    return frame.sparkSession.createDataFrame([], StructType(fields))


def _move(places: Mapping[Path, Path]) -> None:
    """All of them or none, but for those where nobody waits any more."""
    try:
        for folder, place in places.items():
            with suppress(FileNotFoundError):  # who was to publish it has been stopped
                folder.rename(place)
    except OSError as error:  # they belong to another user, for example
        for place in places.values():
            shutil.rmtree(place, ignore_errors=True)
        raise AloneError(f"what Spark writes for many cannot be moved: {error}") from error


def _local(url: str) -> Path:
    if not url.startswith("file:"):
        raise AloneError(f"its output is written to {url.partition(':')[0]}:, and not to folders of this machine")
    return Path(path_of(url))


def _files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith((".", "_")))


def _schema_of(folder: Path, file_format: str) -> pa.Schema:
    first = _files(folder)[0]
    return pq.read_schema(first) if file_format == "parquet" else orc.ORCFile(first).schema


def _rows_in(file: Path, file_format: str) -> int:
    return int(pq.read_metadata(file).num_rows if file_format == "parquet" else orc.ORCFile(file).nrows)


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
