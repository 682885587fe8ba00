"""Ticks that evaluate SLAs: ``python -m benchmarks.sla_ticks`` prints their seconds."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

from sqlalchemy import func, select, text

from benchmarks.sla import FEEDS, OPEN_HOURS, PROCESSES
from falcon_assets.catalog.store import load_entities
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.features.sla.store import BreachState
from falcon_assets.history.database import upsert
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import FOLD, SLA_BREACHES
from falcon_assets.model.instant import parse_instant
from falcon_assets.settings import load_settings

ROUNDS, HISTORY_HOURS = 5, 4_000
FIRST, HOUR = parse_instant("2014-01-01T00:00Z"), timedelta(hours=1)
_LAND = """
INSERT INTO falcon.feed_instances (cluster, feed, instance, state, version, landed_at, seen_at, changes, event_id,
                                   version_event, late)
SELECT 'primary', 'feed-' || feed, hour, 'AVAILABLE', 'v', hour, hour, 0, :event, :event, false
FROM generate_series(0, :feeds - 1) AS feed,
     generate_series(CAST(:first AS timestamptz), CAST(:last AS timestamptz), '1 hour') AS hour
"""


class Ticks:
    """The evaluation, and what happens between the ticks."""

    def __init__(self, ledger: Ledger) -> None:
        self.now, self.event, self.ledger = FIRST + timedelta(minutes=1), 0, ledger
        self.store = load_entities(load_settings().entity_defs)
        self.evaluation = SlaEvaluation(self.store, "primary", lambda: self.now)

    def evaluate(self) -> float:
        """Seconds of a tick."""
        started = time.perf_counter()
        self.evaluation.evaluate(self.ledger)
        return time.perf_counter() - started

    def land(self, first: datetime, last: datetime) -> None:
        """These hours of all feeds come, each at its nominal time, and the ledger is told now."""
        self.event += 1
        with self.ledger.engine.begin() as connection:
            values = {"event": self.event, "feeds": FEEDS, "first": first, "last": last}
            connection.execute(text(_LAND), values)
            upsert(connection, FOLD, [{"only": True, "event_id": self.event}])

    def busy(self) -> list[float]:
        """An hour becomes due, and the oldest one that is open comes."""
        seconds = []
        for _ in range(ROUNDS):
            self.now += HOUR
            oldest = FIRST + (self.event - 1) * HOUR
            self.land(oldest, oldest)
            seconds.append(self.evaluate())
        return seconds

    def open_instances(self) -> int:
        table = SLA_BREACHES.c
        instances = select(table.kind, table.entity, table.instance).where(table.state == BreachState.OPEN.value)
        with self.ledger.engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(instances.distinct().subquery())).scalar_one()


def main() -> None:
    settings = load_settings()
    with open_instance(settings) as instance:
        ticks = Ticks(open_ledger(settings, instance))
        ticks.land(FIRST - 10 * HOUR, FIRST - HOUR)
        ticks.evaluate()
        ticks.now += (OPEN_HOURS + 2) * HOUR
        measured = {"catching up": [ticks.evaluate() for _ in range(ROUNDS)]}
        while not ticks.evaluation.evaluate(ticks.ledger).is_complete:
            pass
        assert ticks.open_instances() >= (FEEDS + PROCESSES) * OPEN_HOURS
        _vacuum(ticks)
        measured["quiet"] = [ticks.evaluate() for _ in range(ROUNDS)]
        measured["busy"] = ticks.busy()
        ticks.land(FIRST - HISTORY_HOURS * HOUR, FIRST - 11 * HOUR)
        ticks.evaluate()  # folds the history: it is not part of any tick
        _vacuum(ticks)
        measured["quiet, history"] = [ticks.evaluate() for _ in range(ROUNDS)]
        ticks.event -= 1
        measured["busy, history"] = ticks.busy()
        ticks.evaluation = SlaEvaluation(ticks.store, "primary", lambda: ticks.now)
        measured["review"] = [ticks.evaluate()]
        assert ticks.open_instances() >= (FEEDS + PROCESSES) * OPEN_HOURS
    print(json.dumps(measured))


def _vacuum(ticks: Ticks) -> None:
    """As PostgreSQL does by itself after a minute."""
    with ticks.ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in ("feed_instances", "process_instances", "sla_breaches"):
            connection.execute(text(f"VACUUM ANALYZE falcon.{table}"))


if __name__ == "__main__":
    main()
