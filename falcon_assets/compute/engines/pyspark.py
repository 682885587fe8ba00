"""The engine ``pyspark``: a Python function ``run(spark, inputs, instance)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from falcon_assets.compute.engines.computing.python_function import FunctionKeys
from falcon_assets.compute.engines.computing.together_joins import KEY
from falcon_assets.model.workflow import Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
    from falcon_assets.compute.engines.computing.together import Example
    from falcon_assets.model.feed import Feed


_ARROW = "arrow"


class PySparkWorkflow(FunctionKeys, Workflow):
    """A Python function that returns one DataFrame or a dict by output name.

    ``run(spark, inputs, instance)`` computes an instance; with ``batch``, ``run(spark, inputs, instances)`` many, or
    ``run(inputs, instance)`` one in a task of Spark, which computes others as well.
    """

    kinds: ClassVar[tuple[str, ...]] = ("pyspark",)

    engine: Literal["pyspark"]
    """A Python function on a Spark session."""
    batch: bool | Literal["arrow"] = False
    """``true``: the function is ``run(spark, inputs, instances)`` and computes many instances at once, whose rows have
    the nominal time of their instance in a column ``falcon_instance``. ``arrow``: it is ``run(inputs, instance)``, gets
    Arrow tables and returns one, and tasks of Spark call it, each for many instances."""

    @property
    def parameters(self) -> str:
        """The last one tells whether it is about many."""
        if self.batch == _ARROW:
            return "inputs, instance"
        return "spark, inputs, instances" if self.batch else "spark, inputs, instance"

    @property
    def asks_for_many(self) -> bool:
        """Whether it says so."""
        return bool(self.batch)

    def misfit(self, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
        """Where there is no output, or an input has the column of the instance already; Arrow's has one, declared."""
        if self.batch == _ARROW and len(outputs) != 1:
            return f"a function of Arrow tables makes one output, and there are {len(outputs)}: leave batch out"
        if self.batch == _ARROW and outputs[0].schema_ is None:
            return f"Spark has to know the columns before the function is called: declare `schema` in {outputs[0].name}"
        if not outputs:
            return "a process without outputs has nothing by which instances could be told apart: leave batch out"
        own = [one.name for one in inputs if re.search(rf"\b{KEY}\b", one.schema_ or "", re.IGNORECASE)]
        return f"feed {own[0]!r} has a column {KEY} of its own: give it another name" if own else ""

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.python import call_function
        from falcon_assets.compute.engines.computing.session import compute_in_session
        from falcon_assets.compute.engines.computing.together_arrow import compute_alone as compute_arrow
        from falcon_assets.compute.engines.computing.together_function import compute_alone

        if self.batch == _ARROW:
            return compute_arrow(task, self.path, self.function)
        if self.batch:
            return compute_alone(task, self.path, self.function)
        own = (task, self.path, self.function, self.parameters)
        return compute_in_session(
            task, lambda spark, inputs: call_function((spark, dict(inputs), task.instance), *own)[0]
        )

    def why_alone(self, root: Path, cluster: str, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
        from falcon_assets.compute.engines.computing.together_sql import why_of_feeds

        if not self.batch:
            return "its function computes one at a time (batch)"
        return why_of_feeds(cluster, inputs, outputs)

    def example(self, task: WorkflowTask, result: WorkflowResult) -> Example:
        from falcon_assets.compute.engines.computing.together import Example

        return Example.of(task, result)

    def compute_together(self, tasks: Sequence[WorkflowTask], example: Example) -> list[WorkflowResult]:
        from falcon_assets.compute.engines.computing.together_arrow import compute_together as compute_arrow
        from falcon_assets.compute.engines.computing.together_function import compute_together

        if self.batch == _ARROW:
            return compute_arrow(tasks, self.path, self.function, example)
        return compute_together(tasks, self.path, self.function, example)
