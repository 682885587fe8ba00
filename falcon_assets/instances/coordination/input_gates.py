"""Instances that inputs which require valid data must not read, as features know them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.queries import Name
from falcon_assets.hooks import hooks, merged
from falcon_assets.planning.reasons import Reason

Closed: TypeAlias = Mapping[Name, Mapping[datetime, Reason]]
"""(Cluster, feed) -> its closed instances, and why."""
InputGates: TypeAlias = Callable[[Collection[Name]], Closed]


def input_gates(connection: Connection, store: EntityStore, now: datetime) -> InputGates:
    """Asks nobody where no feed has checks that can make an instance invalid."""

    def closed(feeds: Collection[Name]) -> Closed:
        if not feeds or not store.relations.checked:
            return {}
        return merged(hooks().input_gates(connection=connection, store=store, feeds=feeds, now=now))

    return closed


def all_open(feeds: Collection[Name]) -> Closed:
    return {}
