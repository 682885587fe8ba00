"""Instances on their way to whoever computes with them."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.instance_files import InstanceFiles
from falcon_assets.storage.tables.catalog import Column, Partition, TableLayout


@dataclass(frozen=True)
class ReadableFolder:
    """Files of an instance, where Spark reads them."""

    url: str
    """For Spark."""
    files: InstanceFiles
    """What Spark has to read there, no fewer and no others."""


@dataclass(frozen=True)
class ReadablePartition:
    """A partition of a table, as the catalog said it."""

    layout: TableLayout
    """Its table."""
    partition: Partition
    """What it is, or a part of it; its places are for Spark."""
    columns: tuple[Column, ...] = ()
    """The columns of the table as its files name them, in its order; none: as the table does."""


@dataclass(frozen=True)
class ReadableInstance:
    """An instance as Spark reads it: folders, or partitions of a table."""

    version: DataVersion
    """What it held just before."""
    folders: tuple[ReadableFolder, ...] = ()
    """Where it is; together they are the instance."""
    partitions: tuple[ReadablePartition, ...] = ()
    """What it is, in a table; together they are the instance."""
