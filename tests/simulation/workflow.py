"""The work that the simulated processes do: write down what was read."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.engines.computing.task import Instance
from tests.simulation.ground import line_in


def normal(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs the first time."""
    return one_line(spark, _label(instance), written(instance, "normal"))


def late(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs when an input changed."""
    return one_line(spark, _label(instance), written(instance, "late"))


def _label(instance: Instance) -> str:
    """The version that the n-th run of an instance writes: ``process@instance#n``.

    Raises:
        RuntimeError: the run is named in ``fail``.
    """
    with counter(instance).open("a") as file:
        file.write("run\n")
    label = f"{subject(instance)}#{len(counter(instance).read_text().splitlines())}"
    if label in instance.properties["fail"].split():
        raise RuntimeError(f"{label} is to fail")
    return label


def subject(instance: Instance) -> str:
    """What the versions of an instance begin with."""
    return f"{instance.process}@{instance.nominal_time:%Y-%m-%dT%H:%MZ}"


def counter(instance: Instance) -> Path:
    """A file of the instance's own, for lines that count."""
    return Path(instance.properties["counters"]) / f"{instance.cluster} {subject(instance)}"


def written(instance: Instance, workflow: str) -> str:
    """The workflow, and the versions that lie in the folders of the inputs."""
    read = {name: " ".join(map(_version_in, folders)) for name, folders in instance.inputs.items()}
    return " | ".join([workflow, *(f"{name}: {versions}".strip() for name, versions in read.items())])


def one_line(spark: SparkSession, label: str, content: str) -> DataFrame:
    """What is published: the version that this is, and what it was made of."""
    return spark.sql("SELECT :line AS value", args={"line": f"{label} | {content}"})


def _version_in(folder: str) -> str:
    return line_in(folder).partition(" ")[0]
