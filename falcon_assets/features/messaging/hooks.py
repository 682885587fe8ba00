"""Hooks of messaging: the broker of a cluster receives all events of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.errors import Problem
    from falcon_assets.features.messaging.publishing import ClusterPublishing
    from falcon_assets.settings import Settings


@hookimpl
def event_receivers(store: EntityStore, settings: Settings) -> list[ClusterPublishing]:
    from falcon_assets.features.messaging.publishing import ClusterPublishing

    declared = ((one, one.interfaces.messaging) for one in store.clusters.values())
    return [ClusterPublishing(one, messaging, settings.environ) for one, messaging in declared if messaging]


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if programs or not any(one.entity.interfaces.messaging for one in definitions.clusters.values()):
        return []
    from falcon_assets.features.messaging.publishing import check_messaging

    return list(check_messaging(definitions))
