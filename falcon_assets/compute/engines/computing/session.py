"""Common part of the engines that compute in a session of their cluster: all but the computation itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask, exits_refused
from falcon_assets.compute.spark.capture.capturing import capturing
from falcon_assets.compute.spark.data.input_files import input_of_failure
from falcon_assets.compute.spark.data.members import read_with_members
from falcon_assets.compute.spark.data.writing import write_output
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import add_libs, application_id, apply_settings, isolated, libs_of
from falcon_assets.errors import WorkflowError


def compute_in_session(
    task: WorkflowTask, compute: Callable[[SparkSession, Mapping[str, DataFrame]], Mapping[str, DataFrame | None]]
) -> WorkflowResult:
    """Reads the inputs, computes the outputs by ``compute``, and writes them; raises WorkflowError.

    An output that is None has been written by ``compute`` itself, and its records are not known here.
    Safe to call from several threads for one cluster: every call has temporary views and settings of its own.
    """
    session = task.executor.session()
    with in_utc(), isolated(session) as child:
        apply_settings(child, task.settings, task.process)
        add_libs(child, libs_of(task.entity_root, task.workflow.lib))
        inputs = {name: one for data in task.inputs for name, one in read_with_members(child, data).items()}
        with capturing(child) as captured, exits_refused(), _named_input(task):
            frames = compute(child, inputs)
            told = [(frames[data.name], data) for data in task.outputs]
            records = {data.name: write_output(frame, data) for frame, data in told if frame is not None}
            found = captured()
    return WorkflowResult(records, application_id(session), found)


@contextmanager
def _named_input(task: WorkflowTask) -> Iterator[None]:
    """Adds the input to errors about its files: Spark reads lazily, so they appear while an output is written."""
    try:
        yield
    except WorkflowError as error:
        data = input_of_failure(task.inputs, str(error))
        if data is None:
            raise
        raise WorkflowError(f"{data.title} cannot be read as its feed says: {error}") from error.__cause__
