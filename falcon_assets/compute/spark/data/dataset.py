"""What a workflow reads and writes: a feed and the folders of its instances."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.model.feed import Feed
from falcon_assets.storage.instances.instance_files import InstanceFiles
from falcon_assets.storage.kinds.reading import ReadablePartition


@dataclass(frozen=True)
class InputData:
    """An input of one process instance.

    Attributes:
        name: The input's name in the process.
        feed: How the data is laid out.
        urls: Folders of the instances, oldest first (``file:///data/2013/01``); all at the same depth, because all
            come from one path template. Empty where an optional input has nothing available.
        partition: Only these sub-partitions of each instance, outermost first, ``*`` for any (``*/US``).
        counted: The files of each instance, in the order of ``urls``, that Spark has to read; empty: nobody counted.
        partitions: Of a table, what the instances are; ``urls`` are their folders or files then.
    """

    name: str
    feed: Feed
    urls: tuple[str, ...]
    partition: str | None = None
    counted: tuple[InstanceFiles, ...] = ()
    partitions: tuple[ReadablePartition, ...] = ()

    @property
    def title(self) -> str:
        """What people call it in the texts of errors."""
        return f"input {self.name!r} (feed {self.feed.name!r})"


@dataclass(frozen=True)
class OutputData:
    """An output of one process instance.

    Attributes:
        name: The output's name in the process.
        feed: How the data is laid out.
        url: The folder to write, in staging; it does not exist yet.
        keys: Of a table: the partition keys of which an instance has every value; they are columns.
    """

    name: str
    feed: Feed
    url: str
    keys: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns that become folders, outermost first."""
        return self.keys or self.feed.partitions
