"""Workflows: what a process runs, by engine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from falcon_assets.model.base import Declaration, NonEmpty

ENGINES = ("spark-sql", "pyspark", "spark-submit")
"""The engines on offer; Oozie, Hive and Pig are Falcon's past."""


class _Workflow(Declaration):
    name: NonEmpty | None = None
    """What it is called, shown with the assets."""
    version: NonEmpty | None = None
    """Which version it is, shown with the assets."""
    lib: tuple[NonEmpty, ...] = ()
    """Jars and Python files (``.py``, ``.zip``, ``.egg``) that it needs, or folders of them; below the same folder."""


class SparkSqlWorkflow(_Workflow):
    """A SQL file; its last statement is the output, inputs are views named like the inputs."""

    engine: Literal["spark-sql"]
    """Spark SQL."""
    path: NonEmpty
    """A ``.sql`` file, relative to the folder of the entity definitions."""


class PySparkWorkflow(_Workflow):
    """A Python function ``run(spark, inputs, instance)`` that returns one DataFrame or a dict by output name."""

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


class SparkSubmitWorkflow(_Workflow):
    """A program for ``spark-submit``; it gets paths as arguments and writes the outputs itself."""

    engine: Literal["spark-submit"]
    """A program of its own, handed to ``spark-submit``."""
    path: NonEmpty
    """``app.py`` or ``app.jar``, relative to the folder of the entity definitions."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """Main class of a jar."""
    args: tuple[str, ...] = ()
    """Arguments; ``${input}`` and ``${output}`` are paths, properties and expressions work too."""


Workflow = Annotated[SparkSqlWorkflow | PySparkWorkflow | SparkSubmitWorkflow, Field(discriminator="engine")]
