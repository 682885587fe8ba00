"""Hooks of lineage: versions protected because a critical version was made from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.planning.reasons_to_keep import ProtectedVersions


@hookimpl
def protected_versions(
    connection: Connection, store: EntityStore, cluster: str, feeds: Collection[str]
) -> Mapping[str, ProtectedVersions]:
    from falcon_assets.features.lineage.stored_lifecycle import protected_on

    return protected_on(connection, cluster, feeds, store.critical)
