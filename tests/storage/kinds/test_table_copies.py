"""Copies between tables of two registries, and between tables and files."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import publish_if_complete
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy
from falcon_assets.storage.eviction.unfinished_copies import remove_unfinished, unfinished_copies
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import make_cluster
from tests.iceberg_rest import ENVIRON
from tests.processes import killed_before
from tests.registries import KINDS, Tables, endpoint_of

DAY = "2024-01-01"


def output(tables: Tables) -> OutputTarget:
    return OutputTarget(f"catalog:default:{tables.name}#ds={DAY}", None, format="parquet", makes_table=True)


def copied(
    source: ClusterStore, path: str, target: ClusterStore, to: OutputTarget
) -> tuple[CopyResult, DataVersion | None]:
    """As a replication does; by stores of its own."""
    part = kind_of(target).copy_target(to, "primary")
    with InstanceCopy(kind_of(source), path, part, lambda _: True, ReplicationOptions()) as copy:
        result = copy.finish(copy.run_here())
    return result, publish_if_complete("flights", [kind_of(target).copy_target(to, "primary")])


def between(source: Tables, target: Tables) -> tuple[CopyResult, DataVersion | None]:
    stores = [TableStore(one.cluster, one.home, ENVIRON) for one in (source, target)]
    return copied(stores[0], output(source).path, stores[1], output(target))


def rows(partition: Partition | None) -> list[int]:
    assert partition is not None
    places = [Path(urlsplit(place).path) for place in partition.places]
    files = [file for place in places for file in (sorted(place.rglob("*.parquet")) if place.is_dir() else [place])]
    return sorted(number for file in files for number in pq.read_table(file, partitioning=None)["flight"].to_pylist())


@pytest.fixture(params=[("hive", "hive"), ("hive", "iceberg"), ("iceberg", "hive")], ids="-to-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Tables, Tables]:
    """A table with a day in it, and another that is not there."""
    source, target = (
        Tables(endpoint_of(request, kind), tmp_path / name, keys=("ds",))
        for kind, name in zip(request.param, ("primary", "backup"), strict=True)
    )
    source.make()
    source.land((DAY,), 1, 2)
    return source, target


def test_from_table_to_table(pair: tuple[Tables, Tables]) -> None:
    source, target = pair
    result, version = between(source, target)
    there = target.there(DAY)
    assert (rows(there), result.files_copied, result.to_publish) == ([1, 2], 1, True)
    assert version is not None and there is not None and version.version == there.version
    made, theirs = (one.catalog.layout("default", one.name) for one in pair)
    assert made is not None and theirs is not None
    assert (made.columns, made.key_names, made.format) == (theirs.columns, theirs.key_names, theirs.format)
    source.land((DAY,), 1, 2, 3)
    result, late = between(source, target)
    assert (rows(target.there(DAY)), late != version) == ([1, 2, 3], True)


def test_what_is_the_same_is_not_published_again(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source, target = (Tables(endpoint_of(request, "hive"), tmp_path / name, keys=("ds",)) for name in "ab")
    source.make()
    source.land((DAY,), 1, 2)
    _, version = between(source, target)
    result, again = between(source, target)
    assert (result.to_publish, result.files_copied, result.files_skipped, again) == (False, 0, 1, version)


def test_what_changes_meanwhile_is_not_published(pair: tuple[Tables, Tables]) -> None:
    source, target = pair
    part = kind_of(target.store).copy_target(output(target), "primary")
    options = ReplicationOptions()
    with InstanceCopy(kind_of(source.store), output(source).path, part, lambda _: True, options) as copy:
        done = copy.run_here()
        source.land((DAY,), 7)
        with pytest.raises(StorageError, match="changed while it was copied"):
            copy.finish(done)
    assert target.catalog.layout("default", target.name) is None
    between(source, target)
    assert rows(target.there(DAY)) == [7]


def test_what_somebody_else_publishes_meanwhile_stays(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source, target = (Tables(endpoint_of(request, "hive"), tmp_path / name, keys=("ds",)) for name in "ab")
    source.make()
    target.make()
    source.land((DAY,), 1)
    target.land((DAY,), 5)
    part = kind_of(target.store).copy_target(output(target), "primary")
    with InstanceCopy(kind_of(source.store), output(source).path, part, lambda _: True, ReplicationOptions()) as copy:
        copy.finish(copy.run_here())
    assert rows(target.there(DAY)) == [5]
    assert publish_if_complete("flights", [kind_of(target.store).copy_target(output(target), "primary")])
    assert rows(target.there(DAY)) == [1]


def test_from_a_table_to_files_and_back(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source, back = (Tables(endpoint_of(request, "hive"), tmp_path / name, keys=("ds",)) for name in "ab")
    source.make()
    source.land((DAY,), 1, 2)
    files = ClusterStore(make_cluster(), tmp_path / "c", {})
    result, _ = copied(source.store, output(source).path, files, OutputTarget("/days/one", "_SUCCESS"))
    assert result.verification == "checksum"
    assert Path(files.path("/days/one/_SUCCESS")).exists()
    copied(files, "/days/one", back.store, OutputTarget(output(back).path, "_SUCCESS", None, "parquet", True))
    assert rows(back.there(DAY)) == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_hold_the_key_are_copied_without_it(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """As PyIceberg writes them, with numbers of columns that mean others in another table."""
    source = Tables(endpoint_of(request, "iceberg"), tmp_path / "a", keys=("ds",))
    target = Tables(endpoint_of(request, kind), tmp_path / "b", keys=("ds",))
    source.make()
    with opened(source).update_schema() as update:
        update.move_first("ds")
    columns = pa.schema([("ds", pa.string()), *Tables.COLUMNS])
    opened(source).append(pa.table({"ds": [DAY] * 2, "carrier": ["UA", "AA"], "flight": [1, 2]}, columns))
    between(source, target)
    there = target.there(DAY)
    assert rows(there) == [1, 2] and there is not None
    layout = target.catalog.layout("default", target.name)
    assert layout is not None
    assert ([one.name for one in layout.columns], layout.key_names) == (["carrier", "flight"], ("ds",))
    places = [Path(urlsplit(place).path) for place in there.places]
    (file,) = [file for place in places for file in (sorted(place.rglob("*.parquet")) if place.is_dir() else [place])]
    assert pq.read_schema(file).names == ["carrier", "flight"]
    if kind == "iceberg":
        found = opened(target).scan().to_arrow().to_pylist()
        assert sorted((row["ds"], row["carrier"], row["flight"]) for row in found) == [(DAY, "AA", 2), (DAY, "UA", 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_of_own_and_foreign_files_is_copied(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    source = Tables(endpoint_of(request, "iceberg"), tmp_path / "a", keys=("ds",))
    target = Tables(endpoint_of(request, kind), tmp_path / "b", keys=("ds",))
    source.make()
    with TablePublication(source.store, "daily", {"out": output(source)}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir()
        pq.write_table(pa.table({"carrier": ["UA"], "flight": [1]}, Tables.COLUMNS), folder / "part-0.parquet")
        publication.commit("out")
    columns = pa.schema([*Tables.COLUMNS, ("ds", pa.string())])
    opened(source).append(pa.table({"carrier": ["AA"], "flight": [2], "ds": [DAY]}, columns))
    result, _ = between(source, target)
    assert (rows(target.there(DAY)), result.files_copied) == ([1, 2], 2)


def opened(tables: Tables) -> Table:
    catalog: Catalog = tables.catalog._catalog  # type: ignore[attr-defined]
    return catalog.load_table(("default", tables.name))


def test_what_is_staged_of_what_never_came_goes(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source, target = (Tables(endpoint_of(request, "hive"), tmp_path / name, keys=("ds",)) for name in "ab")
    source.make()
    source.land((DAY,), 1)
    part = kind_of(target.store).copy_target(output(target), "primary")
    with InstanceCopy(kind_of(source.store), output(source).path, part, lambda _: True, ReplicationOptions()) as copy:
        copy.run_here()
    (left,) = unfinished_copies(target.store)
    assert (left.path, left.sources) == (output(target).path, ("primary",))
    assert Path(part.folder).exists()
    assert remove_unfinished(target.store, left, None)
    assert (unfinished_copies(target.store), Path(part.folder).exists()) == ([], False)


@pytest.mark.parametrize("kinds", [("hive", "iceberg"), ("iceberg", "hive"), ("hive", "hive")], ids="-to-".join)
def test_an_instance_of_several_partitions_is_copied(
    request: pytest.FixtureRequest, tmp_path: Path, kinds: tuple[str, str]
) -> None:
    source, target = (
        Tables(endpoint_of(request, kind), tmp_path / name) for kind, name in zip(kinds, "ab", strict=True)
    )
    source.make()
    odd = "E/ U=%ü+'"

    def path(tables: Tables) -> str:
        return f"catalog:default:{tables.name}#ds={DAY};region=*"

    def copy() -> CopyResult:
        stores = [TableStore(one.cluster, one.home, ENVIRON) for one in (source, target)]
        to = OutputTarget(path(target), None, format="parquet", makes_table=True)
        result, version = copied(stores[0], path(source), stores[1], to)
        now = kind_of(TableStore(target.cluster, target.home, ENVIRON))
        assert version in (None, now.version(path(target), None))
        return result

    def there() -> dict[str, list[int]]:
        values = target.catalog.values("default", target.name, {})
        return {one[1]: rows(target.there(*one)) for one in values}

    source.land((DAY, "us"), 1)
    source.land((DAY, odd), 2, 3)
    source.land(("2024-01-02", "us"), 9)
    assert copy().files_copied == 2
    assert there() == {"us": [1], odd: [2, 3]}
    again = copy()
    assert (again.to_publish, again.files_copied) in {(False, 0), (True, 2)}  # Iceberg's come as a whole
    gone = source.there(DAY, "us")
    assert gone is not None
    source.catalog.drop("default", source.name, [gone])
    source.land((DAY, "de"), 4)
    copy()
    assert there() == {odd: [2, 3], "de": [4]}
    files = ClusterStore(make_cluster(), tmp_path / "c", {})
    copied(TableStore(source.cluster, source.home, ENVIRON), path(source), files, OutputTarget("/days/one", "_SUCCESS"))
    assert {one.name for one in Path(files.path("/days/one")).iterdir()} == {
        "region=de",
        "region=E%2F U%3D%25ü+%27",
        "_SUCCESS",
    }
    back = Tables(endpoint_of(request, kinds[0]), tmp_path / "d")
    to = OutputTarget(path(back), "_SUCCESS", None, "parquet", makes_table=True)
    copied(files, "/days/one", TableStore(back.cluster, back.home, ENVIRON), to)
    assert rows(back.there(DAY, odd)) == [2, 3]


STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree", "socket.connect", "os.link"}


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_step(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    source = Tables(endpoint_of(request, "hive"), tmp_path / "a", keys=("ds",))
    target = Tables(endpoint_of(request, kind), tmp_path / "b", keys=("ds",))
    source.make()
    source.land((DAY,), 0)
    between(source, target)
    outcomes: Counter[str] = Counter()
    for step in count(1):
        before = rows(target.there(DAY))
        source.land((DAY,), step, step)
        was_killed = killed_before(step, STEPS, partial(between, source, target))
        now = rows(target.there(DAY))
        assert now in ((before, [step, step]) if was_killed else ([step, step],))
        if not was_killed:
            break
        outcomes["new" if now == [step, step] else "old"] += 1
        if step % 5 == 0:  # and what comes after it goes on with it
            between(source, target)
            assert rows(target.there(DAY)) == [step, step]
    assert outcomes.keys() == {"old", "new"}
