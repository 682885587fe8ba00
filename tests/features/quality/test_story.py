"""An hour is found anomalous, then invalid: what follows for windows and consumers, until it is corrected."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml, process_yaml
from tests.features.landing.snapshot_tables import run, said
from tests.features.quality.shop import anew
from tests.operations.opening import OpenAt

HOURS = "clusters: [{name: primary, validity: {start: 2013-01-01T14:00Z, end: 2013-01-01T16:00Z}}]"
FEEDS = f"""
---
kind: feed
name: clicks
frequency: minutes(15)
late_arrival: {{cut_off: hours(20)}}
locations: {{data: "/clicks/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}-${{MINUTE}}"}}
{HOURS}
---
kind: feed
name: clicks-half-hourly
frequency: minutes(30)
rollup: {{of: [clicks]}}
{HOURS}
---
kind: feed
name: clicks-hourly
frequency: hours(1)
late_arrival: {{cut_off: hours(20)}}
schedule: true
rollup: {{of: [clicks]}}
checks:
  - {{name: usual, rule: row_count, max: 8, severity: warn}}
  - {{name: each_once, rule: unique, columns: [id], suite: full}}
{HOURS}
---
kind: feed
name: clicks-daily
frequency: days(1)
rollup: {{of: [clicks-hourly]}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: feed
name: features
frequency: hours(1)
locations: {{data: "/features/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}"}}
{HOURS}
---
kind: feed
name: sums
frequency: hours(1)
locations: {{data: "/sums/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}"}}
{HOURS}
"""
ON = {"name": "primary", "validity": {"start": "2013-01-01T14:00Z", "end": "2013-01-01T16:00Z"}}
READ = {"name": "rows", "feed": "clicks-hourly", "start": "now(0,0)", "end": "now(0,0)"}
LATE = {"policy": "backoff", "delay": "minutes(10)", "inputs": [{"input": "rows"}]}


def processes() -> str:
    ignoring = {**READ, "quality": "ignore"}
    return process_yaml("requiring", None, "features", ON, inputs=[READ], schedule=True) + process_yaml(
        "ignoring", None, "sums", ON, inputs=[ignoring], late_process=LATE, schedule=True
    )


def land(installation: Installation, hour: int, quarter: int, *ids: int) -> None:
    folder = installation.settings.home / f"data/primary/clicks/20130101-{hour}-{15 * quarter:02}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), folder / "part.parquet")


def rows(installation: Installation, feed: str, hour: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(
        installation.settings.home / f"data/primary/{feed}/20130101-{hour}"
    ).to_pylist()
    return found


def at(hour: int, quarter: int = 0) -> datetime:
    return parse_instant("2013-01-01T00:00Z") + timedelta(hours=hour, minutes=15 * quarter)


def shown(feed: str) -> dict[str, str]:
    """The quality of each instance that has one, as a person reads it."""
    listed = json.loads(said("instance", "list", feed, "--type", "feed", "--json"))["items"]
    return {one["instance"][11:16]: one["feed"]["quality"]["text"] for one in listed if "quality" in one["feed"]}


BY_HAND = """
WITH RECURSIVE bad AS (
    SELECT v.id, v.feed FROM falcon.quality_verdicts q JOIN falcon.data_versions v
        ON (v.cluster, v.feed, v.instance, v.version) = (q.cluster, q.feed, q.instance, q.version)
    WHERE q.verdict = 'INVALID' AND q.accepted_by IS NULL
    UNION
    SELECT v.id, v.feed FROM bad JOIN falcon.version_edges e ON e.input = bad.id
        JOIN falcon.data_versions v ON v.id = e.output
)
SELECT v.feed, to_char(v.instance AT TIME ZONE 'UTC', 'HH24:MI') FROM bad JOIN falcon.data_versions v ON v.id = bad.id
WHERE v.status = 'AVAILABLE' ORDER BY 1, 2
"""


VERDICTS = """
SELECT to_char(instance AT TIME ZONE 'UTC', 'HH24:MI'), verdict, suite FROM falcon.quality_verdicts ORDER BY 1
"""


def asked(installation: Installation, sql: str) -> list[tuple[str, ...]]:
    """What SQL on the ledger finds, without the product's code."""
    connection = installation.ledger.engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return [tuple(map(str, row)) for row in cursor.fetchall()]
    finally:
        connection.close()


def test_an_invalid_hour_holds_back_who_requires_it_until_it_is_corrected(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    entities = cluster_yaml() + FEEDS + processes()
    write_entities({"all.yaml": entities, "a.sql": "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM rows"})
    with open_at("2013-01-01T16:10Z") as installation:
        anew(installation)
        for quarter in range(4):
            land(installation, 14, quarter, 2 * quarter, 2 * quarter + 1)
            land(installation, 15, quarter, *((2 * quarter, 2 * quarter + 1) if quarter != 1 else (7, 7, 7)))
        found = run(installation)
        assert (found.trouble, found.left_out) == ((), {})
        assert rows(installation, "features", 14) == rows(installation, "sums", 14) == [{"n": 8, "ids": 8}]
        assert rows(installation, "sums", 15) == [{"n": 9, "ids": 6}]
        assert not (installation.settings.home / "data/primary/features/20130101-15").exists()
        invalid = "invalid clicks-hourly 2013-01-01T15:00Z: rule each_once"
        assert asked(installation, VERDICTS) == [("14:00", "VALID", "quick"), ("15:00", "INVALID", "full")]
        assert shown("clicks-hourly") == {"14:00": "valid", "15:00": "invalid"}
        assert shown("clicks") == {f"15:{15 * quarter:02}": f"part of {invalid}" for quarter in range(4)}
        assert shown("clicks-half-hourly") == {
            "15:00": f"contains a part of {invalid}",
            "15:30": f"contains a part of {invalid}",
        }
        assert shown("clicks-daily") == {"00:00": f"contains {invalid}"}
        assert shown("sums") == {"15:00": f"made from {invalid}"}
        assert shown("features") == {}
        assert asked(installation, BY_HAND) == [
            ("clicks-daily", "00:00"),
            ("clicks-hourly", "15:00"),
            ("sums", "15:00"),
        ]
        cause = json.loads(said("instance", "triage", "requiring", "2013-01-01T15:00Z", "--json"))
        assert (cause["reason"]["kind"], cause["reason"]["rule"]) == ("input_invalid", "each_once")
        assert cause["fix"].startswith("falcon quality accept clicks-hourly 2013-01-01T15:00Z --cluster primary")
        explained = json.loads(said("explain", "requiring", "2013-01-01T15:00Z", "--json"))
        assert explained["inputs"][0]["waits_for"][0]["kind"] == "input_invalid"
    with open_at("2013-01-01T16:40Z") as installation:
        land(installation, 15, 1, 2, 3)
        found = run(installation)
        assert (found.trouble, found.left_out) == ((), {})
        assert rows(installation, "features", 15) == rows(installation, "sums", 15) == [{"n": 8, "ids": 8}]
        assert shown("clicks-hourly") == {"14:00": "valid", "15:00": "valid"}
        assert [shown(one) for one in ("clicks", "clicks-half-hourly", "clicks-daily", "sums", "features")] == [{}] * 5
        assert asked(installation, BY_HAND) == []
