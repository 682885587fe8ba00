"""Publishing into tables, with both kinds of catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.table_storage import TableStorage
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore
from tests.registries import KINDS, Tables, endpoint_of

DAY = "2024-01-01"


@pytest.fixture(params=KINDS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, request.param), tmp_path, keys=("ds",))


def path_of(tables: Tables, spec: str = f"ds={DAY}") -> str:
    return f"catalog:default:{tables.name}#{spec}"


@contextmanager
def publishing(tables: Tables, grace: float = 3600, **said: object) -> Iterator[TablePublication]:
    target = OutputTarget(path_of(tables), None, **{"format": "parquet", **said})  # type: ignore[arg-type]
    with TablePublication(tables.store, "daily at now", {"out": target}, grace) as publication:
        yield publication


def write(publication: TablePublication, *flights: int, **columns: list[object]) -> None:
    folder = Path(publication.staging("out"))
    assert not folder.exists()
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    named: dict[str, object] = {"carrier": ["UA"] * len(flights), "flight": pa.array(flights, pa.int64()), **columns}
    pq.write_table(pa.table({name: value for name, value in named.items() if value}), folder / "part-0.parquet")


def publish(tables: Tables, *flights: int, grace: float = 3600) -> Partition:
    with publishing(tables, grace) as publication:
        write(publication, *flights)
        version = publication.commit("out")
    now = tables.there(DAY)
    assert now is not None
    assert (version.version, version.files, version.bytes) == (now.version, now.files, now.bytes)
    return now


def read(partition: Partition | None) -> list[int]:
    assert partition is not None
    places = [Path("/" + place.removeprefix("file:").lstrip("/")) for place in partition.places]
    files = [file for place in places for file in (sorted(place.iterdir()) if place.is_dir() else [place])]
    return [flight for file in files for flight in pq.read_table(file)["flight"].to_pylist()]


def versions(tables: Tables) -> set[Path]:
    root = tables.home / tables.name / "_versions"
    return {one for place in root.iterdir() if not place.name.startswith("_") for one in place.iterdir()}


def notes(tables: Tables) -> int:
    return len(list((tables.home / tables.name / "_versions/_notes").iterdir()))


def test_a_version_is_what_was_written(tables: Tables) -> None:
    tables.make()
    first = publish(tables, 1, 2)
    assert read(first) == [1, 2]
    second = publish(tables, 3)
    assert read(second) == [3] and read(first) == [1, 2]
    assert second.version != first.version


def test_what_is_not_committed_never_was(tables: Tables) -> None:
    tables.make()
    before = publish(tables, 1)
    with pytest.raises(InterruptedError), publishing(tables) as publication:
        write(publication, 2)
        raise InterruptedError
    assert tables.there(DAY) == before
    assert len(versions(tables)) == 1


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"carrier": None}, "carrier string is not there"),
        ({"delay": [1]}, "delay bigint is not in it"),
        ({"carrier": [b"UA"]}, "carrier is binary, and string in the table"),
        ({"ds": [DAY]}, "ds is a partition key, which is not written into the files"),
    ],
    ids=["missing", "more", "other", "key"],
)
def test_what_does_not_fit_is_not_published(tables: Tables, columns: dict[str, list[object]], why: str) -> None:
    tables.make()
    before = publish(tables, 1)
    with pytest.raises(StorageError) as raised, publishing(tables) as publication:
        write(publication, 2, **columns)
        publication.commit("out")
    cannot = f"cluster 'primary': cannot publish {path_of(tables)}"
    assert str(raised.value) == f"{cannot}: the output does not fit table default.{tables.name}: {why}"
    assert tables.there(DAY) == before


def test_a_table_is_not_made_with_a_key_twice(tables: Tables) -> None:
    with pytest.raises(StorageError) as raised, publishing(tables, makes_table=True) as publication:
        write(publication, 2, ds=[DAY])
        publication.commit("out")
    assert str(raised.value).endswith(": ds is a partition key, which is not written into the files")
    assert tables.catalog.layout("default", tables.name) is None


def test_columns_that_are_new_are_added_where_that_is_declared(tables: Tables) -> None:
    tables.make()
    publish(tables, 1)
    columns = {"carrier": ["UA"], "flight": [2], "Delay": [1.5]}
    with publishing(tables, merges_schema=True) as publication:
        write(publication, 2, **columns)
        publication.commit("out")
    layout = tables.catalog.layout("default", tables.name)
    assert layout is not None
    assert [str(one).lower() for one in layout.columns] == ["carrier string", "flight bigint", "delay double"]
    assert read(tables.there(DAY)) == [2]
    with publishing(tables, merges_schema=True) as publication:  # it is there by now
        write(publication, 3, **columns)
        publication.commit("out")
    assert tables.catalog.layout("default", tables.name) == layout


def test_nothing_else_is_changed_for_new_columns(tables: Tables) -> None:
    tables.make()
    before, layout = publish(tables, 1), tables.catalog.layout("default", tables.name)
    wrong = "flight is string, and bigint in the table"
    with pytest.raises(StorageError, match=wrong), publishing(tables, merges_schema=True) as publication:
        write(publication, 2, carrier=["UA"], flight=["two"], delay=[1.5])
        publication.commit("out")
    assert (tables.there(DAY), tables.catalog.layout("default", tables.name)) == (before, layout)


def test_what_a_catalog_refuses_is_said_with_its_cluster_once(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    hive = Tables(endpoint_of(request, "hive"), tmp_path, keys=("ds",))
    target = OutputTarget("catalog:lost:flights#ds=2024", None, format="parquet", makes_table=True)
    with TablePublication(hive.store, "daily at now", {"out": target}, 0) as publication:
        write(publication, 1)
        with pytest.raises(StorageError) as raised:
            publication.commit("out")
    assert str(raised.value) == (
        "cluster 'primary': cannot publish catalog:lost:flights#ds=2024: cannot make table lost.flights: there is no "
        "database lost: create it in the Hive Metastore first"
    )


def test_nothing_written_is_told(tables: Tables) -> None:
    tables.make()
    with publishing(tables) as publication, pytest.raises(StorageError, match="nothing was written to "):
        publication.commit("out")
    assert tables.there(DAY) is None


def test_a_table_is_made_only_where_that_is_declared(tables: Tables) -> None:
    with (
        pytest.raises(StorageError, match=r"make it, or declare `create: true` in the feed's table$"),
        publishing(tables),
    ):
        pass
    with publishing(tables, makes_table=True) as publication:
        write(publication, 1)
        publication.commit("out")
    assert read(tables.there(DAY)) == [1]
    layout = tables.catalog.layout("default", tables.name)
    assert layout is not None and layout.columns[1].type == "bigint" and layout.key_names == ("ds",)


def test_a_table_in_another_format_is_refused(tables: Tables) -> None:
    tables.make()
    says = r"is in parquet, and the feed says orc: declare `format: parquet`$"
    with pytest.raises(StorageError, match=says), publishing(tables, format="orc"):
        pass


def test_of_two_writers_the_slower_one_is_refused(tables: Tables) -> None:
    tables.make()
    with publishing(tables) as slow:
        write(slow, 1)
        now = publish(tables, 2)
        with pytest.raises(StorageError, match="was changed by somebody else meanwhile: run it again"):
            slow.commit("out")
    assert tables.there(DAY) == now
    assert len(versions(tables)) == 1


def test_what_was_replaced_goes_after_a_while(tables: Tables) -> None:
    tables.make()
    publish(tables, 1)
    publish(tables, 2)
    publish(tables, 3, grace=3600)
    assert len(versions(tables)) == 3  # somebody may be reading them
    now = publish(tables, 4, grace=0)
    assert read(now) == [4]
    kept = 4 if tables.catalog.keeps_history else 2  # the third was the partition until now
    assert len(versions(tables)) == kept


def test_what_a_killed_run_left_goes_after_a_while(tables: Tables) -> None:
    tables.make()
    killed = publishing(tables)
    write(killed.__enter__(), 1)  # nobody leaves the context
    alive = publishing(tables)
    publication = alive.__enter__()
    write(publication, 2)
    published = Path(publication.staging("out"))
    note = (tables.home / tables.name / f"_versions/_notes/{published.name}").read_text()
    publication.commit("out")
    (tables.home / tables.name / f"_versions/_notes/{published.name}").write_text(note)  # it was killed right here
    assert len(versions(tables)) == 2
    with publishing(tables, grace=0):
        assert versions(tables) == {published}
    assert read(tables.there(DAY)) == [2]
    assert notes(tables) == 0


ODD = ["US", "E/ U=%ü+'", "__HIVE_DEFAULT_PARTITION__"]


@pytest.fixture(params=KINDS)
def by_region(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, request.param), tmp_path)


@contextmanager
def publishing_regions(tables: Tables, grace: float = 3600, **said: object) -> Iterator[TablePublication]:
    target = OutputTarget(path_of(tables, f"ds={DAY};region=*"), None, **{"format": "parquet", **said})  # type: ignore[arg-type]
    with TablePublication(tables.store, "daily at now", {"out": target}, grace) as publication:
        yield publication


def write_regions(publication: TablePublication, regions: Mapping[str, int]) -> None:
    """As Spark does: names of folders are escaped."""
    for region, flight in regions.items():
        folder = Path(publication.staging("out"), f"region={quote(region, safe='')}")
        folder.mkdir(parents=True)
        rows = pa.table({"carrier": ["UA"], "flight": pa.array([flight], pa.int64())})
        pq.write_table(rows, folder / "part-0.parquet")


def publish_regions(tables: Tables, regions: Mapping[str, int], grace: float = 3600, **said: object) -> str:
    with publishing_regions(tables, grace, **said) as publication:
        write_regions(publication, regions)
        version = publication.commit("out")
    kind = TableStorage(TableStore(tables.cluster, tables.home, tables.environ))
    assert kind.version(path_of(tables, f"ds={DAY};region=*"), None) == version
    assert version.files == len(regions)
    return version.version


def regions_of(tables: Tables) -> dict[str, int]:
    found = tables.catalog.partitions("default", tables.name, tables.catalog.values("default", tables.name, {}))
    return {values[1]: read(one)[0] for values, one in found.items() if values[0] == DAY}


def test_an_instance_is_as_many_partitions_as_were_written(by_region: Tables) -> None:
    by_region.make()
    first = publish_regions(by_region, dict.fromkeys(ODD, 1))
    assert regions_of(by_region) == dict.fromkeys(ODD, 1)
    other = by_region.land(("2024-01-02", "US"), 9)
    second = publish_regions(by_region, {"US": 2, "DE": 3}, grace=0)
    assert second != first
    assert regions_of(by_region) == {"US": 2, "DE": 3}
    assert by_region.there("2024-01-02", "US") == other
    assert len(versions(by_region)) == 2
    with publishing_regions(by_region, grace=0):
        assert len(versions(by_region)) == (2 if by_region.catalog.keeps_history else 1)
    assert notes(by_region) == 0


def test_what_is_in_no_partition_is_refused(by_region: Tables) -> None:
    by_region.make()
    publish_regions(by_region, {"US": 1})
    with publishing_regions(by_region) as publication:
        write(publication)
        with pytest.raises(StorageError, match=r"has no rows, or no folders region=\.\.\.: an instance is one part"):
            publication.commit("out")
    with publishing_regions(by_region) as publication:
        write(publication, 2)
        write_regions(publication, {"DE": 3})
        with pytest.raises(StorageError, match=r"part-0\.parquet lies in no folder region=.*partitionBy\(region\)$"):
            publication.commit("out")
    with publishing_regions(by_region) as slow:
        write_regions(slow, {"US": 4})
        publish_regions(by_region, {"US": 5})
        with pytest.raises(StorageError, match="changed by somebody else meanwhile: run it again"):
            slow.commit("out")
    assert regions_of(by_region) == {"US": 5}


def test_all_partitions_of_an_instance_are_one_version(by_region: Tables) -> None:
    by_region.make()
    keeps, path = KeptAs("counts", parse_instant(f"{DAY}T00:00Z")), path_of(by_region, f"ds={DAY};region=*")
    store = TableStore(by_region.cluster, by_region.home, by_region.environ, table=TableUri.parse(path))
    first = publish_regions(by_region, {"US": 1, "DE": 1}, keeps=keeps)
    second = publish_regions(by_region, {"US": 2, ODD[1]: 3}, grace=0, keeps=keeps)
    assert [one.version for one in TableStorage(store).kept_versions("counts")] == [first]
    done, is_new = TableStorage(store).restore("counts", OutputTarget(path, None, keeps=keeps), first)
    assert (done.version, is_new, regions_of(by_region)) == (first, True, {"US": 1, "DE": 1})
    assert TableStorage(store).version(path, None).version == first
    (kept,) = TableStorage(store).kept_versions("counts")
    assert kept.version == second
    TableStorage(store).removal(None).remove(StoredLocation("version", kept.path, kept.prefix), kept.path)
    with publishing_regions(by_region, grace=0):
        assert len(versions(by_region)) == 1
    assert regions_of(by_region) == {"US": 1, "DE": 1}
    assert TableStorage(store).kept_versions("counts") == []


def test_a_table_that_lies_elsewhere_has_no_versions(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.make()
    catalog, uri = tables.catalog, TableUri.parse(path_of(tables))
    layout = catalog.layout("default", tables.name)
    assert layout is not None
    monkeypatch.setattr(catalog, "layout", lambda *_: replace(layout, location="sftp://lake/counts"))
    store = TableStore(tables.cluster, tables.home, tables.environ, table=uri)
    store.__dict__["catalog"] = catalog
    assert TableStorage(store).kept_versions("counts") == []
    with (
        pytest.raises(
            StorageError, match=r"lies at sftp://lake/counts, and partitions are written, kept and evicted on"
        ),
        TablePublication(store, "daily", {"out": OutputTarget(str(uri), None, format="parquet")}),
    ):
        pass
