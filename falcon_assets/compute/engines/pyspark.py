"""The engine ``pyspark``: a Python function ``run(spark, inputs, instance)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from falcon_assets.compute.engines.computing.python_function import FunctionKeys
from falcon_assets.model.workflow import Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask


class PySparkWorkflow(FunctionKeys, Workflow):
    """A Python function ``run(spark, inputs, instance)`` that returns one DataFrame or a dict by output name."""

    kinds: ClassVar[tuple[str, ...]] = ("pyspark",)
    parameters: ClassVar[str] = "spark, inputs, instance"

    engine: Literal["pyspark"]
    """A Python function on a Spark session."""

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.python import compute_python
        from falcon_assets.compute.engines.computing.session import compute_in_session

        return compute_in_session(
            task, lambda spark, inputs: compute_python(spark, inputs, task, self.path, self.function)
        )
