"""The engine ``spark-submit``: a program of its own, which receives the paths to read and write."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from falcon_assets.model.base import NonEmpty
from falcon_assets.model.workflow import Mistake, Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask


class SparkSubmitWorkflow(Workflow):
    """A program for ``spark-submit``; it gets paths as arguments and writes the outputs itself."""

    spark = "program"

    engine: Literal["spark-submit"]
    """A program of its own, handed to ``spark-submit``."""
    path: NonEmpty
    """``app.py`` or ``app.jar``, relative to the folder of the entity definitions."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """Main class of a jar."""
    args: tuple[str, ...] = ()
    """Arguments; ``${input}`` and ``${output}`` are paths, properties and expressions work too."""

    def files(self) -> dict[str, str]:
        return {"path": self.path}

    def templates(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        for index, text in enumerate(self.args):
            yield ("args", index), text

    def mistakes(
        self, root: Path, views: Collection[str], parameters: Collection[str]
    ) -> Iterator[tuple[str, Mistake]]:
        from falcon_assets.compute.engines.computing.python_function import python_mistakes

        if self.path.endswith(".py"):
            for one in python_mistakes((root / self.path).read_bytes()):
                yield self.path, one

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.submit import submit

        return submit(task, self.path, self.args, self.class_)
