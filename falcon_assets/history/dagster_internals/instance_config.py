"""Dagster's check of a ``dagster.yaml``, without opening the storages that it names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster_postgres.run_storage.run_storage as storage
from alembic.script import ScriptDirectory

# Dagster checks what dagster.yaml says only while it opens all that it names, and stops at the first fault.
from dagster._config import process_config, resolve_to_config_type

# What dagster_instance_config raises; the public errors have no list of what is wrong.
from dagster._core.errors import DagsterInvalidConfigError

# The very check that every command of Dagster's begins with.
from dagster._core.instance.config import dagster_instance_config
from dagster._core.instance.ref import InstanceRef  # what dagster.yaml names, without opening it
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager  # keeps output in local files
from dagster._core.storage.sql import check_alembic_revision  # what is there, and what Dagster needs

# It knows under which names modules of Dagster's were declared earlier.
from dagster._serdes import ConfigurableClassData
from dagster_postgres.utils import pg_alembic_config  # where the migrations are
from sqlalchemy import Connection

from falcon_assets.errors import SettingsError


def config_errors(folder: Path) -> list[str]:
    """Returns Dagster's objections to the ``dagster.yaml`` of a folder, as sentences; it must be a YAML mapping."""
    try:
        dagster_instance_config(str(folder))
    except DagsterInvalidConfigError as error:
        return _sentences(error.errors)
    return []


def find_class(module: str, name: str, config: Mapping[str, Any]) -> type[Any] | str:
    """Returns the class of that name, or the reason why Dagster cannot make one with that configuration."""
    module = ConfigurableClassData(module, name, "").module_name  # as Dagster understands the old names of its modules
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # importing runs what the module says
        return f"the module {module} cannot be imported ({type(error).__name__}: {error})"
    if not isinstance(found, type):
        return f"there is no class {name} in the module {module}"
    if not hasattr(found, "config_type"):
        return f"{name} is none of the classes that Dagster makes from its configuration"
    try:
        result = process_config(resolve_to_config_type(found.config_type()), dict(config))
    except Exception as error:
        return f"{name} does not say how it is configured ({type(error).__name__}: {error})"
    return found if result.success else f"{name}: {_sentences(result.errors or [])[0]}"


def _sentences(errors: Any) -> list[str]:
    return [one.message.partition(" Expected: ")[0].rstrip(".") for one in errors]


def dagster_revision(connection: Connection) -> tuple[str | None, str]:
    """Returns the revision of Dagster's tables in a database, and the one that the installed Dagster needs."""
    found, needed = check_alembic_revision(pg_alembic_config(storage.__file__), connection)
    return found, str(needed)


def dagster_revisions() -> list[str]:
    """Returns the revisions of tables that the installed Dagster can migrate; the first is the one that it needs."""
    scripts = ScriptDirectory.from_config(pg_alembic_config(storage.__file__))
    return [one.revision for one in scripts.walk_revisions()]


def folders_of_instance(folder: Path, overrides: Any) -> dict[str, Path]:
    """Returns the folders of this machine with values (``storage``) and output (``logs``) of runs.

    Args:
        folder: That of the instance, with its ``dagster.yaml``.
        overrides: What counts more than the ``dagster.yaml``; None: nothing.

    Raises SettingsError where Dagster objects to what is declared.
    """
    try:
        declared = InstanceRef.from_dir(str(folder), overrides=overrides)
    except DagsterInvalidConfigError as error:
        raise SettingsError(f"dagster.yaml: {next(iter(_sentences(error.errors)), error)}") from error
    found = {"storage": Path(declared.local_artifact_storage.storage_dir).absolute()}
    logs = declared.compute_log_manager
    if isinstance(logs, LocalComputeLogManager) and (place := Path(logs._base_dir).absolute()) != found["storage"]:
        found["logs"] = place
    return found
