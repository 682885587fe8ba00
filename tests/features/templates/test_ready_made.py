"""The templates of the product: what they make runs, on real stores, and other programs find the result there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import dagster as dg
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.features.templates.packs import OWN, read_packs
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.settings import Settings, load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml
from tests.features.transfers.shop import Shop, datasource_yaml
from tests.orchestration.runs.test_tables import files_of
from tests.registries import Tables, hive_metastore
from tests.s3_server import KEY, SECRET, lake
from tests.world import World

START = "2013-01-01T00:00Z"


@dataclass(frozen=True)
class MadeWorld(World):
    """What a template has made, at any time of that day."""

    def retain(self, cluster: str, feed: str, time: str) -> int:
        """How many instances a pass of retention removes."""

        def record(events: Any) -> None:
            for event in events:
                self.instance.report_runless_asset_event(event)

        retention = RetentionPass(self.store, self.store.cluster(cluster), [self.store.feed(feed)], self.at(time), 0)
        return retention.run(self.ledger, "run", record).instances


@pytest.fixture
def made(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Callable[..., MadeWorld]:
    """Submits what a template makes on these clusters."""

    def make(template: str, clusters: str, /, **parameters: str) -> MadeWorld:
        root = write_entities({"a.yaml": clusters})
        shutil.rmtree(root / "feeds", ignore_errors=True)
        options = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FALCON_WEBSERVER_URL", "")
            done = CliRunner().invoke(falcon, ["template", "submit", template, *options])
        assert done.exit_code == 0, (done.output, done.exception)
        return MadeWorld(load_entities(root), settings, instance, open_ledger(settings, instance))

    return make


def land(folder: Path, files: dict[str, str], time: float | None = None) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if time is not None:
            os.utime(file, (time, time))


def there(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_each_has_a_section_in_the_guide_and_no_problems() -> None:
    found = read_packs(load_settings({"FALCON_PACKS": "/nowhere"}))
    assert found.problems == []
    names = {one.stem for one in OWN.glob("*.yaml")} - {"pack"}
    assert names == {name.removeprefix("falcon/") for name in found.templates}
    guide = (Path(__file__).parents[3] / "docs/guides/templates.md").read_text()
    assert all(f"### `{name}`" in guide for name in names)


def test_a_directory_tree_is_mirrored_each_time_it_was_refreshed(made: Callable[..., MadeWorld]) -> None:
    world = made(
        "mirror-folder",
        cluster_yaml("east") + cluster_yaml("west"),
        **{"name": "carriers", "path": "/dimensions/carriers", "source": "east", "target": "west"},
        **{"target_path": "/copies/carriers", "start": START, "frequency": "hours(1)"},
    )
    home = world.settings.home / "data"
    tree = {"a.csv": "1\n", "deep/er/b.csv": "2\n", "odd name é=.csv": "3\n"}
    land(home / "east/dimensions/carriers", tree, world.at("01:10").now().timestamp())
    assert world.step("01:20")
    assert there(home / "west/copies/carriers") == tree
    (home / "east/dimensions/carriers/a.csv").unlink()
    newer = {"deep/er/b.csv": "new\n", "c.csv": "4\n", "odd name é=.csv": "3\n"}
    land(home / "east/dimensions/carriers", newer, world.at("02:30").now().timestamp())
    assert world.step("02:40")
    assert there(home / "west/copies/carriers") == newer


def test_old_instances_move_to_an_object_store(made: Callable[..., MadeWorld], lake_url: str) -> None:
    world = made(
        "archive",
        cluster_yaml("near") + cluster_yaml(**lake(lake_url)),
        **{"name": "raw", "path": "/raw/${YEAR}-${MONTH}-${DAY}-${HOUR}", "cluster": "near", "flag": "_SUCCESS"},
        **{"archive_cluster": "lake", "archive_to": "/archive/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
        **{"limit": "hours(2)", "start": START, "frequency": "hours(1)"},
    )
    for number in (0, 3):
        land(world.folder("near", "raw", number), {"part.csv": f"{number}\n", "_SUCCESS": ""})
    world.collect("04:00")
    world.ledger.catch_up()
    assert world.retain("near", "raw", "04:00") == 1
    assert not world.folder("near", "raw", 0).exists()
    assert there(world.folder("near", "raw", 3)) == {"_SUCCESS": "", "part.csv": "3\n"}
    s3 = boto3.client("s3", "us-east-1", endpoint_url=lake_url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    listed = [one["Key"] for one in s3.list_objects_v2(Bucket="lake", Prefix="data/archive/")["Contents"]]
    assert sorted(listed) == [f"data/archive/2013/01/01/00/{name}" for name in ("_SUCCESS", "part.csv")]
    assert s3.get_object(Bucket="lake", Key=listed[-1])["Body"].read() == b"0\n"


def test_tables_of_a_database_are_imported(made: Callable[..., MadeWorld], database: str) -> None:
    shop = Shop(database)
    shop.ask("CREATE TABLE orders (id int, name text); INSERT INTO orders VALUES (1, 'Größe'), (2, NULL)")
    shop.ask("CREATE TABLE customers (id bigint)")
    world = made(
        "ingest-tables",
        cluster_yaml() + datasource_yaml(database),
        **{"datasource": "shop", "tables": "orders, customers", "cluster": "primary"},
        **{"start": START, "frequency": "hours(1)"},
    )
    assert len(world.step("00:00")) == 2
    folder = world.settings.home / "data/primary/ingest"
    assert pq.read_table(folder / "orders/2013-01-01-00-00").to_pylist() == [
        {"id": 1, "name": "Größe"},
        {"id": 2, "name": None},
    ]
    assert pq.read_table(folder / "customers/2013-01-01-00-00").num_rows == 0


def test_a_folder_is_delivered_to_a_table(made: Callable[..., MadeWorld], database: str) -> None:
    shop = Shop(database, "sold")
    shop.fresh("CREATE TABLE sales (n int, hour timestamptz)")
    world = made(
        "export-folder",
        cluster_yaml() + datasource_yaml(database),
        **{"name": "sales", "path": "/sales/${YEAR}-${MONTH}-${DAY}-${HOUR}", "cluster": "primary"},
        **{"datasource": "shop", "table": "sold.sales", "period": "hour", "format": "csv", "schema": "n int"},
        **{"start": START, "frequency": "hours(1)", "flag": "_SUCCESS"},
    )
    for content in ("1\n2\n", "3\n"):  # the second time it is late data
        land(world.folder("primary", "sales", 0), {"part.csv": content, "_SUCCESS": ""})
        world.step("01:00" if content == "1\n2\n" else "04:00")
        found = shop.ask("SELECT n, hour AT TIME ZONE 'UTC' FROM sales ORDER BY n")
        assert found == [(int(number), datetime(2013, 1, 1)) for number in content.split()]


def test_old_instances_are_deleted(made: Callable[..., MadeWorld]) -> None:
    world = made(
        "retention",
        cluster_yaml("one") + cluster_yaml("two"),
        **{"name": "logs", "path": "/logs/${YEAR}-${MONTH}-${DAY}-${HOUR}", "clusters": "one, two"},
        **{"limit": "hours(2)", "start": START, "frequency": "hours(1)"},
    )
    assert [*world.store.feeds] == ["logs-one", "logs-two"]
    for cluster in ("one", "two"):
        for number in (0, 1, 3):
            land(world.folder(cluster, "logs", number), {"log": "x"})
    world.collect("04:00")
    world.ledger.catch_up()
    assert world.retain("one", "logs-one", "04:00") == 2
    assert [*there(world.settings.home / "data/one/logs")] == ["2013-01-01-03/log"]
    assert len(there(world.settings.home / "data/two/logs")) == 3
    assert world.retain("two", "logs-two", "05:00") == 2


@contextmanager
def registered(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """A cluster with a Hive Metastore of its own."""
    with hive_metastore(folder / name) as endpoint:
        interfaces = {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}}
        yield cluster_yaml(name, interfaces={**interfaces, "registry": {"endpoint": endpoint}}), endpoint


@pytest.mark.soak
def test_tables_of_a_hive_database_are_mirrored(made: Callable[..., MadeWorld], tmp_path: Path) -> None:
    with registered(tmp_path, "east") as (east, there_), registered(tmp_path, "west") as (west, here):
        world = made(
            "mirror-hive",
            east + west,
            **{"database": "default", "tables": "flights,weather", "source": "east", "target": "west"},
            **{"partition": "ds=${YEAR}-${MONTH}-${DAY}-${HOUR}", "start": START, "frequency": "hours(1)"},
        )
        assert [*world.store.feeds] == ["default-flights", "default-weather"]
        for name, rows in {"flights": (1, 2), "weather": (3,)}.items():
            source = Tables(there_, tmp_path / "written", ("ds",))
            source.name = name
            source.make()
            source.land(("2013-01-01-01",), *rows)
        assert len(world.step("01:00")) == 2
        for name, rows in {"flights": [1, 2], "weather": [3]}.items():
            copied = Tables(here, tmp_path / "read", ("ds",))
            copied.name = name
            found = copied.there("2013-01-01-01")
            assert found is not None
            assert rows_of(files_of(found)) == rows


def rows_of(files: Iterable[Path]) -> list[int]:
    return sorted(number for file in files for number in pq.read_table(file)["flight"].to_pylist())
