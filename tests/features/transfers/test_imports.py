"""Imports make instances: launched by the coordinator, written by Spark, recorded, and read by plain pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.task import WorkflowResult
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.quality.operations import AcceptInstance
from falcon_assets.features.transfers.extraction import read_parts
from falcon_assets.features.transfers.importing import Importing
from falcon_assets.features.transfers.store import ChangesRead
from falcon_assets.features.transfers.work import process_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.features.transfers.source import access_of, opened, run_sql
from tests.features.transfers.worlds import PASSWORD, ImportWorld, import_world, imported
from tests.hours import hour
from tests.spark.sandbox import Sandbox

WrittenEntities = Callable[[dict[str, str]], Path]


HOLDS = {"on_error": "hold", "checks": [{"name": "enough", "rule": "row_count", "min": 2}]}


@pytest.fixture(scope="module")
def world(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: WrittenEntities,
    database: str,
    shop_password: None,
) -> ImportWorld:
    run_sql(
        database,
        """CREATE TABLE orders (id int PRIMARY KEY, total numeric(9,2), at timestamptz, raw bytea, raws bytea[]);
           INSERT INTO orders VALUES (1, 1.50, '2013-01-01T00:30Z', '\\x00ff', '{NULL,"\\\\x01"}'),
                                     (2, NULL, '9999-12-31T23:59:59.999999Z', '', NULL);
           INSERT INTO orders (id) SELECT generate_series(3, 100000)""",
    )
    by_hour = {"source": {"name": "shop", "query": "SELECT id FROM orders WHERE at >= :start AND at < :end"}}
    return import_world(
        settings,
        instance,
        write_entities,
        database,
        imported(hours=2),
        imported("hourly", 2, **by_hour),
        imported("broken", 2, source={"name": "shop", "query": "SELECT 'infinity'::date AS due"}),
        imported("held", 1, HOLDS, source={"name": "shop", "query": "SELECT 1 AS id"}),
        imported("csvs", 1, {"format": "csv"}, source={"name": "shop", "query": "SELECT 1 AS id"}),
    )


def played(world: ImportWorld, feed: str, time: str) -> list[bool]:
    """Whether the runs succeeded that the import of a feed has at that time."""
    return [result.success for _, result in world.play(time, world.store.imports_of(feed))]


def test_a_table_is_imported_when_its_hour_begins(world: ImportWorld) -> None:
    assert played(world, "orders", "00:00") == [True]
    table = world.table("orders", 0).sort_by("id")
    assert table["id"].to_pylist() == [*range(1, 100_001)]
    assert table.slice(0, 2).to_pylist() == [
        {
            "id": 1,
            "total": Decimal("1.50"),
            "at": datetime(2013, 1, 1, 0, 30, tzinfo=UTC),
            "raw": b"\0\xff",
            "raws": [None, b"\1"],
        },
        {
            "id": 2,
            "total": None,
            "at": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            "raw": b"",
            "raws": None,
        },
    ]
    assert (world.folder("primary", "orders", 0) / "_SUCCESS").is_file()
    (told,) = world.transfers().values()
    assert (told["datasource"], told["dataset"], told["rows"]) == ("shop", "orders", 100_000)
    assert told["source_columns"]["total"] == "decimal(9,2)"
    (published,) = world.published("primary", "orders", 0)
    assert (published.records, published.process) == (100_000, "orders import")


def test_a_query_of_a_period_waits_until_it_is_over(world: ImportWorld) -> None:
    assert played(world, "hourly", "00:59") == []
    assert played(world, "hourly", "01:00") == [True]
    assert world.ids("hourly", 0) == [1]
    assert played(world, "hourly", "02:00") == [True]
    assert world.table("hourly", 1).num_rows == 0


def test_what_cannot_be_imported_fails_with_a_sentence(world: ImportWorld) -> None:
    assert played(world, "broken", "01:00") == [False]
    row = world.rows("broken import")[0]
    said = "a query of shop: column due (date) has 'infinity', which no date of a feed can be: leave the column out"
    assert (row["state"], said in row["reason"]) == ("FAILED", True), row["reason"]
    assert "Traceback" not in row["reason"]
    assert not world.folder("primary", "broken", 0).exists()


def test_what_fails_its_checks_is_held_and_counts_once_it_is_accepted(world: ImportWorld) -> None:
    assert played(world, "held", "01:00") == [False]
    assert world.rows("held import")[0]["reason_data"]["kind"] == "held_back"
    assert not world.folder("primary", "held", 0).exists()
    assert world.transfers("held import") == {}
    with open_installation(world.settings) as installation:
        AcceptInstance(feed="held", instance=hour(0), reason="why").run(installation)
    assert world.ids("held", 0) == [1]
    (told,) = world.transfers("held import").values()
    assert (told["datasource"], told["rows"]) == ("shop", 1)
    assert world.rows("held import")[0]["state"] == "SUCCEEDED"


def test_the_password_is_in_no_plan_and_no_record(
    world: ImportWorld, database: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    access = Access(**{**vars(access_of(database)), "password": PASSWORD})
    with opened(access_of(database)) as reading:
        parts = [replace(part, access=access) for part in reading.parts]
        read_parts(spark, replace(reading, parts=parts)).explain("extended")
    plan = capsys.readouterr().out
    assert "MapInArrow" in plan and PASSWORD not in plan
    with world.ledger.engine.connect() as connection:
        events = connection.exec_driver_sql("SELECT string_agg(event, '') FROM event_logs").scalar_one()
    assert "orders import" in events and PASSWORD not in events


def test_it_runs_wherever_workflows_run(world: ImportWorld, any_cluster: Cluster, tmp_path: Path) -> None:
    (workload,) = world.store.imports_of("orders")
    shop, environ = world.store.datasource("shop"), world.settings.environ
    moving = Importing(workload, shop, environ, lambda _: ChangesRead(), lambda: hour(0))
    process, sandbox = process_of(workload, moving), Sandbox(tmp_path, any_cluster)
    result = process.workflow.compute(sandbox.task(process.workflow, outputs=(sandbox.output("target"),)))
    assert result.records == {"target": 100_000}
    assert len(sandbox.rows("target")) == 100_000
    of_spark = {"spark.sql.parquet.writeLegacyFormat": "false"}  # a setting that is about files
    beside = Sandbox(tmp_path / "beside", any_cluster)
    task = beside.task(process.workflow, outputs=(beside.output("target"),), settings=of_spark)
    other = process.workflow.compute(task)
    files = [[*(one / "out" / "target").glob("*.parquet")] for one in (tmp_path, tmp_path / "beside")]
    assert [len(found) for found in files] == [3, 3]
    writers = {pq.read_metadata(found[0]).created_by.partition(" ")[0] for found in files}
    assert writers == {"parquet-cpp-arrow", "parquet-mr"}
    assert beside.rows("target") == sandbox.rows("target")
    assert known(result) == known(other), "lineage is the same, whoever writes"


def known(result: WorkflowResult) -> tuple[Any, ...]:
    """What is known of what was written, but for the place."""
    found = result.captured
    writes = [(one.each, one.rows_from, one.are_rows_opaque, one.is_append, one.source) for one in found.writes]
    return writes, found.reads, found.unknown, found.problem
