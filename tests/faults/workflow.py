"""What the instances of the fault tests do: the simulation's work, whose beginnings are written down.

They notice when two of them compute the same instance at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.engines.computing.task import Instance
from tests.simulation.workflow import counter, one_line, subject, written

SECONDS = 0.1


def normal(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs the first time."""
    return _work(spark, instance, "normal")


def late(spark: SparkSession, inputs: dict[str, DataFrame], instance: Instance) -> DataFrame:
    """What runs when an input changed."""
    return _work(spark, instance, "late")


def _work(spark: SparkSession, instance: Instance, workflow: str) -> DataFrame:
    """The n-th different content of an instance is its version ``process@instance#n``.

    A run that comes after a killed one does the same again, and writes the same version.
    """
    with _alone(instance):
        time.sleep(SECONDS)  # this is the work
        content, file = written(instance, workflow), counter(instance)
        before = file.read_text().splitlines() if file.exists() else []
        if content not in before:
            with file.open("a") as lines:
                lines.write(f"{content}\n")
        number = (*before, content).index(content) + 1
        return one_line(spark, f"{subject(instance)}#{number}", content)


@contextmanager
def _alone(instance: Instance) -> Iterator[None]:
    """Nobody else may be at the same instance meanwhile."""
    journal = Path(instance.properties["counters"]).parent / "journal"
    name = f"{instance.cluster} {subject(instance)}"
    with (journal / f"{name}.lock").open("w") as lock:  # gone with the process, however it ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(journal, name, "overlaps")
            raise
        _say(journal, name, "begins")
        yield


def _say(journal: Path, name: str, what: str) -> None:
    """One line at the end of the journal, in one write."""
    line = json.dumps({"instance": name, "what": what, "pid": os.getpid()}) + "\n"
    with (journal / "lines").open("a") as lines:
        lines.write(line)
