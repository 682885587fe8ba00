"""Computes many instances of a workflow at once, as each would have been computed alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask, exits_refused
from falcon_assets.compute.engines.computing.together_files import (
    BatchRows,
    local_folder,
    move,
    records_in,
    removed_at_the_end,
    schema_of,
    write_folders,
)
from falcon_assets.compute.engines.computing.together_joins import KEY, AloneError
from falcon_assets.compute.spark.capture.capturing import capturing
from falcon_assets.compute.spark.capture.listener_jar import INSTANCE, NOBODY
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import path_of, steps_of
from falcon_assets.compute.spark.data.layout import folder_at
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import add_libs, apply_settings, is_classic, isolated, libs_of
from falcon_assets.errors import WorkflowError
from falcon_assets.planning.captured import Captured
from falcon_assets.planning.data_usage import beside, seen_by, within

_LISTED_BY_TASKS = "spark.sql.sources.parallelPartitionDiscovery.threshold"
"""More folders than that are listed by a job with a task for each, which takes far longer than to list local ones."""
_BYTES_OF_TASK, _CORES_OF_SERVER = 64 << 20, 4


@dataclass(frozen=True)
class Example:
    """An instance that was computed alone, which those that are computed together have to be like.

    Attributes:
        schemas: Of each output that of the file that it wrote, as the file has it.
    """

    task: WorkflowTask
    result: WorkflowResult
    schemas: Mapping[str, pa.Schema]

    @classmethod
    def of(cls, task: WorkflowTask, result: WorkflowResult) -> Example:
        """To be called before its outputs are published; raises AloneError."""
        return cls(task, result, {one.name: schema_of(local_folder(one.url), one.feed.format) for one in task.outputs})

    def is_like(self, task: WorkflowTask) -> bool:
        """Whether an instance differs from this only in what it reads and writes, and in values of parameters."""
        return _shape(self.task) == _shape(task)


def _shape(task: WorkflowTask) -> tuple[object, ...]:
    inputs = [(one.name, one.feed, one.partition, bool(one.urls)) for one in task.inputs]
    outputs = [(one.name, one.feed, one.keys) for one in task.outputs]
    return task.workflow, task.entity_root, task.settings, sorted(task.properties), inputs, outputs


def compute_all(
    tasks: Sequence[WorkflowTask],
    example: Example,
    rows_by: Callable[[SparkSession], Mapping[str, BatchRows]],
    *,
    may_read_more: bool = False,
) -> list[WorkflowResult]:
    """Computes and writes instances that are like ``example``; nothing of a failed call stays.

    ``rows_by`` returns the rows of all instances for each output. ``may_read_more``: which data it reads beside the
    inputs may depend on the instances, so it counts for each of them.

    Raises:
        AloneError: they have to be computed one by one.
        WorkflowError: inputs cannot be read; it may be that of one instance.
        PySparkException: the query failed; rows of one instance may be the cause.
    """
    first = tasks[0]
    places = {one.name: f"{one.url}-{uuid4().hex}" for one in first.outputs}
    moved, records = {}, [dict[str, int]() for _ in tasks]
    with in_utc(), isolated(first.executor.session()) as child, removed_at_the_end([*places.values()]):
        child.conf.set(INSTANCE, NOBODY)
        apply_settings(child, first.settings, first.process)
        add_libs(child, libs_of(first.entity_root, first.workflow.lib))
        if all(url.startswith("file:") for url in _urls(tasks)):
            child.conf.set(_LISTED_BY_TASKS, str(len([*_urls(tasks)])))
        writers = writers_of(child, tasks)
        with capturing(child) if may_read_more else nullcontext(Captured) as captured, exits_refused():
            rows = rows_by(child)
            for outputs in zip(*(task.outputs for task in tasks), strict=True):
                name, kind = outputs[0].name, outputs[0].feed.format
                folders = write_folders(rows[name], outputs, places[name], example.schemas[name], writers)
                for number, (folder, output) in enumerate(zip(folders, outputs, strict=True)):
                    records[number][name] = records_in(folder, kind)
                    moved[folder] = local_folder(output.url)
            seen = captured()
        move(moved)
    more = beside(seen, [*_urls(tasks)], [*places.values()]) if may_read_more else None
    return [_result(example, task, counted, more) for task, counted in zip(tasks, records, strict=True)]


def _urls(tasks: Iterable[WorkflowTask]) -> Iterable[str]:
    return chain.from_iterable(one.urls for task in tasks for one in task.inputs)


def _result(example: Example, task: WorkflowTask, records: Mapping[str, int], more: Captured | None) -> WorkflowResult:
    was = example.task
    captured = seen_by(
        example.result.captured,
        [(before.urls, one.urls, _folders(one)) for before, one in zip(was.inputs, task.inputs, strict=True)],
        {before.url: one.url for before, one in zip(was.outputs, task.outputs, strict=True)},
    )
    if more is not None:
        own = within(captured, [*_urls([task])], [one.url for one in task.outputs])
        captured = Captured(
            (*own.reads, *more.reads), (*own.writes, *more.writes), more.unknown, own.problem or more.problem
        )
    return WorkflowResult(records, example.result.application_id, captured)


def _folders(data: InputData) -> tuple[str, ...]:
    """The folders of an input's files."""
    found = (
        f"{url}/{name}".rstrip("/").rpartition("/")[0]
        for url, counted in zip(data.urls, data.counted, strict=False)
        for name, size in counted.sizes.items()
        if size
    )
    return tuple(dict.fromkeys(found))


def keyed(task: WorkflowTask, inputs: Mapping[str, DataFrame], key: Column) -> dict[str, DataFrame]:
    """The inputs of an instance alone, with a column :data:`KEY`; raises WorkflowError where one has it already."""
    for data in task.inputs:
        if KEY in map(str.lower, inputs[data.name].columns):
            raise WorkflowError(f"{data.title} has a column {KEY} of its own: give it another name")
    return {name: frame.withColumn(KEY, key) for name, frame in inputs.items()}


def writers_of(session: SparkSession, tasks: Sequence[WorkflowTask]) -> int:
    """How many tasks write: Spark would write many small files by one, as it looks only at how much there is."""
    cores = session.sparkContext.defaultParallelism if is_classic(session) else _CORES_OF_SERVER
    size = sum(sum(files.sizes.values()) for task in tasks for one in task.inputs for files in one.counted)
    return min(len(tasks), max(cores, size // _BYTES_OF_TASK))


def table(child: SparkSession, rows: Sequence[Mapping[str, Any]], columns: str) -> DataFrame:
    """A small table, which Spark knows without a job."""
    return child.sql(f"SELECT inline(from_json(:rows, 'array<struct<{columns}>>'))", args={"rows": json.dumps(rows)})


def rows_of(child: SparkSession, data: Sequence[InputData], keys: Sequence[int | str], kind: str) -> DataFrame:
    """The rows of an input for all instances, each read once, with a column :data:`KEY` for each instance that has it.

    ``keys`` are those of the instances, ``kind`` is their type in Spark. Raises AloneError and WorkflowError.
    """
    members: dict[str, list[int | str]] = {}
    counted = {url: files for one in data for url, files in zip(one.urls, one.counted, strict=False)}
    for key, one in zip(keys, data, strict=True):
        for url in one.urls:
            members.setdefault(url, []).append(key)
    urls = tuple(sorted(members))
    whole = replace(data[0], urls=urls, counted=tuple(counted[url] for url in urls if url in counted), versions=())
    frame = read_input(child, whole)
    if KEY.lower() in map(str.lower, frame.columns):
        raise AloneError(f"a column of input {whole.name} is called {KEY}")
    if not urls:
        return frame.withColumn(KEY, sf.lit(None).cast(kind))
    depth, *others = {len(steps_of(path_of(url))) for url in urls}
    if others:
        raise AloneError(f"the folders of input {whole.name} lie at different depths")
    folders = table(
        child,
        [{"falcon_folder": path_of(url), "falcon_members": found} for url, found in members.items()],
        f"falcon_folder: string, falcon_members: array<{kind}>",
    )
    unknown = sf.raise_error(sf.concat(sf.lit("no instance has the file in "), sf.col("falcon_folder")))
    known = sf.coalesce(sf.col("falcon_members"), unknown.cast(f"array<{kind}>"))
    joined = frame.withColumn("falcon_folder", folder_at(depth)).join(sf.broadcast(folders), "falcon_folder", "left")
    return joined.select(*(f"`{name}`" for name in frame.columns), sf.explode(known).alias(KEY))
