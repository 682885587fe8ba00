"""What an instance does that its process does not declare."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import WorkflowError
from falcon_assets.history.events.columns import DataCaptured
from falcon_assets.history.events.event_log import asset_facts
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from tests.builders import SPARK, VALIDITY, make_cluster, make_feed, make_process
from tests.listener import LISTENER_HOME
from tests.records import read_record

NOMINAL = datetime(2013, 1, 1, 5, tzinfo=UTC)
CLUSTER = make_cluster(properties=SPARK)
BACKUP = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local[2]"}}
LOOKING_ASIDE = """
def run(spark, inputs, instance):
    names = spark.read.json(instance.properties["names"])
    if "copied" in instance.properties:
        return names.crossJoin(spark.read.json(instance.properties["copied"]).withColumnRenamed("n", "copied"))
    other = spark.read.json(instance.properties["other"])
    names.crossJoin(other).write.mode("overwrite").json(instance.properties["aside"])
    return names.crossJoin(other)
"""


def ran(home: Path, copied: Path | None = None, **declared: Any) -> InstanceResult:
    lines = {"primary/raw/flights": '{"n": 1}', "primary/names": '{"m": 2}', "backup/raw": '{"n": 3}'}
    for place, text in lines.items():
        folder = home / "data" / place / "2013/01/01/05"
        folder.mkdir(parents=True)
        (folder / "a.json").write_text(text)
        (folder / "_SUCCESS").touch()
    (home / "other").mkdir()
    (home / "other/a.json").write_text('{"o": 3}')
    (home / "aside.py").write_text(LOOKING_ASIDE)
    clusters = [
        {"name": "primary", "validity": VALIDITY},
        {"name": "backup", "validity": VALIDITY, "locations": {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"}},
    ]
    feeds = {
        "raw-flights": make_feed(schema="n int", clusters=clusters),
        "names": make_feed(name="names", locations={"data": "/names/${YEAR}/${MONTH}/${DAY}/${HOUR}"}),
        "delays": make_feed(name="delays", locations={"data": "/delays/${YEAR}-${MONTH}-${DAY}-${HOUR}"}),
    }
    places = {"names": home / "data/primary/names/2013/01/01/05", "other": home / "other", "aside": home / "aside"}
    if copied is not None:
        places["copied"] = copied
    process = make_process(
        workflow={"engine": "pyspark", "path": "aside.py"},
        properties={name: place.as_uri() for name, place in places.items()},
        **declared,
    )
    store = ClusterStore(CLUSTER, home, {})
    own, backup = StoresOf(CLUSTER, home, {}), StoresOf(make_cluster(name="backup", interfaces=BACKUP), home, {})
    executor = SparkExecutor(CLUSTER, lambda: str(home / "working"), LISTENER_HOME)
    runner = InstanceRunner(process, executor, feeds, store, own, home, "etl", "run", others=[backup])
    return runner.run(runner.prepare(NOMINAL))


def test_it_is_said_where_the_instance_is_recorded(tmp_path: Path) -> None:
    (event,) = materializations(ran(tmp_path), "hourly-delays", "primary", "2013-01-01T05:00Z", NOMINAL, 1)
    captured, there = read_record(DataCaptured, event), read_record(FeedInstanceAvailable, event)
    assert captured.capture == "complete"
    assert captured.capture_warnings == (
        "reads names 2013-01-01T05:00Z, which is no input",
        f"reads {tmp_path}/other, which is of no feed",
        f"writes {tmp_path}/aside, which is no output",
        "does not read its input flights",
    )
    (read,) = there.undeclared
    assert (read.feed, read.instance, read.path) == ("names", NOMINAL, "/names/2013/01/01/05")
    assert len(read.version or "") == 32
    assert there.places == (f"{tmp_path}/other",)
    assert there.writes == (f"{tmp_path}/aside",)
    assert (there.capture, there.warnings) == (captured.capture, captured.capture_warnings)
    (fact, *_) = asset_facts(1, event, NOMINAL)
    assert isinstance(fact, FeedInstanceAvailable)
    assert fact.columns == OutputColumns(
        (
            OutputColumn("m", "bigint", (("names", "m"),)),
            OutputColumn("o", "bigint", ((f"{tmp_path}/other", "o"),)),
        ),
        (),
    )


def test_data_of_another_cluster_is_that_of_its_feed_there(tmp_path: Path) -> None:
    result = ran(tmp_path, tmp_path / "data/backup/raw/2013/01/01/05")
    assert result.usage.places == ()
    assert result.usage.breaches == [
        "reads names 2013-01-01T05:00Z, which is no input",
        "reads raw-flights 2013-01-01T05:00Z on backup, which is no input",
    ]
    names, copied = result.undeclared
    assert (names.cluster, copied.cluster, copied.feed, copied.instance) == (None, "backup", "raw-flights", NOMINAL)
    assert copied.path == "/raw/2013/01/01/05"
    assert len(copied.version or "") == 32


def test_strict_lineage_publishes_nothing_that_is_not_declared(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError) as caught:
        ran(tmp_path, strict_lineage=True)
    assert str(caught.value) == (
        "process 'hourly-delays': aside.py: reads names 2013-01-01T05:00Z, which is no input; "
        f"reads {tmp_path}/other, which is of no feed; writes {tmp_path}/aside, which is no output: "
        "declare that in the process, or remove strict_lineage from it"
    )
    assert not (tmp_path / "data/primary/delays").exists()
