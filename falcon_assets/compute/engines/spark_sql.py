"""The engine ``spark-sql``: a file of SQL statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from falcon_assets.model.base import NonEmpty
from falcon_assets.model.workflow import Mistake, Workflow

if TYPE_CHECKING:
    from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
    from falcon_assets.compute.engines.computing.together import Example
    from falcon_assets.model.feed import Feed


class SparkSqlWorkflow(Workflow):
    """A SQL file; its last statement is the output, inputs are views named like the inputs."""

    engine: Literal["spark-sql"]
    """Spark SQL."""
    path: NonEmpty
    """A ``.sql`` file, relative to the folder of the entity definitions."""

    def files(self) -> dict[str, str]:
        return {"path": self.path}

    def mistakes(
        self, root: Path, views: Collection[str], parameters: Collection[str]
    ) -> Iterator[tuple[str, Mistake]]:
        from falcon_assets.compute.engines.computing.sql_mistakes import sql_mistakes

        try:
            sql = (root / self.path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            yield self.path, Mistake(1, "the file is not UTF-8 text")
            return
        for one in sql_mistakes(sql, views, parameters):
            yield self.path, one

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        from falcon_assets.compute.engines.computing.session import compute_in_session
        from falcon_assets.compute.engines.computing.sql import compute_sql

        return compute_in_session(task, lambda spark, inputs: compute_sql(spark, inputs, task, self.path))

    def why_alone(self, root: Path, cluster: str, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
        from falcon_assets.compute.engines.computing.together_sql import why_alone

        return why_alone(root / self.path, cluster, inputs, outputs)

    def example(self, task: WorkflowTask, result: WorkflowResult) -> Example:
        from falcon_assets.compute.engines.computing.together import Example

        return Example.of(task, result)

    def compute_together(self, tasks: Sequence[WorkflowTask], example: Example) -> list[WorkflowResult]:
        from falcon_assets.compute.engines.computing.together_query import compute_together

        return compute_together(tasks, self.path, example)
