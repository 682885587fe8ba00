"""Entities, their history and the ledger, at any time of 2013-01-01."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import StoresOf


@dataclass(frozen=True)
class LedgerWorld:
    """What tests of decisions share."""

    store: EntityStore
    settings: Settings
    instance: dg.DagsterInstance
    ledger: Ledger

    def stores(self, cluster: str) -> StoresOf:
        """Where feeds lie on that cluster."""
        return StoresOf(self.store.cluster(cluster), self.settings.home, self.settings.environ)

    def at(self, time: str) -> Settings:
        """The settings with a clock that stands still at that time of the day."""
        return replace(self.settings, clock=Clock(origin=parse_instant(f"2013-01-01T{time}Z")))


def said(reasons: Mapping[datetime, object] | Iterable[tuple[datetime, object]]) -> dict[datetime, str]:
    """Why instances wait, or wait no longer, in words."""
    return {nominal: str(reason) for nominal, reason in dict(reasons).items()}
