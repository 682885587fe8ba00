"""Partitions collected: ``python -m benchmarks.tables_collected ENDPOINT FOLDER COUNT`` prints the seconds.

Finding all of them and their versions is what a look at a table costs; the first time Dagster writes an event for each.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import yaml
from pymetastore.hive_metastore import ttypes

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.landing.collector import Collector
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.settings import load_settings
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.tables.hive_partitions import HiveCatalog

LOOKS = 3
START = parse_instant("2013-01-01T00:00Z")


def main(endpoint: str, folder: str, count: int) -> None:
    _land(endpoint, folder, count)
    end = format_instant(START + timedelta(hours=count))
    interfaces = {
        "write": {"endpoint": "data"},
        "execute": {"endpoint": "local[2]"},
        "registry": {"endpoint": endpoint},
    }
    entities = [
        {"kind": "cluster", "name": "primary", "interfaces": interfaces},
        {
            "kind": "feed",
            "name": "landed",
            "frequency": "hours(1)",
            "schedule": True,
            "table": {"uri": "catalog:default:landed#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"},
            "clusters": [{"name": "primary", "validity": {"start": format_instant(START), "end": end}}],
        },
    ]
    settings = load_settings()
    settings.entity_defs.mkdir(parents=True)
    (settings.entity_defs / "all.yaml").write_text(yaml.safe_dump_all(entities))
    store = load_entities(settings.entity_defs)
    cluster, feed = store.cluster("primary"), store.feed("landed")
    found: dict[str, list[float]] = {"first": [], "seen": []}
    for _ in range(LOOKS):
        storage = kind_of(store_of(feed, cluster, settings.home, settings.environ))
        started = time.perf_counter()
        there = storage.asked_together(storage.instances(feed, [(START, START + timedelta(hours=count))]))
        versions = [storage.version(path, None) for _, path in there]
        found["seen"].append(time.perf_counter() - started)
        assert len(versions) == count, len(versions)
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        started = time.perf_counter()
        done = Collector(store, cluster, settings).collect(ledger, budget_seconds=3600)
        found["first"].append(time.perf_counter() - started)
        assert (done.recorded, done.left, done.problems) == (count, 0, {}), done
    print(json.dumps(found))


def _land(endpoint: str, folder: str, count: int) -> None:
    """Partitions as another writer makes them, in batches; of one folder, whose files nobody reads here."""
    import pyarrow as pa  # noqa: PLC0415 - takes a while

    place = Path(folder, "landed")
    place.mkdir()
    catalog = HiveCatalog("primary", endpoint)
    catalog.create("default", "landed", pa.schema([("n", pa.int64())]), ("ds",), "parquet", f"file://{place}")
    with catalog._client("land") as client:
        storage = client.get_table("default", "landed").sd
        names = [(START + timedelta(hours=hour)).strftime("%Y-%m-%d-%H") for hour in range(count)]
        for begin in range(0, count, 500):
            client.add_partitions(
                [
                    ttypes.Partition(values=[name], dbName="default", tableName="landed", sd=storage, parameters={})
                    for name in names[begin : begin + 500]
                ]
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
