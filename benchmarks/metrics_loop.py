"""Scrapes of metrics: ``python -m benchmarks.metrics_loop`` prints their seconds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import text

from benchmarks.instance_lists_loop import FALCON, fill_ledger
from falcon_assets.features.metrics.exposition import ShowMetrics
from falcon_assets.operations.installation import open_installation

ROUNDS = 5
COMMAND = [sys.executable, *FALCON, "metrics"]
COUNTED = """\
INSERT INTO falcon.totals
SELECT 'process', process, cluster, state, count(*) FROM falcon.process_instances GROUP BY process, cluster, state
"""
"""As the fold counts what it writes."""
BREACHES = """\
INSERT INTO falcon.sla_breaches (kind, entity, cluster, level, instance, deadline, recorded_at, state)
SELECT 'process', process, cluster, level, nominal, nominal, nominal, 'OPEN'
FROM falcon.process_instances, (VALUES ('should_start_in'), ('should_end_in')) AS levels (level)
WHERE process = 'work-00'
"""
UNSETTLED = "DELETE FROM falcon.process_instances WHERE process = 'work-00'"
FORGOTTEN = "DELETE FROM falcon.totals WHERE entity = 'work-00'"
FROM_START = "UPDATE falcon.progress SET first_open = '2013-01-01T00:00Z' WHERE process = 'work-00'"


def main() -> None:
    """Each scrape is preceded by one that is not measured."""
    with open_installation() as installation:
        fill_ledger(installation)
        engine = installation.ledger.engine

        def change(*statements: str) -> None:
            with engine.begin() as connection:
                for statement in statements:
                    connection.execute(text(statement))
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE falcon.process_instances, falcon.sla_breaches, falcon.totals"))

        scrape = partial(ShowMetrics().run, installation)
        change(COUNTED)
        scrape()
        seconds = {"all": _timed(scrape)}
        seconds["whole"] = _timed(partial(subprocess.run, COMMAND, check=True, stdout=subprocess.DEVNULL))
        change(BREACHES)
        seconds["breaches"] = _timed(scrape)
        change(UNSETTLED, FORGOTTEN, FROM_START)
        seconds["waiting"] = _timed(scrape)
    print(json.dumps(seconds))


def _timed(work: Callable[[], Any]) -> list[float]:
    work()
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
