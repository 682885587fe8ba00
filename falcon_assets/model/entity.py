"""Kinds of entities, by the word for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from falcon_assets.errors import count_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.feed import Feed
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process

Entity: TypeAlias = Cluster | Feed | Process | Datasource | Flow
Kind: TypeAlias = Literal["cluster", "datasource", "flow", "feed", "process"]
Key: TypeAlias = tuple[str, str]
"""Kind and name of an entity."""
KINDS: Mapping[str, type[Entity]] = {
    "cluster": Cluster,
    "datasource": Datasource,
    "flow": Flow,
    "feed": Feed,
    "process": Process,
}
"""``kind`` of a document -> its model."""
_PLURALS = {"process": "processes"}
_USUAL = ("cluster", "feed", "process")


def counted(numbers: Mapping[str, int]) -> str:
    """``2 clusters, 1 feed, 0 processes``; of kinds that few have only those that there are."""
    shown = ((kind, numbers[kind]) for kind in KINDS if kind in _USUAL or numbers[kind])
    return ", ".join(count_of(number, kind, _PLURALS.get(kind)) for kind, number in shown)
