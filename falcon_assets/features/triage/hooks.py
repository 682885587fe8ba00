"""Hooks of triage: causes of timeouts, for their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.planning.workloads import Workload
    from falcon_assets.settings import Settings


@hookimpl
def timeout_causes(
    ledger: Ledger, store: EntityStore, settings: Settings, workload: Workload, nominals: Iterable[datetime]
) -> Mapping[datetime, str]:
    from falcon_assets.features.triage.operations import timeout_causes

    return timeout_causes(ledger, store, settings, workload, nominals)
