"""Inputs and outputs of a workflow: a feed and the folders of its instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

from falcon_assets.model.feed import Feed
from falcon_assets.planning.rollups import member_input
from falcon_assets.storage.instances.instance_files import InstanceFiles
from falcon_assets.storage.kinds.reading import ReadablePartition


@dataclass(frozen=True)
class Members:
    """The feeds that an input of a roll-up tells apart.

    Attributes:
        names: All of them, whether any of their instances is there or not.
        column: The column with the name of a row's feed; None: there is none.
        are_inputs: Whether each is an input beside it.
        of: The feed of each URL of the input.
    """

    names: tuple[str, ...]
    column: str | None
    are_inputs: bool
    of: tuple[str, ...]


@dataclass(frozen=True)
class InputData:
    """An input of one process instance.

    Attributes:
        urls: Folders of the instances, oldest first (``file:///data/2013/01``); all at the same depth, because all
            are from one path template. Empty: an optional input has no available instance.
        partition: Only these sub-partitions of each instance, outermost first, ``*`` for any (``*/US``).
        counted: The files of each instance, in the order of ``urls``, that Spark has to read; empty: not counted.
        partitions: Of a table, the partitions of the instances; ``urls`` are their folders or files then.
        versions: The data versions of the instances, oldest first.
    """

    name: str
    feed: Feed
    urls: tuple[str, ...]
    partition: str | None = None
    counted: tuple[InstanceFiles, ...] = ()
    partitions: tuple[ReadablePartition, ...] = ()
    members: Members | None = None
    versions: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, InputData]:
        """The input, and those of its members that are inputs beside it."""
        of_members = self.by_member if self.members and self.members.are_inputs else {}
        return {self.name: self, **{member_input(self.name, name): one for name, one in of_members.items()}}

    @property
    def by_member(self) -> dict[str, InputData]:
        return {name: self._of(name) for name in self.members.names} if self.members else {}

    def _of(self, name: str) -> InputData:
        assert self.members
        urls = tuple(compress(self.urls, own := [one == name for one in self.members.of]))
        counted, partitions = tuple(compress(self.counted, own)), self.partitions if urls else ()
        return replace(self, urls=urls, counted=counted, partitions=partitions, members=None)

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
