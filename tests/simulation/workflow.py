"""The work that the simulated processes do: write down what was read."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.spark.instance import Instance


def normal(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs the first time."""
    return _write_down(spark, instance, "normal")


def late(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs when an input changed."""
    return _write_down(spark, instance, "late")


def _write_down(spark: SparkSession, instance: Instance, workflow: str) -> DataFrame:
    """One line: the version that this is, the workflow, the versions that lie in the folders of the inputs.

    The n-th run of an instance writes version ``process@instance#n``; runs that are to fail are named in ``fail``.
    """
    subject = f"{instance.process}@{instance.nominal_time:%Y-%m-%dT%H:%MZ}"
    counter = Path(instance.properties["counters"]) / f"{instance.cluster} {subject}"
    with counter.open("a") as file:
        file.write("run\n")
    label = f"{subject}#{len(counter.read_text().splitlines())}"
    if label in instance.properties["fail"].split():
        raise RuntimeError(f"{label} is to fail")
    read = {name: " ".join(map(_version_in, folders)) for name, folders in instance.inputs.items()}
    line = " | ".join([label, workflow, *(f"{name}: {versions}".strip() for name, versions in read.items())])
    return spark.sql("SELECT :line AS value", args={"line": line})


def _version_in(folder: str) -> str:
    files = [path for path in Path(folder.removeprefix("file://")).iterdir() if path.suffix == ".txt"]
    (line,) = "".join(path.read_text() for path in files).splitlines()
    return line.partition(" ")[0]
