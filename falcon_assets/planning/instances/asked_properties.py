"""Properties with which an instance is asked to run, this time, over those that are declared."""

from __future__ import annotations

from typing import TypeAlias

from falcon_assets.errors import ExpressionError, QueryError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import is_secret
from falcon_assets.model.spark_settings import is_of_application
from falcon_assets.planning.instances.process_instance import BUILT_IN
from falcon_assets.planning.windows.interpolate import interpolate
from falcon_assets.texts import STARS

AskedProperties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, by name; values may hold ``${...}``, as declared ones."""


def with_properties(process: Process, asked: AskedProperties) -> Process:
    """The process with these properties over its own."""
    return process.model_copy(update={"properties": {**process.properties, **dict(asked)}}) if asked else process


def said_properties(asked: AskedProperties) -> str:
    """They in words, with stars for what is secret by its name."""
    return ", ".join(f"{name}={STARS if is_secret(name) else value}" for name, value in asked)


def require_usable(process: Process, cluster: Cluster, asked: AskedProperties) -> None:
    """Checks that an instance of the process can be told so.

    Raises:
        QueryError: a name stands for what every instance is told, a value has a hole that nothing fills, or Spark reads
            a setting only when it starts.
    """
    known = dict.fromkeys((*cluster.variables, *BUILT_IN), "")
    entry = process.on(cluster.name)
    for name, value in asked:
        if name in BUILT_IN:
            raise QueryError(f"property {name!r} says which instance it is: it cannot be another one")
        if process.workflow.shares_session and name.startswith("spark.") and is_of_application(name):
            raise QueryError(f"Spark reads {name} when it starts, and {process.name} runs in a session that is there")
        try:
            if entry is not None:
                interpolate(value, known, entry.validity.start, process.timezone, "")
        except ExpressionError as error:
            shown = STARS if is_secret(name) else value
            raise QueryError(f"property {name}={shown}: {error if not is_secret(name) else 'it is no text'}") from None
