"""One run per partition by Dagster alone: ``python -m benchmarks.instances_stock N`` prints the seconds of N runs.

As the documentation tells: an hourly asset, a daemon with its run queue, two runs at a time, history in PostgreSQL.
The runs execute in one process each, which is faster than Dagster's default of one more process per step.
"""

# No postponed annotations here: Dagster reads that of `context`.
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import load_settings

HOURS = dg.HourlyPartitionsDefinition("2013-01-01-00:00", end_date="2014-01-01-00:00")
INSTANCE = """\
storage: {postgres: {postgres_url: {env: STOCK_DATABASE}}}
concurrency: {runs: {max_concurrent_runs: 2}}
telemetry: {enabled: false}
"""
GIVE_UP_SECONDS = 600


@dg.asset(partitions_def=HOURS)
def nothing() -> None: ...


@dg.sensor(target=nothing, default_status=dg.DefaultSensorStatus.RUNNING, minimum_interval_seconds=5)
def all_at_once(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    keys = HOURS.get_partition_keys()[: int(os.environ["STOCK_RUNS"])]
    return dg.SensorResult([dg.RunRequest(run_key=key, partition_key=key) for key in keys])


defs = dg.Definitions([nothing], sensors=[all_at_once], executor=dg.in_process_executor)


def main() -> None:
    number, home = int(sys.argv[1]), load_settings().home
    home.mkdir(parents=True)
    url = database_url(load_settings())
    (home / "dagster.yaml").write_text(INSTANCE)
    os.environ |= {"DAGSTER_HOME": str(home), "STOCK_DATABASE": url, "STOCK_RUNS": str(number)}
    with dg.DagsterInstance.get() as instance, _daemon(home):
        records = _finished(instance, number)
    assert all(record.dagster_run.is_success for record in records)
    seconds = max(record.end_time or 0 for record in records) - min(record.start_time or 0 for record in records)
    print(json.dumps(seconds))


def _finished(instance: dg.DagsterInstance, number: int) -> list[dg.RunRecord]:
    give_up = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        records = instance.get_run_records()
        if len(records) == number and all(record.dagster_run.is_finished for record in records):
            return list(records)
        time.sleep(0.5)  # seldom, to leave the processor to the runs
    raise SystemExit("the runs did not end")


@contextmanager
def _daemon(home: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "dagster._daemon", "run", "-m", "benchmarks.instances_stock"]
    with (home / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield
    finally:
        daemon.send_signal(signal.SIGINT)
        daemon.wait(60)


if __name__ == "__main__":
    main()
