"""Reports among a million of them: ``python -m benchmarks.completeness_events`` prints the seconds of each."""

from __future__ import annotations

import json
import time
from datetime import timedelta

from sqlalchemy import text

from benchmarks.completeness import PARTS, SLOTS
from falcon_assets.catalog.store import load_entities
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.features.completeness.reporting import record_parts
from falcon_assets.features.completeness.rules import is_admitted
from falcon_assets.features.completeness.store import known_shares
from falcon_assets.features.rollups.passes import RollupPass
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.settings import load_settings

ROUNDS = 20
FIRST = parse_instant("2013-01-01T00:00Z")
_STOCK = """
INSERT INTO falcon.reported_parts (cluster, feed, instance, source, part, records, expected, reported_at)
SELECT 'primary', 'level-0', slot, 'ingest', part::text, 100, 100, slot
FROM generate_series(CAST(:first AS timestamptz), CAST(:last AS timestamptz), '5 minutes') AS slot,
     generate_series(1, :parts) AS part
"""
_LANDED = """
INSERT INTO falcon.feed_instances (cluster, feed, instance, state, version, landed_at, seen_at, changes, event_id,
                                   version_event, late)
SELECT 'primary', 'level-0', slot, 'AVAILABLE', 'v', slot, slot, 0, 1, 1, false
FROM generate_series(CAST(:first AS timestamptz), CAST(:last AS timestamptz), '5 minutes') AS slot
"""


def main() -> None:
    """The first thousand slots are there; of those after them all parts but the last are."""
    settings = load_settings()
    store = load_entities(settings.entity_defs)
    feed, step = store.feeds["level-0"], timedelta(minutes=5)
    rule = feed.completeness
    assert rule
    seconds: dict[str, list[float]] = {"report": [], "rollups": [], "quiet": []}
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        rollups = RollupPass(store, "primary", settings)
        with ledger.engine.begin() as connection:
            span = {"first": FIRST, "last": FIRST + (SLOTS - 1) * step}
            connection.execute(text(_STOCK), span | {"parts": PARTS})
            connection.execute(text(_LANDED), span)
            connection.execute(
                text(_STOCK),
                {"first": FIRST + SLOTS * step, "last": FIRST + (SLOTS + ROUNDS) * step, "parts": PARTS - 1},
            )
        with ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
        rollups.record(ledger)
        for number in range(ROUNDS + 1):
            slot = FIRST + (SLOTS + number) * step
            record_parts(ledger, feed, "primary", slot, [ReportedPart("ingest", str(PARTS), 100, 100)], slot)
            began = time.perf_counter()
            ledger.catch_up()
            with ledger.engine.connect() as connection:
                share = known_shares(connection, [("primary", "level-0", slot)])["primary", "level-0", slot]
            assert is_admitted(rule, share, slot, slot), share
            reported = time.perf_counter() - began
            landed = FeedInstanceAvailable("primary", "level-0", slot, f"v{number}", slot)
            key = names.asset_key("primary", "level-0")
            instance.report_runless_asset_event(materialization(key, format_instant(slot), landed))
            ledger.catch_up()
            began = time.perf_counter()
            rollups.record(ledger)
            recorded = time.perf_counter() - began
            began = time.perf_counter()
            rollups.record(ledger)
            if number:  # the first one compiles statements
                seconds["report"].append(reported)
                seconds["rollups"].append(recorded)
                seconds["quiet"].append(time.perf_counter() - began)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
