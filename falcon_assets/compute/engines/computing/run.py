"""Runs a workflow on its engine."""

from __future__ import annotations

import sys

from falcon_assets.base.texts import hidden, is_long, recorded
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain, log_stack
from falcon_assets.errors import WorkflowError


def run_workflow(task: WorkflowTask) -> WorkflowResult:
    """Computes the outputs; raises WorkflowError, which is short, as it is recorded: the log of the run has more."""
    try:
        result: WorkflowResult = task.workflow.compute(task)
    except WorkflowError as error:
        log_stack(error.__cause__)
        said = str(error.args[0])
    except (*SPARK_ERRORS, ConnectionError) as error:  # Connect says some things only when it is asked for others
        log_stack(error)
        said = f"process {task.process!r}: {explain(error)}"
    else:
        return result
    if is_long(said):
        sys.stderr.write(hidden(said))
        sys.stderr.write("\n")
    # Not chained: whoever prints a chain prints what is hidden.
    raise WorkflowError(recorded(said))
