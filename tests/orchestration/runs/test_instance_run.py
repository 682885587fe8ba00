"""One process instance from its inputs to its published outputs, wherever it lies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from falcon_assets.compute.spark.copying import copy_instance
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import StorageError, WorkflowError
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.instances.data_version import count_files
from tests.builders import SPARK, make_cluster, make_feed, make_process
from tests.copy_sandbox import CopySandbox, some_files

NOMINAL = datetime(2013, 1, 1, 5, tzinfo=UTC)
FOLDER = "data/primary/raw/flights/2013/01/01/05"
SHARED = make_cluster(properties=SPARK)
HOMES = ["a b", "a,b", "%41", "home[1]x", "{x,y}", "x*?", "back\\slash", "a::b", "c:d", "é#f", "~", "'\"$(x)"]
EVERYTHING = "a b,%41 home[1]x {x,y}*? ü#\\ '\"$(x)"


def ran(home: Path, cluster: Cluster = SHARED) -> InstanceResult:
    """Computes the number of rows per file of the one input instance."""
    (home / "count.sql").write_text("SELECT n FROM flights")
    feeds = {
        "raw-flights": make_feed(schema="n int"),
        "delays": make_feed(name="delays", locations={"data": "/delays/${YEAR}-${MONTH}-${DAY}-${HOUR}"}),
    }
    process = make_process(workflow={"engine": "spark-sql", "path": "count.sql"})
    store = ClusterStore(cluster, home, {})
    executor = SparkExecutor(cluster, lambda: str(home / "working"))
    runner = InstanceRunner(process, executor, feeds, store, StoresOf(cluster, home, {}), home, "etl", "run")
    return runner.run(runner.prepare(NOMINAL))


def land(home: Path, *names: str) -> None:
    for number, name in enumerate((*names, "_SUCCESS")):
        file = home / FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"n":{number}}}\n')


@pytest.mark.soak
@pytest.mark.parametrize("name", [EVERYTHING, *(pytest.param(one, marks=pytest.mark.soak) for one in HOMES)])
def test_whatever_the_home_is_named(tmp_path: Path, name: str) -> None:
    home = tmp_path / name / "home"
    land(home, "a.json", "sub/b.json")
    result = ran(home, make_cluster() if name == EVERYTHING else SHARED)  # its own has the warehouse in the home
    (consumed,) = result.inputs["flights"]
    there, _ = count_files(ClusterStore(SHARED, home, {}), "/raw/flights/2013/01/01/05", "_SUCCESS")
    assert (consumed.version, there.files) == (there.version, 2)
    assert [output.records for output in result.outputs] == [2]
    published = home / "data/primary/delays/2013-01-01-05"
    assert (published / "_SUCCESS").is_file()
    assert "".join(file.read_text() for file in sorted(published.glob("*.json"))).split() == ['{"n":0}', '{"n":1}']
    assert [entry.name for entry in tmp_path.iterdir()] == [name]  # nothing was written to where a pattern leads
    copies = CopySandbox(home)
    files = some_files(20)
    copies.write(files)
    with copies.copying() as copy:
        copy_instance(SparkExecutor(SHARED, lambda: str(home)), copy)
    copies.publish()
    assert copies.read() == files


def test_an_instance_that_was_not_read_whole_is_not_published(tmp_path: Path) -> None:
    land(tmp_path, "a.json", "bad\udcff.json")
    with pytest.raises(WorkflowError) as caught:
        ran(tmp_path)
    assert "Spark does not read 1 of the 2 files" in str(caught.value)
    assert not (tmp_path / "data/primary/delays").exists()


def test_a_home_that_is_not_utf_8(tmp_path: Path) -> None:
    home = tmp_path / "\udcff"
    land(home, "a.json")
    with pytest.raises((WorkflowError, StorageError), match=r"\\xff.*is not UTF-8"):
        ran(home)
