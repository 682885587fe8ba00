"""The engine ``python``: a Python function ``run(inputs, instance)`` that needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from falcon_assets.compute.engines.computing.python_function import FunctionKeys
from falcon_assets.model.workflow import Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask


class PythonWorkflow(FunctionKeys, Workflow):
    """A Python function ``run(inputs, instance)`` in the process of the run: on Arrow data, or on files alone."""

    kinds: ClassVar[tuple[str, ...]] = ("python",)
    spark = "none"

    engine: Literal["python"]
    """A Python function that needs no Spark: no JVM starts."""

    @property
    def parameters(self) -> str:
        """Those without Spark."""
        return "inputs, instance"

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.arrow import compute_with_arrow

        return compute_with_arrow(task, self.path, self.function)
