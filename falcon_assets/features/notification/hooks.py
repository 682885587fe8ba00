"""Hooks of notification: the receivers that entities declare receive their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.features.notification.delivery import NotificationSending
    from falcon_assets.settings import Settings


@hookimpl
def event_receivers(store: EntityStore, settings: Settings) -> list[NotificationSending]:
    from falcon_assets.features.notification.delivery import NotificationSending

    return [NotificationSending(store, settings)]
