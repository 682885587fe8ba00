"""Real flights, hour by hour, and one hourly ``spark-sql`` process over them.

``python -m benchmarks.flights [HOURS]`` writes the definitions to FALCON_ENTITY_DEFS and lands the flights in
FALCON_HOME.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

from examples.flights.landing import land
from falcon_assets.catalog.store import load_entities
from falcon_assets.model.instant import parse_instant
from falcon_assets.settings import load_settings

HOURS = 200
FIRST = parse_instant("2013-01-01T00:00Z")
SCHEMA = (
    "flight int, carrier string, tailnum string, origin string, dest string, sched_dep_time int, "
    "dep_delay double, arr_delay double, distance int, time_hour timestamp"
)
THRESHOLD = "15"
QUERY = """\
SELECT
  :nominal_time                                     AS hour,
  origin,
  carrier,
  count(*)                                          AS flights,
  count_if(dep_delay > CAST(:threshold AS DOUBLE))  AS delayed,
  round(sum(dep_delay), 1)                          AS delay_minutes
FROM flights
GROUP BY origin, carrier
"""
CONFS = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
PROCESS = "hourly-delays"
_DEFINITIONS = f"""\
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "local[2]"}}}}
properties: {{{", ".join(f'{key}: "{value}"' for key, value in CONFS.items())}}}
---
kind: feed
name: raw-flights
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "{SCHEMA}"
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
---
kind: feed
name: delays
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/delays/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
---
kind: process
name: {PROCESS}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
parallel: 2
frequency: hours(1)
inputs: [{{name: flights, feed: raw-flights, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: delays, feed: delays, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: delays.sql}}
properties: {{threshold: "{THRESHOLD}"}}
"""


def hours(count: int = HOURS) -> list[datetime]:
    """The nominal times."""
    return [FIRST + timedelta(hours=hour) for hour in range(count)]


def main() -> None:
    """Writes and lands."""
    settings = load_settings()
    settings.entity_defs.mkdir()
    (settings.entity_defs / "flights.yaml").write_text(_DEFINITIONS)
    (settings.entity_defs / "delays.sql").write_text(QUERY)
    store = load_entities(settings.entity_defs)
    for _ in land(store, settings, FIRST, hours(*map(int, sys.argv[1:]))[-1]):
        pass


if __name__ == "__main__":
    main()
