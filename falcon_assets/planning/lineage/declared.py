"""What an instance may read and write, and which feeds lie where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from falcon_assets.model.instant import format_instant


class FoundInstance(NamedTuple):
    """An instance of a feed that lies somewhere."""

    feed: str
    instance: datetime
    cluster: str = ""
    """Where it lies; empty: on the cluster of the process."""

    def __str__(self) -> str:
        """It in words."""
        return f"{self.feed} {format_instant(self.instance)}{self.cluster and f' on {self.cluster}'}"


Find: TypeAlias = Callable[[str], FoundInstance | None]
"""The instance of a feed that a place belongs to; None: to none."""

_LOCAL = re.compile(r"file:/+")
_SCHEMES = re.compile(r"s3[an]://")
_HDFS_PORT = re.compile(r"^(hdfs://[^/]+):8020(?:/|$)")
"""What Hadoop takes where no port is said."""


@dataclass(frozen=True)
class DeclaredInput:
    """An input as Spark reads it.

    Attributes:
        feed: Its feed.
        urls: Where its instances are; none: it has none, and is optional.
    """

    feed: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredData:
    """What an instance may read and write.

    Attributes:
        inputs: By name.
        outputs: By name, the folder in staging.
        scratch: Folders in which it may do what it likes: staging and working locations.
    """

    inputs: Mapping[str, DeclaredInput]
    outputs: Mapping[str, str]
    scratch: Sequence[str]


def is_in(place: str, folders: Sequence[str]) -> bool:
    """Whether a place is one of some folders, or in one."""
    normal = normal_place(place)
    return any(normal == one or normal.startswith(f"{one}/") for one in map(normal_place, folders))


def normal_place(place: str) -> str:
    """A path or URL in one spelling: Spark and fsspec have several for the same."""
    named = _SCHEMES.sub("s3://", _LOCAL.sub("/", place, count=1), count=1)
    return _HDFS_PORT.sub(r"\1/", named, count=1).rstrip("/") or "/"
