"""Instances of what the user may not read are in no list."""

from __future__ import annotations

from collections.abc import Sequence

from falcon_assets.catalog.store import EntityStore
from falcon_assets.model.access import may_read
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.auditing import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.due import Asked
from falcon_assets.operations.instances.query import InstanceQuery


def readable(
    installation: Installation, store: EntityStore, query: InstanceQuery, asked: Sequence[Asked]
) -> list[Asked]:
    """What is asked for, without that whose entities the user of the operating system may not read.

    Raises:
        DeniedError: such an entity is named.
    """
    who = acting(installation.settings)
    refused = {one.key: entity for one in asked if not may_read((entity := _entity(store, one)).acl, who)}
    if query.name is not None:
        require_readable(installation, "instance list", {one.name: one for one in refused.values()}.values())
    return [one for one in asked if one.key not in refused]


def _entity(store: EntityStore, one: Asked) -> Feed | Process:
    name, cluster = one.key
    workload = None if one.kind == "feed" else store.workload(name, cluster)
    return workload.entity if workload else store.feed(name)
