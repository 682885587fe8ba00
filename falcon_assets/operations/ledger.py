"""The ledger: how far it is, and making it anew."""

from __future__ import annotations

import time
from dataclasses import dataclass

from falcon_assets.ledger.overview import Overview, overview
from falcon_assets.operations.installation import Installation


@dataclass(frozen=True)
class LedgerStatus(Overview):
    """The ledger in numbers.

    Attributes:
        behind: How many events of Dagster's history are not folded in yet.
    """

    behind: int


@dataclass(frozen=True)
class Rebuilt:
    """How many facts the history had, and how long that took."""

    facts: int
    seconds: float


def ledger_status(installation: Installation) -> LedgerStatus:
    """What is in the ledger now; it is not brought up to date."""
    with installation.ledger.engine.connect() as connection:
        found = overview(connection)
    return LedgerStatus(**vars(found), behind=installation.ledger.behind(found.event_id))


def rebuild_ledger(installation: Installation) -> Rebuilt:
    """Makes it anew from all of Dagster's history; what commands said to entities is kept."""
    ledger, started = installation.ledger, time.monotonic()
    return Rebuilt(ledger.rebuild(), time.monotonic() - started)
