"""Partition keys that are numbers and dates: a value is the same one however it is written, on both sides."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.table_storage import TableStorage
from falcon_assets.storage.landing import collect
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.hive_partitions import HiveCatalog
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import make_feed
from tests.registries import KINDS, Tables, endpoint_of

AT = parse_instant("2013-01-02T05:00Z")
SPANS = [(AT.replace(day=1), AT.replace(day=3))]


@pytest.fixture(params=KINDS)
def typed(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    made = Tables(endpoint_of(request, request.param), tmp_path, keys=("ds", "hour"))
    made.make(pa.date32(), pa.int32())
    return made


def feed_of(tables: Tables, keys: str = "ds=${YEAR}${MONTH}${DAY};hour=${HOUR}") -> Feed:
    uri = f"catalog:default:{tables.name}#{keys}"
    return make_feed(frequency="hours(1)", locations=None, availability_flag=None, table={"uri": uri})


def kind(tables: Tables) -> TableStorage:
    found = kind_of(TableStore(tables.cluster, tables.home, tables.environ))
    assert isinstance(found, TableStorage)
    return found


def publish(tables: Tables, *flights: int, keys: str = "ds=20130102;hour=05", folder: str = "") -> None:
    target = OutputTarget(f"catalog:default:{tables.name}#{keys}", None, format="parquet")
    with TablePublication(tables.store, "hourly at now", {"out": target}) as publication:
        place = Path(publication.staging("out"), folder)
        place.mkdir(parents=True)
        rows = {"carrier": ["UA"] * len(flights), "flight": list(flights)}
        pq.write_table(pa.table(rows, tables.COLUMNS), place / "part-0.parquet")
        publication.commit("out")


def rows(tables: Tables) -> list[tuple[str, int, int]]:
    """What an independent reader finds: PyIceberg, or whoever reads all folders that the metastore names."""
    if isinstance(tables.catalog, HiveCatalog):
        with tables.catalog._client("look") as client:
            found = client.get_partitions("default", tables.name, -1)
        return sorted(
            (one.values[0], int(one.values[1]), flight)
            for one in found
            for flight in pq.read_table(one.sd.location, partitioning=None)["flight"].to_pylist()
        )
    opened: Catalog = tables.catalog._catalog  # type: ignore[attr-defined]
    there = opened.load_table(("default", tables.name)).scan().to_arrow().to_pylist()
    return sorted((str(row["ds"]), row["hour"], row["flight"]) for row in there)


def test_a_rerun_replaces_what_it_wrote(typed: Tables) -> None:
    for flight in (1, 2, 3):
        publish(typed, flight)
        assert rows(typed) == [("2013-01-02", 5, flight)]


def test_what_others_wrote_is_found_and_replaced(typed: Tables) -> None:
    typed.land(("2013-01-02", "5"), 1, 2)
    feed = feed_of(typed)
    path = InstancePaths(feed, typed.cluster).data(AT)
    assert path.endswith("#ds=20130102;hour=05")
    assert kind(typed).is_available(feed, path)
    assert [one.instance for one in collect(kind(typed), feed, SPANS, {}, None)] == [AT]
    assert [(one.nominal, one.locations[0].path) for one in kind(typed).stored(feed)] == [(AT, path)]
    with kind(typed).reading(path, None) as read:
        assert [one.partition.values for one in read.partitions] == [("2013-01-02", "5")]
    publish(typed, 3)
    assert rows(typed) == [("2013-01-02", 5, 3)]
    kind(typed).removal(None).set_aside(path)
    assert rows(typed) == []


def test_some_keys_are_fixed(typed: Tables) -> None:
    typed.land(("2013-01-02", "5"), 1)
    typed.land(("2013-01-03", "5"), 2)
    publish(typed, 3, keys="ds=20130102;hour=*", folder="hour=06")
    assert rows(typed) == [("2013-01-02", 6, 3), ("2013-01-03", 5, 2)]
    publish(typed, 4, keys="ds=2013-01-02;hour=*", folder="hour=6")
    assert rows(typed) == [("2013-01-02", 6, 4), ("2013-01-03", 5, 2)]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("ds=2013-01-02-05;hour=05", "ds is date in the table, and '2013-01-02-05' is none"),
        ("ds=20130102;hour=abc", "hour is int in the table, and 'abc' is none"),
    ],
)
def test_what_is_no_such_value_is_refused_before_anything_is_written(typed: Tables, keys: str, why: str) -> None:
    said = f"cluster 'primary': catalog:default:{typed.name}#{keys}: {why}"
    with pytest.raises(StorageError) as raised:
        publish(typed, 1, keys=keys)
    assert str(raised.value) == said
    with pytest.raises(StorageError) as raised:
        kind(typed).is_available(feed_of(typed), f"catalog:default:{typed.name}#{keys}")
    assert str(raised.value) == said
    assert rows(typed) == []


def test_a_template_that_never_is_such_a_value_is_refused(typed: Tables) -> None:
    feed = feed_of(typed, "ds=${YEAR}-${MONTH}-${DAY}-${HOUR};hour=1")
    with pytest.raises(StorageError, match=r"ds is date in the table, and '2013-01-01-00' is none$"):
        list(collect(kind(typed), feed, SPANS, {}, None))


@pytest.mark.parametrize(
    ("folders", "why"),
    [
        (("hour=abc",), "hour is int in the table, and 'abc' is none"),
        (("hour=5", "hour=05"), "hour=05 and hour=5 are one partition of the table"),
    ],
)
def test_folders_that_are_no_partitions_are_refused(typed: Tables, folders: tuple[str, ...], why: str) -> None:
    target = OutputTarget(f"catalog:default:{typed.name}#ds=20130102;hour=*", None, format="parquet")
    with (
        pytest.raises(StorageError) as raised,
        TablePublication(typed.store, "hourly", {"out": target}) as publication,
    ):
        for folder in folders:
            place = Path(publication.staging("out"), folder)
            place.mkdir(parents=True)
            pq.write_table(pa.table({"carrier": ["UA"], "flight": [1]}, typed.COLUMNS), place / "part-0.parquet")
        publication.commit("out")
    assert str(raised.value) == f"cluster 'primary': cannot publish {target.path}: {why}"
    assert rows(typed) == []


def test_spellings_that_hive_keeps_are_one_partition(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    hive = Tables(endpoint_of(request, "hive"), tmp_path, keys=("ds", "hour"))
    hive.make(pa.date32(), pa.int32())
    for number, values in enumerate([("20130102", "05"), ("2013-01-02", "5"), ("2013-01-02", "005")]):
        hive.land(values, number)
    hive.land(("2013-01-02", "50"), 9)
    with kind(hive).reading(InstancePaths(feed_of(hive), hive.cluster).data(AT), None) as read:
        assert len(read.partitions) == 3
    publish(hive, 4)
    assert rows(hive) == [("2013-01-02", 5, 4), ("2013-01-02", 50, 9)]


def test_a_dot_is_a_dot(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The metastore takes a fixed value for a pattern."""
    hive = Tables(endpoint_of(request, "hive"), tmp_path, keys=("app", "r"))
    hive.make()
    odd = ["v1.0", "v1x0", "V1.0", "v1_0", "v1+0", "v11+0", "v(1|2).0", "v1\\.0", "v1%", "v1", "a$b", "[ab]", "a|b"]
    for number, app in enumerate(odd):
        hive.land((app, "x"), number)
    for app in odd:
        assert hive.catalog.values("default", hive.name, {"app": app}) == [(app, "x")]
        assert [one.values for one in kind(hive)._look.partitions(f"catalog:default:{hive.name}#app={app};r=*")] == (
            [(app, "x")]
        )
    publish(hive, 99, keys="app=v1.0;r=*", folder="r=y")
    assert sorted(hive.catalog.values("default", hive.name, {})) == sorted(
        [("v1.0", "y"), *((app, "x") for app in odd[1:])]
    )
