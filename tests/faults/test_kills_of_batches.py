"""A run that computes many instances at once is killed within: nothing is lost, and nothing is published twice."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from falcon_assets.operations.installation import Installation, open_installation
from tests.builders import cluster_yaml, feed_yaml, land_rows, process_yaml
from tests.faults.test_kills_while_checking import (
    HELD,
    MEASURES,
    WAITING,
    WRITES,
    Database,
    database_of,
    kill,
)
from tests.faults.test_kills_while_holding import program
from tests.features.landing.snapshot_tables import run
from tests.features.quality.shop import anew
from tests.waiting import wait_until

__all__ = ["database_of"]
pytestmark = pytest.mark.soak
HOURS, SLOW, PATIENCE = 6, 4, 900.0
"""The last but one instance is the one that waits at the gate, where one does."""
WAITS = f"""
import os, sqlalchemy

def at_the_gate():
    engine = sqlalchemy.create_engine(os.environ["FALCON_DATABASE_URL"], poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock_shared({MEASURES})"))

def passes(data, instance):
    if instance.nominal_time.hour == {SLOW}:
        at_the_gate()
    return True
"""
FUNCTION = """
from waits_within_batches import at_the_gate

def run(spark, inputs, instances):
    if len(instances) > 1 and "computing" in instances[0].properties["where"]:
        at_the_gate()
    return inputs["rows"].groupBy("falcon_instance").sum("n").toDF("falcon_instance", "total")
"""
DATA = "/%s/${YEAR}${MONTH}${DAY}-${HOUR}"
DAY = {"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": f"2013-01-01T{HOURS:02}:00Z"}}
CHECKS = {"on_error": "hold", "checks": [{"rule": "python", "function": "waits_within_batches:passes"}]}
HOW = {"parallel": HOURS, "schedule": True, "workflow": {"engine": "pyspark", "path": "a.py", "batch": True}}
WRITTEN = "NEW.dagster_event_type = 'ASSET_MATERIALIZATION' AND NEW.asset_key LIKE '%sums%'"
MATERIALIZED = """
SELECT partition, count(*) FROM event_logs
WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND asset_key LIKE '%%sums%%' GROUP BY partition ORDER BY 1
"""
STATES = "SELECT state, count(*) FROM falcon.process_instances GROUP BY state"


def _definitions(where: str) -> dict[str, str]:
    checks = CHECKS if where == "checking" else {}
    declared = cluster_yaml() + feed_yaml("raw", DAY, format="json", schema="n int", locations={"data": DATA % "raw"})
    declared += feed_yaml(
        "sums", DAY, format="parquet", schema="total bigint", locations={"data": DATA % "sums"}, **checks
    )
    return {
        "all.yaml": declared + process_yaml("add", "raw", "sums", DAY, **HOW, properties={"where": where}),
        "a.py": FUNCTION,
    }


@pytest.fixture(params=["computing", "checking", "recording"])
def where(request: pytest.FixtureRequest) -> str:
    """When it is killed: nothing is published; all but one are; all are, and nobody has written it down."""
    found: str = request.param
    return found


@pytest.fixture
def installation(
    settings: Any, write_entities: Callable[[dict[str, str]], Path], tmp_path: Path, where: str
) -> Iterator[Installation]:
    (tmp_path / "waits_within_batches.py").write_text(WAITS)
    write_entities(_definitions(where))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", f"2013-01-01T{HOURS:02}:00Z")
        patch.setenv("PYTHONPATH", str(tmp_path))
        patch.syspath_prepend(tmp_path)
        with open_installation() as opened:
            yield anew(opened)


def published(installation: Installation) -> dict[int, list[int]]:
    folder = installation.settings.home / "data/primary/sums"
    return {int(one.name[-2:]): pq.read_table(one)["total"].to_pylist() for one in sorted(folder.glob("20130101-*"))}


def test_a_batch_that_is_killed(installation: Installation, database_of: Database, tmp_path: Path, where: str) -> None:
    for hour in range(HOURS):
        land_rows(installation.settings.home / f"data/primary/raw/20130101-{hour:02}", {"n": hour}, {"n": 10})
    there = {"computing": [0], "checking": [one for one in range(HOURS) if one != SLOW], "recording": [*range(HOURS)]}[
        where
    ]
    log, gate = tmp_path / "log", WRITES if where == "recording" else MEASURES
    operation = ("INSERT ON event_logs", WRITTEN if where == "recording" else "FALSE")
    with database_of.gate(*operation), database_of.shut(gate):
        with program(log, "run") as child:

            def waiting() -> bool:
                assert child.poll() is None, log.read_text()
                is_reached = where == "computing" or len(published(installation)) >= len(there)
                return is_reached and bool(database_of.ask(WAITING))

            wait_until(waiting, PATIENCE, log.read_text)
            waits = database_of.ask(WAITING)
            assert kill(child) == -signal.SIGKILL
        for one in waits:
            database_of.ask("SELECT pg_terminate_backend(%s)", one)
    wait_until(lambda: database_of.ask(HELD) == [0], what="the locks of the program that was killed")
    before = published(installation)
    assert [*before] == there or where == "computing"
    recorded = dict(database_of.ask(MATERIALIZED))
    assert where != "recording" or recorded == {}
    assert len(recorded) < HOURS
    assert run(installation).trouble == ()
    assert published(installation) == {hour: [hour + 10] for hour in range(HOURS)}
    assert {*dict(database_of.ask(MATERIALIZED)).values()} == {1}
    assert len(database_of.ask(MATERIALIZED)) == HOURS
    assert database_of.ask(STATES) == [("SUCCEEDED", HOURS)]
    left = [one for one in (installation.settings.home / "data").rglob("*") if "falcon_instance" in one.name]
    assert left == []
    installation.ledger.rebuild()
    assert database_of.ask(STATES) == [("SUCCEEDED", HOURS)]
