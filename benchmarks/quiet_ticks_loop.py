"""Ticks over a quiet location: ``python -m benchmarks.quiet_ticks_loop HOURS`` prints the seconds of each.

Every hour of every feed is there and processed: folders with a file and a flag for what landed, and in the database
the rows that the ledger has for that, the events and runs that it comes from, written by one statement per table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import dagster as dg
from sqlalchemy import Engine, text

from benchmarks.hourly_graph import CLUSTER, FIRST, hours, land
from falcon_assets.catalog.store import load_entities
from falcon_assets.features.landing.collector import Collector
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.settings import Settings, load_settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.instance_files import list_instance

TICKS = 5
_EACH = "FROM generate_series(0, :processes - 1) n, generate_series(CAST(:first AS timestamptz), :last, '1 hour') t"
_KEY = "to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI\"Z\"')"
_HISTORY = {
    "events": "INSERT INTO event_logs (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition) "
    "SELECT CASE WHEN kind = 'landed' THEN '' ELSE 'run-' || n || '-' || CAST(t AS date) END, "
    f"replace(replace(:event, 'landed-0', kind || '-' || n), :key, {_KEY}), type, t, kind || '-' || n, "
    f"""'["{CLUSTER}", "' || kind || '-' || n || '"]', {_KEY} {_EACH}, """
    "(VALUES ('landed', 'ASSET_MATERIALIZATION'), ('made', 'ASSET_OBSERVATION'), ('made', 'ASSET_MATERIALIZATION')) "
    "AS events (kind, type) ORDER BY t",
    "runs": "INSERT INTO runs (run_id, pipeline_name, status, run_body) "
    "SELECT DISTINCT 'run-' || n || '-' || CAST(t AS date), 'job-' || n, 'SUCCESS', repeat(md5(n::text), 30) " + _EACH,
    "feed instances": "INSERT INTO falcon.feed_instances "
    "(cluster, feed, instance, state, version, bytes, files, signature, landed_at, seen_at, changes, event_id, "
    "version_event, late) "
    f"SELECT '{CLUSTER}', kind || '-' || n, t, 'AVAILABLE', md5('x'), 1, 1, 'x', t, t, 0, 1, 1, false {_EACH}, "
    "(VALUES ('landed'), ('made')) AS feeds (kind)",
    "process instances": "INSERT INTO falcon.process_instances "
    "(process, cluster, nominal, state, reason, attempt, failures, run_id, started, ended, event_id) "
    f"SELECT 'process-' || n, '{CLUSTER}', t, 'SUCCEEDED', '', 1, 0, 'run-' || n || '-' || CAST(t AS date), t, t, 1 "
    + _EACH,
    "consumed": "INSERT INTO falcon.consumed "
    "(process, cluster, nominal, input, feed, instance, version, read_event, stale, input_cluster) "
    f"SELECT 'process-' || n, '{CLUSTER}', t, 'landed', 'landed-' || n, t, md5('x'), 1, false, '{CLUSTER}' {_EACH}",
    "signatures": "UPDATE falcon.feed_instances SET signature = known.signature "
    "FROM (SELECT * FROM unnest(CAST(:feeds AS text[]), CAST(:signatures AS text[])) AS known (feed, signature)) known "
    "WHERE feed_instances.feed = known.feed",
    "cursor": "INSERT INTO falcon.fold SELECT true, max(id) FROM event_logs",
}


def main() -> None:
    settings = load_settings()
    store = load_entities(settings.entity_defs)
    cluster, workloads = store.cluster(CLUSTER), store.workloads
    instants = hours(int(sys.argv[1]))
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        signatures = _land_files(settings, cluster, len(workloads), instants)
        _seed(ledger.engine, instance, instants, signatures)
        collector, coordinator = Collector(store, cluster, settings), Coordinator(store, settings, workloads)

        def collect() -> None:
            found = collector.collect(ledger, budget_seconds=600)
            assert (found.recorded, found.left, found.problems) == (0, 0, {}), found

        def decide() -> None:
            outlook = coordinator.decide(ledger)
            assert (outlook.runs, outlook.problems) == ((), {})

        ticks = {"collector": collect, "coordinator": decide}
        for tick in ticks.values():
            tick()  # the first look goes through all of history, once
        print(json.dumps({name: [_seconds(tick) for _ in range(TICKS)] for name, tick in ticks.items()}))


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _land_files(settings: Settings, cluster: Cluster, feeds: int, instants: list[datetime]) -> dict[str, str]:
    """Feed -> the signature of each of its instances: all have the same file, by links."""
    store = ClusterStore(cluster, settings.home, settings.environ)
    folders = [instant.strftime("%Y-%m-%d/%H") for instant in instants]
    found = {}
    for feed in (f"landed-{number}" for number in range(feeds)):
        root = Path(store.path(f"/{feed}"))
        for folder in folders:
            (root / folder).mkdir(parents=True)
            for name in ("rows.json", "_SUCCESS"):
                if folder == folders[0]:
                    (root / folder / name).write_text(f"{feed}\n")
                else:
                    os.link(root / folders[0] / name, root / folder / name)
        found[feed] = list_instance(store, f"/{feed}/{folders[0]}", "_SUCCESS").signature
    return found


def _seed(engine: Engine, instance: dg.DagsterInstance, instants: list[datetime], signatures: dict[str, str]) -> None:
    """History as it is after all of that was collected and processed."""
    land(instance, ["landed-0"], instants[:1])
    parameters = {
        "processes": len(signatures),
        "first": instants[0],
        "last": instants[-1],
        "key": format_instant(FIRST),
        "feeds": list(signatures),
        "signatures": list(signatures.values()),
    }
    with engine.begin() as connection:
        parameters["event"] = connection.execute(text("SELECT event FROM event_logs")).scalar_one()
        for statement in map(text, _HISTORY.values()):
            own = {name: parameters[name] for name in statement.compile().params}
            connection.execute(statement, own)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))  # as autovacuum does it in the course of time


if __name__ == "__main__":
    main()
