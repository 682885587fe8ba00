"""Properties with which an instance is asked to run, this time, over those that are declared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from falcon_assets.errors import ExpressionError, QueryError, WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import is_secret
from falcon_assets.model.spark_settings import is_of_application
from falcon_assets.planning.instances.process_instance import BUILT_IN
from falcon_assets.planning.windows.interpolate import interpolate
from falcon_assets.texts import STARS, without_credentials

AskedProperties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, by name; values may hold ``${...}``, as declared ones, or be ``{env: NAME}``."""

_REFERENCE = re.compile(r"\{ *env: *([A-Za-z_][A-Za-z0-9_]*) *\}")
_OURS = ("FALCON_", "DAGSTER_")
"""Variables that open the database are no business of workflows."""


def with_properties(process: Process, asked: AskedProperties) -> Process:
    """The process with these properties over its own."""
    return process.model_copy(update={"properties": {**process.properties, **dict(asked)}}) if asked else process


def said_properties(asked: AskedProperties) -> str:
    """They in words, with stars for what is secret; a variable that holds it is named."""
    return ", ".join(f"{name}={_shown(name, value)}" for name, value in asked)


def looked_up(asked: AskedProperties, environ: Mapping[str, str]) -> AskedProperties:
    """They with the values of the variables that they name.

    Raises:
        WorkflowError: a variable is not set where the instance runs; or a secret was asked for as text, before that was
            refused, and is not kept.
    """
    return tuple((name, _looked_up(name, value, environ)) for name, value in asked)


def _looked_up(name: str, value: str, environ: Mapping[str, str]) -> str:
    variable = _REFERENCE.fullmatch(value)
    if variable is None:
        if _holds_secret(name, value) or STARS in value:
            raise WorkflowError(f"property {name} was asked for with a secret as text, which is not kept: {_how(name)}")
        return value
    if variable[1] not in environ:
        raise WorkflowError(
            f"property {name} was asked for as {value}, and {variable[1]} is not set where the run was started: set it "
            "for Dagster's daemon and code location, or for falcon run, and run the instance again"
        )
    return environ[variable[1]]


def starred(asked: AskedProperties) -> AskedProperties:
    """They without secrets, as they may be kept."""
    return tuple((name, _shown(name, value)) for name, value in asked)


def _shown(name: str, value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    return STARS if is_secret(name) else without_credentials(value)


def _holds_secret(name: str, value: str) -> bool:
    return _shown(name, value) != value or (is_secret(name) and value == STARS)


def _how(name: str) -> str:
    return f"ask with --properties '{name}={{env: NAME}}', and set the variable NAME where the instance runs"


def require_usable(process: Process, cluster: Cluster, asked: AskedProperties) -> None:
    """Checks that an instance of the process can be told so.

    Raises:
        QueryError: a name stands for what every instance is told, a value has a hole that nothing fills, or is secret
            and no reference, or Spark reads a setting only when it starts.
    """
    known = dict.fromkeys((*cluster.variables, *BUILT_IN), "")
    entry = process.on(cluster.name)
    for name, value in asked:
        if name in BUILT_IN:
            raise QueryError(f"property {name!r} says which instance it is: it cannot be another one")
        if process.workflow.shares_session and name.startswith("spark.") and is_of_application(name):
            raise QueryError(f"Spark reads {name} when it starts, and {process.name} runs in a session that is there")
        if _holds_secret(name, value):
            raise QueryError(f"property {name} holds a secret, and what is asked for is kept: {_how(name)}")
        variable = _REFERENCE.fullmatch(value)
        if variable and variable[1].upper().startswith(_OURS):
            raise QueryError(f"property {name}: {variable[1]} is for falcon and Dagster only: name another variable")
        try:
            if entry is not None:
                interpolate(value, known, entry.validity.start, process.timezone, "")
        except ExpressionError as error:
            raise QueryError(f"property {name}={value}: {error}") from None
