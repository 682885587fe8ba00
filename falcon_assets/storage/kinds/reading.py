"""Inputs in the form in which engines read them."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.instance_files import InstanceFiles
from falcon_assets.storage.tables.catalog import Column, Partition, TableLayout


@dataclass(frozen=True)
class ReadableFolder:
    """``member``: of a roll-up, the feed that it is of."""

    url: str
    files: InstanceFiles
    member: str = ""


@dataclass(frozen=True)
class ReadablePartition:
    layout: TableLayout
    partition: Partition
    """The instance, or a part of it; its places are for Spark."""
    columns: tuple[Column, ...] = ()
    """The columns of the table as its files name them, in its order; empty: as the table does."""
    member: str = ""
    """Of a roll-up: the feed that it is of."""


@dataclass(frozen=True)
class ReadableInstance:
    version: DataVersion
    folders: tuple[ReadableFolder, ...] = ()
    partitions: tuple[ReadablePartition, ...] = ()
