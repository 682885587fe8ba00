"""Hooks of OpenLineage: a receiver of events of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.features.openlineage.receiver import LineageSending
    from falcon_assets.settings import Settings


@hookimpl
def event_receivers(store: EntityStore, settings: Settings) -> list[LineageSending]:
    from falcon_assets.features.openlineage.receiver import LineageSending

    return [LineageSending(store, settings)] if settings.openlineage_url is not None else []
