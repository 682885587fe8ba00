"""The Dagster instance of this installation, for commands that Dagster does not start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from falcon_assets.errors import SettingsError
from falcon_assets.history.dagster_internals.instance_config import folders_of_instance
from falcon_assets.settings import Settings

_STORAGE = {"module": "falcon_assets.history.platform.instance_storage", "class": "FalconStorage", "config": {}}


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Returns the instance that ``dagster`` itself uses in this folder, as a context manager.

    As for ``dagster dev``: DAGSTER_HOME if it is set, else the ``dagster.yaml`` of the working folder. Without both,
    the history is in the database of the settings as well.

    Raises:
        SettingsError: ``dagster.yaml`` is not YAML, or the database cannot be reached.
    """
    if settings.environ.get("DAGSTER_HOME"):
        return dg.DagsterInstance.get()
    artifacts = _artifacts(settings)
    return dg.DagsterInstance.local_temp(str(artifacts), overrides=_declared(Path("dagster.yaml")))


def local_folders(settings: Settings) -> dict[str, Path]:
    """Returns the folders of this machine where the instance keeps what runs left; no storage is opened.

    Raises SettingsError where ``dagster.yaml`` is not YAML, or not as Dagster wants it.
    """
    if home := settings.environ.get("DAGSTER_HOME"):
        return folders_of_instance(Path(home), None)
    return folders_of_instance(_artifacts(settings), _declared(Path("dagster.yaml")))


def _artifacts(settings: Settings) -> Path:
    """The folder of the instance, where no DAGSTER_HOME is; Dagster wants it to exist."""
    folder = settings.home / "dagster"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _declared(file: Path) -> Any:
    try:
        declared = yaml.safe_load(file.read_text()) if file.exists() else {}
    except (OSError, yaml.YAMLError) as error:
        raise SettingsError(f"{file.absolute()} cannot be read: {error}") from error
    return {"storage": {"custom": _STORAGE}, "telemetry": {"enabled": False}, **(declared or {})}
