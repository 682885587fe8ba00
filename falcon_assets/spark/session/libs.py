"""Jars and Python files that a workflow brings along, for its session or its program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.failures import SPARK_ERRORS, explain
from falcon_assets.spark.session.sessions import is_classic

PYTHON = (".py", ".zip", ".egg")


@dataclass(frozen=True)
class Libs:
    """Files on this machine."""

    jars: tuple[Path, ...]
    python: tuple[Path, ...]


def libs_of(root: Path, lib: Sequence[str]) -> Libs:
    """The files that ``lib`` names below ``root``; of a folder all jars and Python files right in it.

    Raises:
        WorkflowError: one of them is not there.
    """
    files: list[Path] = []
    for name in lib:
        path = (root / name).absolute()
        if not path.exists():
            raise WorkflowError(f"{path}: what the workflow brings along cannot be read: no such file")
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    jars = tuple(path for path in files if path.suffix == ".jar")
    return Libs(jars, tuple(path for path in files if path.suffix in PYTHON))


def add_libs(child: SparkSession, libs: Libs) -> None:
    """Lets the session and this process use them; what a session in this process has, its siblings have too.

    Raises:
        WorkflowError: Spark refuses a file; another of the same name is there already, say.
    """
    try:
        if libs.python:
            child.addArtifacts(*map(str, libs.python), pyfile=True)
        if libs.jars and not is_classic(child):
            child.addArtifacts(*map(str, libs.jars))
        for jar in libs.jars if is_classic(child) else ():
            quote = next((one for one in "'\"`" if one not in str(jar)), "'")  # Spark unescapes nothing here
            child.sql(f"ADD JAR {quote}{jar}{quote}")
    except (*SPARK_ERRORS, OSError, ValueError) as error:
        raise WorkflowError(f"what the workflow brings along (lib): {explain(error)}") from error
    for entry in map(importable, libs.python):
        if entry not in sys.path:
            sys.path.append(entry)


def importable(lib: Path) -> str:
    """The entry of Python's path by which it is imported."""
    return str(lib.parent if lib.suffix == ".py" else lib)
