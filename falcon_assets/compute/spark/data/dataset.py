"""Inputs and outputs of a workflow: a feed and the folders of its instances."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.model.feed import Feed
from falcon_assets.storage.instances.instance_files import InstanceFiles
from falcon_assets.storage.kinds.reading import ReadablePartition


@dataclass(frozen=True)
class InputData:
    """An input of one process instance.

    Attributes:
        urls: Folders of the instances, oldest first (``file:///data/2013/01``); all at the same depth, because all
            are from one path template. Empty: an optional input has no available instance.
        partition: Only these sub-partitions of each instance, outermost first, ``*`` for any (``*/US``).
        counted: The files of each instance, in the order of ``urls``, that Spark has to read; empty: not counted.
        partitions: Of a table, the partitions of the instances; ``urls`` are their folders or files then.
    """

    name: str
    feed: Feed
    urls: tuple[str, ...]
    partition: str | None = None
    counted: tuple[InstanceFiles, ...] = ()
    partitions: tuple[ReadablePartition, ...] = ()

    @property
    def title(self) -> str:
        return f"input {self.name!r} (feed {self.feed.name!r})"


@dataclass(frozen=True)
class OutputData:
    """An output of one process instance; ``keys``, of a table: those with all values in one instance, as columns."""

    name: str
    feed: Feed
    url: str
    keys: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        return self.keys or self.feed.partitions
