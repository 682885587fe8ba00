"""Kinds of entities, by the word for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

Entity: TypeAlias = Cluster | Feed | Process | Datasource
Key: TypeAlias = tuple[str, str]
"""Kind and name of an entity."""
KINDS: Mapping[str, type[Entity]] = {
    "cluster": Cluster,
    "datasource": Datasource,
    "feed": Feed,
    "process": Process,
}
"""``kind`` of a document -> its model."""
