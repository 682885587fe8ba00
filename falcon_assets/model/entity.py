"""Kinds of entities, by the word for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

Entity: TypeAlias = Cluster | Feed | Process
Key: TypeAlias = tuple[str, str]
"""Kind and name of an entity."""
KINDS: Mapping[str, type[Cluster] | type[Feed] | type[Process]] = {
    "cluster": Cluster,
    "feed": Feed,
    "process": Process,
}
"""``kind`` of a document -> its model."""
