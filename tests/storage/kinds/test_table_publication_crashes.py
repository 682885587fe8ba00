"""A reader of a table sees the old partition or the new one, wherever the publisher is killed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.transport.TTransport import TBufferedTransport

from falcon_assets.model.instant import parse_instant
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.table_storage import restored
from falcon_assets.storage.kinds.tables.version_folders import VersionFolders
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore
from tests.iceberg_rest import ENVIRON
from tests.processes import killed_before
from tests.registries import CATALOGS, Tables, endpoint_of

pytestmark = pytest.mark.soak
DAY = "2024-01-01"
KEEPS = KeptAs("regions", parse_instant(f"{DAY}T00:00Z"))
STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree", "socket.connect", "open"}
"""Audit events of what touches the table's folder or calls the metastore."""

CALL = "thrift.call"
"""One of ours, before each call of a metastore: they go over one connection, which Python says nothing of."""


@pytest.fixture(autouse=True)
def calls_are_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = TBufferedTransport.flush

    def told(transport: TBufferedTransport) -> None:
        sys.audit(CALL)
        flush(transport)

    monkeypatch.setattr(TBufferedTransport, "flush", told)


def publication(
    tables: Tables, generation: int, grace: float = 3600, keys: str = "", keeps: KeptAs | None = None
) -> TablePublication:
    """By a store of its own: a process that is killed shares no connection with the tests."""
    target = OutputTarget(f"catalog:default:{tables.name}#ds={DAY}{keys}", None, format="parquet", keeps=keeps)
    store = TableStore(tables.cluster, tables.home, ENVIRON)
    return TablePublication(store, f"generation {generation}", {"out": target}, grace)


def publish(tables: Tables, generation: int) -> None:
    with publication(tables, generation) as made:
        write(made, generation)
        made.commit("out")


def write(made: TablePublication, generation: int) -> None:
    folder = Path(made.staging("out"))
    folder.mkdir()
    rows = pa.table({"carrier": ["UA"], "flight": pa.array([generation], pa.int64())})
    for part in range(2):
        pq.write_table(rows, folder / f"part-{part}.parquet")


def seen(tables: Tables) -> int:
    """The generation that is the partition; it is whole."""
    partition = tables.there(DAY)
    assert partition is not None
    places = [Path(urlsplit(place).path) for place in partition.places]
    files = [file for place in places for file in (sorted(place.iterdir()) if place.is_dir() else [place])]
    rows = [number for file in files for number in pq.read_table(file)["flight"].to_pylist()]
    assert len(rows) == 2 and len(set(rows)) == 1
    return int(rows[0])


@pytest.mark.parametrize("kind", CATALOGS)
def test_killed_at_every_step(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path, keys=("ds",))
    tables.make()
    publish(tables, 0)
    outcomes: Counter[str] = Counter()
    for step in count(1):
        before = seen(tables)
        was_killed = killed_before(step, STEPS, partial(publish, tables, step))
        now = seen(tables)
        assert now in ((before, step) if was_killed else (step,))
        if not was_killed:
            break
        outcomes["new" if now == step else "old"] += 1
        with publication(tables, step, grace=0):  # removes what the killed one left, and nothing else
            pass
        assert seen(tables) == now
        assert list((tmp_path / tables.name / "_versions/_notes").iterdir()) == []
    assert outcomes.keys() == {"old", "new"}


@pytest.mark.parametrize("kind", CATALOGS)
def test_killed_while_it_publishes_what_was_held(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path, keys=("ds",))
    tables.make()
    publish(tables, 0)

    def publish_held(held: HeldData) -> None:
        target = OutputTarget(f"catalog:default:{tables.name}#ds={DAY}", None, format="parquet")
        store = TableStore(tables.cluster, tables.home, ENVIRON)
        with TablePublication(store, "held", {"out": target}, held={"out": held}) as made:
            made.commit("out")

    outcomes = Counter[str]()
    for step in count(1):
        with publication(tables, step) as made:
            write(made, step)
            held = made.hold("out")
        before = seen(tables)
        was_killed = killed_before(step, STEPS, partial(publish_held, held))
        now = seen(tables)
        assert now in ((before, step) if was_killed else (step,))
        if not was_killed:
            break
        outcomes["new" if now == step else "old"] += 1
        publish_held(held)
        assert seen(tables) == step
        with publication(tables, step, grace=0):
            pass
        assert seen(tables) == step
        assert list((tmp_path / tables.name / "_versions/_notes").iterdir()) == []
    assert outcomes.keys() == {"old", "new"}


def regions_of(generation: int) -> set[str]:
    """One that stays, one that goes with the next generation, one that comes with it."""
    return {"all", f"g{generation}", f"g{generation + 1}"}


def publish_regions(tables: Tables, generation: int, keeps: KeptAs | None = None) -> None:
    with publication(tables, generation, keys=";region=*", keeps=keeps) as made:
        for region in regions_of(generation):
            folder = Path(made.staging("out"), f"region={region}")
            folder.mkdir(parents=True)
            rows = pa.table({"carrier": ["UA"], "flight": pa.array([generation], pa.int64())})
            pq.write_table(rows, folder / "part-0.parquet")
        made.commit("out")


def seen_regions(tables: Tables) -> dict[str, int]:
    """The generation of each partition."""
    found = tables.catalog.partitions("default", tables.name, tables.catalog.values("default", tables.name, {}))
    return generations(found.values())


def generations(partitions: Iterable[Partition]) -> dict[str, int]:
    files = {one.values[1]: Path(urlsplit(one.places[0]).path) for one in partitions}
    return {
        region: pq.read_table(next(iter(place.iterdir())) if place.is_dir() else place)["flight"][0].as_py()
        for region, place in files.items()
    }


@pytest.mark.parametrize("kind", CATALOGS)
def test_killed_at_every_step_of_several_partitions(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path)
    tables.make()
    publish_regions(tables, 0)
    outcomes: Counter[str] = Counter()
    for step in count(1):
        before, after = (dict.fromkeys(regions_of(one), one) for one in (step - 1, step))
        assert seen_regions(tables) == before
        was_killed = killed_before(step, {*STEPS, CALL}, partial(publish_regions, tables, step))
        now = seen_regions(tables)
        if not was_killed:
            assert now == after
            break
        assert all(now.get(region) in (before.get(region), after.get(region)) for region in {*before, *after})
        outcomes["new" if now == after else "old" if now == before else "between"] += 1
        publish_regions(tables, step)  # it is tried again
        assert seen_regions(tables) == after
    assert outcomes.keys() >= {"old", "new"}
    assert (outcomes["between"] == 0) == tables.catalog.keeps_history
    with publication(tables, step, grace=0, keys=";region=*"):
        pass
    assert list((tmp_path / tables.name / "_versions/_notes").iterdir()) == []


def kept_by(tables: Tables) -> KeptPartitions:
    layout = tables.catalog.layout("default", tables.name)
    assert layout is not None
    return KeptPartitions(VersionFolders.of(TableStore(tables.cluster, tables.home, ENVIRON), layout))


def regions_kept(tables: Tables) -> list[dict[str, int]]:
    """The generation of each partition, of the versions that are kept."""
    versions = kept_by(tables)
    found = (versions.read(one.prefix) for one, _ in versions.of_feed(KEEPS.feed))
    return [generations(one.partitions) for one in found if one]


@pytest.mark.parametrize("kind", CATALOGS)
def test_what_a_killed_run_left_between_two_versions_is_none(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path)
    tables.make()
    publish_regions(tables, 0, KEEPS)
    whole = [dict.fromkeys(regions_of(one), one) for one in range(1)]
    between = 0
    for step in count(1):
        whole.append(dict.fromkeys(regions_of(step), step))
        was_killed = killed_before(step, {*STEPS, CALL}, partial(publish_regions, tables, step, KEEPS))
        between += seen_regions(tables) not in whole
        publish_regions(tables, step, KEEPS)
        assert seen_regions(tables) == whole[-1]
        kept = regions_kept(tables)
        assert all(one in whole for one in kept)
        assert whole[-2] in kept
        if not was_killed:
            break
    assert (between == 0) == tables.catalog.keeps_history
    assert list((tmp_path / tables.name / "_versions/_switches").rglob("2*")) == []


def test_a_run_that_is_killed_after_a_killed_one_keeps_nothing_of_it(hive: str, tmp_path: Path) -> None:
    tables = Tables(hive, tmp_path)
    tables.make()
    publish_regions(tables, 0, KEEPS)
    whole = [dict.fromkeys(regions_of(0), 0)]
    numbers = count(1)

    def published(step: int | None = None) -> bool:
        """Whether that run, with a generation of its own, was killed."""
        generation = next(numbers)
        whole.append(dict.fromkeys(regions_of(generation), generation))
        work = partial(publish_regions, tables, generation, KEEPS)
        if step is None:
            work()
        return step is not None and killed_before(step, {*STEPS, CALL}, work)

    between = next(step for step in count(1) if published(step) and seen_regions(tables) not in whole)
    for step in count(1):
        published()
        assert published(between)
        was_killed = published(step)
        published()
        kept = regions_kept(tables)
        assert kept and all(one in whole for one in kept)
        if not was_killed:
            break
        for one, _ in kept_by(tables).of_feed(KEEPS.feed):
            kept_by(tables).drop(one.prefix)


@pytest.mark.parametrize("kind", CATALOGS)
def test_what_a_killed_restore_left_between_two_versions_is_none(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path)
    tables.make()
    for generation in (0, 1):
        publish_regions(tables, generation, KEEPS)
    whole = [dict.fromkeys(regions_of(one), one) for one in range(2)]
    between = 0
    for step in count(1):
        was_killed = killed_before(step, {*STEPS, CALL}, partial(restore_regions, tables, whole))
        between += seen_regions(tables) not in whole
        assert all(one in whole for one in regions_kept(tables))
        restore_regions(tables, whole)
        assert seen_regions(tables) in whole
        assert all(one in whole for one in regions_kept(tables))
        if not was_killed:
            break
    assert (between == 0) == tables.catalog.keeps_history


def restore_regions(tables: Tables, whole: list[dict[str, int]]) -> None:
    """The one of both that is not there now, or is not whole."""
    store = TableStore(tables.cluster, tables.home, ENVIRON)
    there = seen_regions(tables)
    versions = kept_by(tables)
    found = {one.version: versions.read(one.prefix) for one, _ in versions.of_feed(KEEPS.feed)}
    wanted = next(key for key, one in found.items() if one and generations(one.partitions) != there)
    target = OutputTarget(f"catalog:default:{tables.name}#ds={DAY};region=*", None, format="parquet", keeps=KEEPS)
    partitions = store.catalog.partitions("default", tables.name, store.catalog.values("default", tables.name, {}))
    restored(store, "restore", target, wanted, [*partitions.values()], dry_run=False)
