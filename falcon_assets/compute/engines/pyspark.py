"""The engine ``pyspark``: a Python function ``run(spark, inputs, instance)``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import StringConstraints, model_validator

from falcon_assets.model.base import NonEmpty
from falcon_assets.model.workflow import Mistake, Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask


class PySparkWorkflow(Workflow):
    """A Python function ``run(spark, inputs, instance)`` that returns one DataFrame or a dict by output name."""

    kinds: ClassVar[tuple[str, ...]] = ("pyspark",)

    engine: Literal["pyspark"]
    """A Python function on a Spark session."""
    path: NonEmpty | None = None
    """A ``.py`` file with a function ``run``, relative to the folder of the entity definitions."""
    function: Annotated[str, StringConstraints(pattern=r"^[\w.]+:\w+$")] | None = None
    """``package.module:name`` instead of ``path``."""

    @model_validator(mode="after")
    def _one_of_both(self) -> PySparkWorkflow:
        if (self.path is None) == (self.function is None):
            raise ValueError("exactly one of path and function is required")
        return self

    @property
    def program(self) -> str:
        return self.path or self.function or ""

    def files(self) -> dict[str, str]:
        return {} if self.path is None else {"path": self.path}

    def mistakes(
        self, root: Path, views: Collection[str], parameters: Collection[str]
    ) -> Iterator[tuple[str, Mistake]]:
        from falcon_assets.compute.engines.computing.python_mistakes import python_mistakes

        if self.path is not None:
            for one in python_mistakes((root / self.path).read_bytes()):
                yield self.path, one

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.python import compute_python
        from falcon_assets.compute.engines.computing.session import compute_in_session

        return compute_in_session(
            task, lambda spark, inputs: compute_python(spark, inputs, task, self.path, self.function)
        )
