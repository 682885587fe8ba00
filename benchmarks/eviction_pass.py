"""A run of retention over the folders of FALCON_HOME: ``python -m benchmarks.eviction_pass`` prints its seconds.

Finding, planning, writing down, removing, and an event and a row for each instance; not Dagster's start, nor the
minute that readers are given before the space is freed.
"""

from __future__ import annotations

import json
import time

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.features.retention.sensors import retention_job
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.model.frequency import Frequency
from falcon_assets.settings import load_settings

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main() -> None:
    """Times the run, and the fold of what it recorded."""
    settings = load_settings()
    store = load_entities(settings.entity_defs)
    (cluster,), feeds = store.clusters.values(), list(store.feeds.values())
    job = retention_job(RetentionPass(store, cluster, feeds, settings, patience=0), Frequency.parse("hours(24)"))
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        started = time.perf_counter()
        assert job.execute_in_process(instance=instance, run_config=QUIET).success
        passed = time.perf_counter()
        ledger.catch_up()
        print(json.dumps({"pass": passed - started, "fold": time.perf_counter() - passed}))


if __name__ == "__main__":
    main()
