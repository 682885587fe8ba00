"""The engine ``pyspark``: a Python function ``run(spark, inputs, instance)``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.engines.computing.function import load_function
from falcon_assets.engines.computing.task import WorkflowTask
from falcon_assets.errors import FalconError, WorkflowError
from falcon_assets.spark.failures import explain, is_of_spark, own_line
from falcon_assets.spark.session.libs import libs_of


def compute_python(
    spark: SparkSession, inputs: Mapping[str, DataFrame], task: WorkflowTask, path: str | None, name: str | None
) -> dict[str, DataFrame]:
    """Calls the function with the session, the inputs by name and an :class:`.Instance`.

    It returns the DataFrame of the one output, or a dict with one per output; nothing where there are no outputs.

    Raises:
        WorkflowError: it cannot be loaded, it failed (with the line of its file), or it returned something else.
    """
    libs = libs_of(task.entity_root, task.workflow.lib).python
    function, file = load_function(task.entity_root, path, name, libs)
    try:
        returned = function(spark, dict(inputs), task.instance)
    except FalconError:
        raise
    except (Exception, SystemExit) as error:  # exit() would end one thread of the run, which waits for it
        said = explain(error) if is_of_spark(error) else f"{type(error).__name__}: {error}"
        raise WorkflowError(f"{own_line(error, file)}: {said}") from error
    return _by_output(returned, task, f"{file}: {function.__name__}()")


def _by_output(returned: object, task: WorkflowTask, where: str) -> dict[str, DataFrame]:
    names = [data.name for data in task.outputs]
    declared = ", ".join(names)
    if not names:
        if returned is None or (isinstance(returned, Mapping) and not returned):
            return {}
        raise WorkflowError(f"{where} returned {_kind(returned)}, but the process has no outputs: return nothing")
    if isinstance(returned, DataFrame):
        if len(names) == 1:
            return {names[0]: returned}
        raise WorkflowError(f"{where} returned one DataFrame for several outputs: return a dict with {declared}")
    if not isinstance(returned, Mapping):
        raise WorkflowError(
            f"{where} returned {_kind(returned)}: return a DataFrame, or a dict of DataFrames with {declared}"
        )
    wrong = [f"{name} is missing" for name in names if name not in returned]
    wrong += [f"{name} is not an output" for name in returned if name not in names]
    wrong += [
        f"{name} is {_kind(frame)}"
        for name, frame in returned.items()
        if name in names and not isinstance(frame, DataFrame)
    ]
    if wrong:
        raise WorkflowError(
            f"{where} returned a dict that does not fit: {'; '.join(wrong)}; the outputs are {declared}"
        )
    return dict(returned)


def _kind(value: object) -> str:
    if isinstance(value, DataFrame):
        return "a DataFrame"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
