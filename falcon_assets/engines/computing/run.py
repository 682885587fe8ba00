"""Runs a workflow on the engine that it names."""

from __future__ import annotations

from falcon_assets.engines.computing.python import compute_python
from falcon_assets.engines.computing.sql import compute_sql
from falcon_assets.engines.computing.submit import submit
from falcon_assets.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.errors import WorkflowError
from falcon_assets.model.workflow import SparkSqlWorkflow, SparkSubmitWorkflow
from falcon_assets.spark.failures import SPARK_ERRORS, explain, log_stack
from falcon_assets.spark.libs import add_libs, libs_of
from falcon_assets.spark.reading import read_input
from falcon_assets.spark.session import application_id, isolated
from falcon_assets.spark.settings import apply_settings
from falcon_assets.spark.writing import write_output


def run_workflow(task: WorkflowTask) -> WorkflowResult:
    """Reads the inputs, computes, writes every output into its staging folder, and counts the records.

    Safe to call from several threads for one cluster: every call has temporary views and settings of its own.

    Raises:
        WorkflowError: the workflow is missing, malformed, or failed; the text says where and why in a few lines. The
            stacks are in the log of the run.
    """
    try:
        return _run(task)
    except WorkflowError as error:
        log_stack(error.__cause__)
        raise
    except (*SPARK_ERRORS, ConnectionError) as error:  # Connect says some things only when it is asked for others
        log_stack(error)
        raise WorkflowError(f"process {task.process!r}: {explain(error)}") from error


def _run(task: WorkflowTask) -> WorkflowResult:
    workflow = task.workflow
    if isinstance(workflow, SparkSubmitWorkflow):
        return submit(task, workflow)
    session = task.session()
    with isolated(session) as child:
        apply_settings(child, task.settings, task.process)
        add_libs(child, libs_of(task.entity_root, workflow.lib))
        inputs = {data.name: read_input(child, data) for data in task.inputs}
        if isinstance(workflow, SparkSqlWorkflow):
            frames = compute_sql(child, inputs, task, workflow)
        else:
            frames = compute_python(child, inputs, task, workflow)
        records = {data.name: write_output(frames[data.name], data) for data in task.outputs}
    return WorkflowResult(records, application_id(session))
