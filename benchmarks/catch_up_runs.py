"""The catch-up as Dagster runs: ``python -m benchmarks.catch_up_runs PARALLEL [HOURS]`` prints the seconds of steps.

With ``unseen`` behind it nobody captures what is read and written; with ``unrecorded`` nobody writes down either what
versions came from.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import dagster as dg

from benchmarks.flights import HOURS, PROCESS, hours
from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.compute.engines.computing import session
from falcon_assets.compute.spark.sessions import session_for, stop_sessions
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.folding.version_rows import VersionRows
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.runs import materializations
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.captured import Captured
from falcon_assets.planning.workloads import LONGEST_RUN
from falcon_assets.settings import load_settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.surface.dagster.code_location import definitions_of


def main() -> None:
    """Runs the instances in ranges; history goes to the instance's PostgreSQL."""
    settings = load_settings()
    if {"unseen", "unrecorded"} & set(sys.argv):
        session.capturing = lambda child: nullcontext(Captured)
    if "unrecorded" in sys.argv:
        materializations.FeedInstanceAvailable = _without_provenance  # type: ignore[assignment, misc]
        VersionRows.available = lambda self, *_: None  # type: ignore[method-assign]
    parallel, count = [*(int(one) for one in sys.argv[1:] if one.isdigit()), HOURS][:2]
    store = _with_parallel(load_entities(settings.entity_defs), parallel)
    job = definitions_of(store, settings).resolve_job_def("primary__hourly_delays_job")
    with open_instance(settings) as instance:
        started = time.perf_counter()
        cluster = store.cluster("primary")
        working = ClusterStore(cluster, settings.home, settings.environ).working
        session_for(cluster, working, settings.home).range(1).count()
        ready = time.perf_counter()
        _catch_up(job, instance, hours(count))
        open_ledger(settings, instance).catch_up()
        done = time.perf_counter()
    stop_sessions()
    print(json.dumps({"session": ready - started, "work": done - ready}))


def _without_provenance(*said: Any, **more: Any) -> FeedInstanceAvailable:
    """What is there, by whom it was made, and not from what and with what."""
    of_lineage = {"inputs", "path", "definition", "made_by", "environment", "undeclared", "columns"}
    return FeedInstanceAvailable(*said, **{name: one for name, one in more.items() if name not in of_lineage})


def _with_parallel(store: EntityStore, parallel: int) -> EntityStore:
    process = store.process(PROCESS).model_copy(update={"parallel": parallel})
    return replace(store, processes={PROCESS: process})


def _catch_up(job: dg.JobDefinition, instance: dg.DagsterInstance, nominals: list[datetime]) -> None:
    """In runs as a coordinator starts them."""
    keys = [format_instant(hour) for hour in nominals]
    for first in range(0, len(keys), LONGEST_RUN):
        part = keys[first : first + LONGEST_RUN]
        tags = {"dagster/asset_partition_range_start": part[0], "dagster/asset_partition_range_end": part[-1]}
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        assert job.execute_in_process(instance=instance, tags=tags, run_config=quiet).success


if __name__ == "__main__":
    main()
