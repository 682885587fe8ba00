"""Instances on their way to whoever computes with them."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.instance_files import InstanceFiles


@dataclass(frozen=True)
class ReadableFolder:
    """Files of an instance, where Spark reads them."""

    url: str
    """For Spark."""
    files: InstanceFiles
    """What Spark has to read there, no fewer and no others."""


@dataclass(frozen=True)
class ReadableInstance:
    """An instance as Spark reads it."""

    version: DataVersion
    """What it held just before."""
    folders: tuple[ReadableFolder, ...]
    """Where it is; together they are the instance."""
