"""Runs a workflow on the engine that it names."""

from __future__ import annotations

from falcon_assets.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.errors import WorkflowError
from falcon_assets.spark.failures import SPARK_ERRORS, explain, log_stack


def run_workflow(task: WorkflowTask) -> WorkflowResult:
    """Computes the instance: its outputs are in their staging folders then.

    Raises:
        WorkflowError: the workflow is missing, malformed, or failed; the text says where and why in a few lines, with
            stars for what is secret. The stacks are in the log of the run.
    """
    try:
        result: WorkflowResult = task.workflow.compute(task)
    except WorkflowError as error:
        log_stack(error.__cause__, task.hide)
        # Not chained: whoever prints a chain prints what is hidden.
        raise WorkflowError(task.hide(str(error))) from None
    except (*SPARK_ERRORS, ConnectionError) as error:  # Connect says some things only when it is asked for others
        log_stack(error, task.hide)
        raise WorkflowError(task.hide(f"process {task.process!r}: {explain(error)}")) from None
    return result
