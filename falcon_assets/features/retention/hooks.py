"""Hooks of retention: a schedule and a job for each cluster, and the reasons of evictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.planning.reasons import Reason
    from falcon_assets.settings import Settings


@hookimpl
def eviction_reasons(
    connection: Connection, keys: Sequence[tuple[str, str, datetime]]
) -> Mapping[tuple[str, str, datetime], Reason]:
    from falcon_assets.features.retention.store import decisions

    return decisions(connection, keys)


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    from falcon_assets.features.retention.sensors import retention_definitions

    found = retention_definitions(store, settings)
    return dg.Definitions(jobs=found.jobs, schedules=found.schedules, sensors=found.sensors)
