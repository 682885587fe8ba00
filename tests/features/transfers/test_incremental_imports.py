"""Imports of changes: each instance goes on where the one before ended, and merges what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.errors import StorageError
from falcon_assets.features.quality.operations import AcceptInstance
from falcon_assets.features.transfers.importing import Importing
from falcon_assets.features.transfers.records import Transferred
from falcon_assets.features.transfers.store import ChangesRead
from falcon_assets.features.transfers.work import process_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.features.transfers.source import connected, run_sql
from tests.features.transfers.source_server import source_server
from tests.features.transfers.worlds import ImportWorld, import_world, imported
from tests.hours import hour
from tests.spark.sandbox import Sandbox

CHANGES = {"incremental": {"column": "at"}}
MERGED = {"upsert": {"key": ["id"]}}
HOLDS = {"on_error": "hold", "checks": [{"name": "enough", "rule": "row_count", "min": 2}]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with source_server(tmp_path_factory.mktemp("source")) as server:
        for name in ("added", "merged", "again", "columns", "twice", "anywhere", "held"):
            run_sql(server.url, f"CREATE TABLE {name} (id int, v int, at timestamptz DEFAULT clock_timestamp())")
        yield server.url


@pytest.fixture(scope="module")
def world(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    url: str,
    shop_password: None,
) -> ImportWorld:
    query = {"name": "shop", "query": "SELECT * FROM twice"}
    overlap = {"incremental": {"column": "at", "overlap": "minutes(10)"}}
    return import_world(
        settings,
        instance,
        write_entities,
        url,
        imported("added", extract=CHANGES),
        imported("merged", extract=CHANGES, merge=MERGED),
        imported("again", extract=CHANGES, merge=MERGED),
        imported("columns", extract=CHANGES, merge=MERGED, merge_schema=True),
        imported("strict", extract=CHANGES, source={"name": "shop", "table": "columns"}),
        imported("anywhere", extract=CHANGES, merge=MERGED),
        imported("held", 4, HOLDS, extract=CHANGES),
        imported("twice", source=query, extract=overlap, merge=MERGED),
    )


def rows(world: ImportWorld, feed: str, number: int) -> dict[int, int | None]:
    """Id -> v of an hour; each id must be there once."""
    found = world.table(feed, number).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def play(world: ImportWorld, feed: str, time: str) -> list[bool]:
    """Whether the runs succeeded that the import of a feed has at that time."""
    return [result.success for _, result in world.play(time, world.store.imports_of(feed))]


def by_hand(world: ImportWorld, feed: str, number: int, time: str = "09:00") -> bool:
    """Materializes an hour, as people do."""
    job = f"primary__{feed}__import_job"
    return bool(world.run_job(job, time, partition_key=format_instant(hour(number))).success)


def reason(world: ImportWorld, feed: str, number: int) -> str:
    return str(world.rows(f"{feed} import")[number]["reason"])


def test_appended_instances_hold_what_changed_and_none_is_lost(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO added VALUES (1, 10), (2, 20)")
    with connected(url) as late, late.cursor() as cursor:
        cursor.execute("INSERT INTO added VALUES (3, 30)")
        run_sql(url, "INSERT INTO added VALUES (4, 40)")
        assert play(world, "added", "00:59") == []
        assert play(world, "added", "01:00") == [True]
        assert rows(world, "added", 0) == {1: 10, 2: 20}
        told = world.transfers("added import")[0]
        assert told["behind"].endswith("is not over: what 2 since then wrote comes later")
        late.commit()
    run_sql(url, "UPDATE added SET v = 11 WHERE id = 1")
    assert play(world, "added", "02:00") == [True]
    assert rows(world, "added", 1) == {1: 11, 3: 30, 4: 40}
    first, second = (world.transfers("added import")[number] for number in (0, 1))
    assert (second["low_watermark"], second["behind"], second["rows"]) == (first["high_watermark"], None, 3)
    assert second["newest"] == run_sql(url, "SELECT (max(at) AT TIME ZONE 'UTC')::text FROM added")[0][0]
    assert play(world, "added", "05:00") == [True]  # three hours in one run, each where the one before ended
    assert [rows(world, "added", number) for number in (2, 3, 4)] == [{}, {}, {}]


def test_instances_that_run_out_of_order_read_nothing_twice(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO added VALUES (50, 1)")
    assert by_hand(world, "added", 7)
    assert rows(world, "added", 7) == {50: 1}
    run_sql(url, "INSERT INTO added VALUES (51, 1)")
    assert by_hand(world, "added", 5)
    assert rows(world, "added", 5) == {}
    assert by_hand(world, "added", 8)
    assert rows(world, "added", 8) == {51: 1}
    run_sql(url, "INSERT INTO added VALUES (52, 1)")
    assert by_hand(world, "added", 7)  # as it was, although there is more now
    assert rows(world, "added", 7) == {50: 1}
    assert by_hand(world, "added", 8)  # the newest is free to read on
    assert rows(world, "added", 8) == {51: 1, 52: 1}


def test_changes_that_others_have_read_since_are_not_accepted(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO held VALUES (1, 10)")
    assert play(world, "held", "01:00") == [False]
    run_sql(url, "INSERT INTO held VALUES (2, 20)")
    assert play(world, "held", "02:00") == [True]
    assert rows(world, "held", 1) == {1: 10, 2: 20}
    again = "falcon instance rerun 'held import' --start 2013-01-01T00:00Z --cluster primary"
    with open_installation(world.settings) as installation, pytest.raises(StorageError) as refused:
        AcceptInstance(feed="held", instance=hour(0), reason="why").run(installation)
    assert str(refused.value) == (
        "held 2013-01-01T00:00Z: a later instance has read these changes since, and they would be there twice: compute "
        f"it again: {again}"
    )
    assert not world.folder("primary", "held", 0).exists()
    assert not by_hand(world, "held", 0)  # nothing is left for it, which is too little as well
    with open_installation(world.settings) as installation:
        AcceptInstance(feed="held", instance=hour(0), reason="why").run(installation)
    assert rows(world, "held", 0) == {}
    run_sql(url, "INSERT INTO held VALUES (3, 30)")
    assert play(world, "held", "03:00") == [False]
    with open_installation(world.settings) as installation:
        AcceptInstance(feed="held", instance=hour(2), reason="why").run(installation)
    assert rows(world, "held", 2) == {3: 30}


def test_merged_instances_hold_all_rows_with_changes_in_their_places(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO merged VALUES (1, 10), (2, 20), (NULL, 5)")
    assert play(world, "merged", "01:00") == [True]
    run_sql(url, "UPDATE merged SET v = 21 WHERE id = 2", "UPDATE merged SET v = 6 WHERE id IS NULL")
    run_sql(url, "INSERT INTO merged VALUES (3, 30)", "DELETE FROM merged WHERE id = 1")
    assert play(world, "merged", "02:00") == [True]
    assert rows(world, "merged", 0) == {1: 10, 2: 20, None: 5}
    assert rows(world, "merged", 1) == {1: 10, 2: 21, 3: 30, None: 6}  # deletions are not seen
    assert play(world, "merged", "04:00") == [True]
    assert rows(world, "merged", 3) == rows(world, "merged", 1)
    told = world.transfers("merged import")
    assert [told[number]["rows"] for number in range(4)] == [3, 3, 0, 0]
    (published,) = world.published("primary", "merged", 1)
    (read,) = published.inputs["before"]
    assert (read.instance, read.version) == (hour(0), world.published("primary", "merged", 0)[0].version)


def test_of_rows_with_one_key_the_newest_stays(world: ImportWorld, url: str) -> None:
    run_sql(
        url,
        """INSERT INTO twice VALUES (1, 1, '2013-01-01T00:10Z'), (1, 2, '2013-01-01T00:20Z'), (1, 3, NULL),
                                    (2, 4, '2013-01-01T00:05Z')""",
    )
    assert play(world, "twice", "01:00") == [True]
    assert rows(world, "twice", 0) == {1: 2, 2: 4}
    run_sql(url, "INSERT INTO twice VALUES (3, 5, '2013-01-01T00:11Z'), (4, 6, '2013-01-01T00:09Z')")
    assert play(world, "twice", "02:00") == [True]
    assert rows(world, "twice", 1) == {1: 2, 2: 4, 3: 5}  # 4 is older than the overlap reaches


def test_a_merge_waits_for_the_instance_before(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO again VALUES (1, 1)")
    assert not by_hand(world, "again", 1)
    assert play(world, "again", "01:00") == [True]
    run_sql(url, "INSERT INTO again VALUES (2, 2)")
    assert play(world, "again", "03:00") == [True]
    assert rows(world, "again", 2) == {1: 1, 2: 2}


def test_columns_follow_or_are_told(world: ImportWorld, url: str) -> None:
    run_sql(url, "INSERT INTO columns VALUES (1, 10), (2, 20)")
    assert play(world, "columns", "01:00") == play(world, "strict", "01:00") == [True]
    run_sql(url, "ALTER TABLE columns ADD extra text", "UPDATE columns SET extra = 'x' WHERE id = 2")
    assert play(world, "columns", "02:00") == [True]
    table = world.table("columns", 1).sort_by("id")
    assert table.to_pydict()["extra"] == [None, "x"]
    assert play(world, "strict", "02:00") == [False]
    assert (
        "columns of shop has 1 new column, 'extra' (string): merge_schema: true lets it follow, fields: {exclude: "
        "[extra]} leaves it out" in reason(world, "strict", 1)
    )
    run_sql(url, "ALTER TABLE columns ALTER v TYPE bigint")
    assert play(world, "columns", "03:00") == [False]
    assert "columns of shop: column 'v' was int and is bigint (bigint) now: read a query that" in reason(
        world, "columns", 2
    )
    run_sql(url, "ALTER TABLE columns DROP v")
    assert not by_hand(world, "columns", 2)
    assert "columns of shop has no column 'v' any more: name the others (fields: " in reason(world, "columns", 2)


def test_changes_are_merged_wherever_workflows_run(
    world: ImportWorld, url: str, any_cluster: Cluster, tmp_path: Path
) -> None:
    run_sql(url, "TRUNCATE anywhere", "INSERT INTO anywhere SELECT n, n FROM generate_series(1, 2000) n")
    (workload,) = world.store.imports_of("anywhere")
    shop, sandbox = world.store.datasource("shop"), Sandbox(tmp_path, any_cluster)

    def imports(target: str, low: str | None, *before: InputData) -> Transferred:
        """Imports into ``target``, and returns what is recorded."""
        known = ChangesRead(low, None, {"id": "int", "v": "int", "at": "timestamp"})
        moving = Importing(workload, shop, world.settings.environ, lambda _: known, lambda: hour(0))
        workflow = process_of(workload, moving).workflow
        output = replace(sandbox.output("target"), url=(tmp_path / target).as_uri())
        task = sandbox.task(workflow, inputs=before, outputs=(output,), nominal=hour(1))
        (told,) = workflow.compute(task).facts
        return told

    first = imports("first", None)
    run_sql(url, "UPDATE anywhere SET v = 0 WHERE id <= 10", "INSERT INTO anywhere VALUES (0, 1)")
    second = imports("second", first.high_watermark, sandbox.input("before", "first", format="parquet"))
    assert (first.rows, second.rows) == (2000, 11)
    found = pq.read_table(tmp_path / "second").to_pylist()
    assert len(found) == 2001
    assert {one["id"]: one["v"] for one in found} == dict(run_sql(url, "SELECT id, v FROM anywhere"))
