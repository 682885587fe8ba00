"""Instances of tables leave: partitions in one call, files a day later; with both kinds of catalog."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict
from falcon_assets.storage.eviction.evicting import Evicted, Removals, evict, is_untouched
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS
from falcon_assets.storage.tables.partition_names import partition_name
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import make_feed
from tests.iceberg_rest import ENVIRON
from tests.registries import KINDS, Tables, endpoint_of

DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
REGIONS = ["DE", "E/ U=%ü+'"]


class Evicting(Tables):
    """A table with some days of two regions, in folders of the table as others write them."""

    def __init__(self, endpoint: str, home: Path) -> None:
        super().__init__(endpoint, home)
        self.make()
        for number, day in enumerate(DAYS):
            for region in REGIONS:
                self.land((day, region), *range(number + 1))
        validity = {"start": "2024-01-01T00:00Z", "end": "2024-02-01T00:00Z"}
        table = {"uri": f"catalog:default:{self.name}#ds=${{YEAR}}-${{MONTH}}-${{DAY}};region=*"}
        self.feed: Feed = make_feed(
            name="counts",
            frequency="days(1)",
            format="parquet",
            locations=None,
            availability_flag=None,
            table=table,
            clusters=[{"name": "primary", "validity": validity}],
        )
        self.opened = store_of(self.feed, self.cluster, home, ENVIRON)

    def files(self, *flights: int) -> str:
        written = Path(super().files(*flights).removeprefix("file://"))
        place = self.home / self.name / written.name
        place.parent.mkdir(exist_ok=True)
        written.rename(place)
        return f"file://{place}"

    @property
    def stored(self) -> list[StoredInstance]:
        return kind_of(self.opened).stored(self.feed)

    @property
    def days(self) -> list[str]:
        return sorted({values[0] for values in self.catalog.values("default", self.name, {})})

    @property
    def data(self) -> int:
        return len(list((self.home / self.name).rglob("*.parquet")))

    def evict(self, *found: StoredInstance) -> list[Evicted]:
        return list(evict(self.opened, [Verdict(one, "delete", "old") for one in found], None))

    def archive(self) -> list[Evicted]:
        """The first day."""
        return list(evict(self.opened, [Verdict(self.stored[0], "archive", "old", "/archive/1")], None, self.opened))

    def later(self) -> None:
        """A day goes by."""
        for note in (self.home / self.name / "_versions/_notes").iterdir():
            before = note.stat().st_mtime - GRACE_SECONDS - 1
            os.utime(note, (before, before))


@pytest.fixture(params=KINDS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Evicting:
    return Evicting(endpoint_of(request, request.param), tmp_path)


def test_an_instance_is_all_its_partitions(tables: Evicting) -> None:
    found = tables.stored
    assert [one.nominal.strftime("%Y-%m-%d") for one in found] == DAYS
    assert [[location.path for location in one.locations] for one in found] == [
        [f"catalog:default:{tables.name}#ds={day};region=*"] for day in DAYS
    ]
    files, size = Removals(tables.opened, None).measure(found[0])
    assert (files, size > 0) == (2, True)


def test_partitions_go_at_once_and_their_files_a_day_later(tables: Evicting) -> None:
    first, second, _ = tables.stored
    gone = tables.evict(first, second)
    assert [(one.nominal, one.files, one.error) for one in gone] == [
        (first.nominal, 2, None),
        (second.nominal, 2, None),
    ]
    assert (tables.days, tables.data) == (DAYS[2:], 6)
    kind_of(tables.opened).purge()
    assert (tables.data, kind_of(tables.opened).is_purged()) == (6, True)
    tables.later()
    assert not kind_of(tables.opened).is_purged()
    kind_of(tables.opened).purge()
    assert (tables.days, tables.data, kind_of(tables.opened).is_purged()) == (DAYS[2:], 2, True)
    assert tables.there(DAYS[2], REGIONS[0]) is not None


def test_what_went_already_goes_once(tables: Evicting) -> None:
    """As after a kill that came before the pass wrote down that it is done."""
    first = tables.stored[0]
    assert is_untouched(tables.opened, first, None)
    tables.evict(first)
    assert not is_untouched(tables.opened, first, None)
    assert [(one.files, one.error) for one in tables.evict(first)] == [(0, None)]


def test_a_kill_before_the_call_leaves_the_partitions_and_their_files(
    tables: Evicting, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tables.stored[0]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(tables.opened.catalog), "drop", killed)  # type: ignore[attr-defined]
        tables.evict(first)
    tables.later()
    kind_of(tables.opened).purge()
    assert (tables.days, tables.data, is_untouched(tables.opened, first, None)) == (DAYS, 6, True)
    tables.evict(first)
    tables.later()
    kind_of(tables.opened).purge()
    assert (tables.days, tables.data) == (DAYS[1:], 4)


def test_what_was_replaced_meanwhile_stays(tables: Evicting) -> None:
    first = tables.stored[0]
    catalog, found = tables.catalog, [tables.there(DAYS[0], region) for region in REGIONS]
    now = tables.land((DAYS[0], REGIONS[0]), 7, 8, 9)
    with pytest.raises(StorageError, match="was changed by somebody else meanwhile"):
        catalog.drop("default", tables.name, [one for one in found if one])
    assert tables.there(DAYS[0], REGIONS[0]) == now
    assert tables.there(DAYS[0], REGIONS[1]) == found[1]
    assert tables.evict(first)[0].error is None


def test_a_managed_table_keeps_its_files_for_a_day_too(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = Evicting(endpoint_of(request, "hive"), tmp_path)
    with tables.catalog._client("") as client:  # type: ignore[attr-defined]
        table = client.get_table("default", tables.name)
        table.tableType, table.parameters["EXTERNAL"] = "MANAGED_TABLE", "FALSE"
        client.alter_table("default", tables.name, table)
        assert client.get_table("default", tables.name).tableType == "MANAGED_TABLE"
    tables.evict(tables.stored[0])
    assert (tables.days, tables.data) == (DAYS[1:], 6)


def test_files_in_the_folder_of_another_partition_stay(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Which may be any folder: here it is that of the whole table."""
    tables = Evicting(endpoint_of(request, "hive"), tmp_path)
    whole = f"file://{tables.home / tables.name}"
    tables.catalog.switch("default", tables.name, ("all", REGIONS[0]), whole, {}, None)
    tables.evict(tables.stored[0])
    tables.later()
    kind_of(tables.opened).purge()
    assert (tables.days, tables.data) == ([*DAYS[1:], "all"], 6)


def test_a_folder_that_another_partition_has_too_stays(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = Evicting(endpoint_of(request, "hive"), tmp_path)
    first, region = tables.there(DAYS[0], REGIONS[0]), REGIONS[0]
    assert first is not None
    tables.catalog.switch("default", tables.name, ("latest", region), first.places[0], {}, None)
    tables.evict(tables.stored[0])
    tables.later()
    kind_of(tables.opened).purge()
    assert (tables.days, tables.data) == ([*DAYS[1:], "latest"], 5)
    assert list(Path(first.places[0].removeprefix("file:")).rglob("*.parquet"))
    assert kind_of(tables.opened).is_purged()


def test_files_elsewhere_stay(tables: Evicting) -> None:
    elsewhere = tables.home / "elsewhere"
    shutil.move(tables.files(1).removeprefix("file://"), elsewhere)
    values = ("2024-01-04", "DE")
    tables.catalog.switch("default", tables.name, values, f"file://{elsewhere}", {}, None)
    last = tables.stored[-1]
    tables.evict(last)
    kind_of(tables.opened).purge()
    assert tables.days == DAYS
    assert len(list(elsewhere.glob("*.parquet"))) == 1


def test_a_whole_table_is_never_evicted(tables: Evicting) -> None:
    path = f"catalog:default:{tables.name}#ds=*;region=*"
    whole = StoredInstance(tables.stored[0].nominal, (StoredLocation("data", path, ""),))
    error = tables.evict(whole)[0].error
    assert error is not None and "it is the whole table" in str(error)
    assert tables.days == DAYS


def test_several_partitions_are_archived_in_the_folders_that_spark_names(tables: Evicting) -> None:
    (gone,) = tables.archive()
    assert (gone.files, gone.error, tables.days) == (2, None, DAYS[1:])
    archived = tables.home / "data/primary/archive/1"
    folders = {partition_name(["region"], (region,)) for region in REGIONS}
    assert {str(file.parent.relative_to(archived)) for file in archived.rglob("*.parquet")} == folders


def test_an_instance_is_archived_before_its_partition_is_dropped(
    tables: Evicting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in between, the same again completes it; what others replaced meanwhile stays."""
    tables.catalog.drop("default", tables.name, [one for one in [tables.there(DAYS[0], REGIONS[1])] if one])
    archived = tables.home / "data/primary/archive/1"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(tables.opened.catalog), "drop", killed)  # type: ignore[attr-defined]
        tables.archive()
    rows = [pq.read_table(file)["flight"].to_pylist() for file in archived.rglob("*.parquet")]
    assert (tables.days, rows) == (DAYS, [[0]])
    (gone,) = tables.archive()
    assert (gone.files, gone.error, tables.days) == (1, None, DAYS[1:])
    assert len(list(archived.rglob("*.parquet"))) == 1
    copies = Path(tables.opened.staging, "copies")
    assert [one for one in copies.rglob("*") if one.is_file() and one.suffix != ".lock"] == []


def test_a_table_that_is_not_there_has_nothing(tables: Evicting) -> None:
    none = TableStore(tables.cluster, tables.home, ENVIRON, table=TableUri.parse("catalog:default:none#ds=*"))
    kind_of(none).purge()
    assert kind_of(none).is_purged()
