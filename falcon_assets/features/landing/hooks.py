"""Hooks of landing: reasons for missing data from outside, as remembered by collectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.planning.reasons import Reason


@hookimpl
def missing_reasons(
    connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]]
) -> Mapping[tuple[str, str, datetime], Reason]:
    from falcon_assets.features.landing.store import seen_incomplete
    from falcon_assets.planning.reasons import NotComplete

    return {key: NotComplete(store.feed(key[0]).availability_flag) for key in seen_incomplete(connection, keys)}
