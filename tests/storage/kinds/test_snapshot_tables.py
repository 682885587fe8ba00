"""A whole table of an Iceberg catalog that is replaced in place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, refreshed_at, snapshot_listing, why_not_there
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.landing import collect_snapshot
from falcon_assets.storage.tables.iceberg import IcebergCatalog
from tests.builders import make_feed
from tests.iceberg_rest import ENVIRON
from tests.registries import Tables, endpoint_of

FIRST, SECOND = (parse_instant(f"2013-01-0{day}T00:00Z") for day in (1, 2))
NOW = parse_instant("2013-01-02T05:00Z")
CLOCK = Clock()


class Carriers(Tables):
    """A table without keys, or with some whose values are all of the instance."""

    @property
    def feed(self) -> Feed:
        keys = ";".join(f"{key}=*" for key in self.keys)
        table = {"uri": f"catalog:default:{self.name}{'#' if keys else ''}{keys}"}
        return make_feed(
            snapshot=True, table=table, locations=None, frequency="days(1)", format="parquet", availability_flag=None
        )

    @property
    def path(self) -> str:
        assert self.feed.table
        return self.feed.table.uri

    @property
    def kind(self) -> StorageKind:
        """For one look at it."""
        return kind_of(store_of(self.feed, self.cluster, self.home, ENVIRON))


@pytest.fixture(params=["iceberg", "rest"])
def endpoint(request: pytest.FixtureRequest) -> str:
    return endpoint_of(request, request.param)


@pytest.fixture(params=[(), ("region",)], ids=["whole", "keys"])
def carriers(request: pytest.FixtureRequest, endpoint: str, tmp_path: Path) -> Carriers:
    return Carriers(endpoint, tmp_path, request.param)


def values(carriers: Carriers, region: str = "US") -> tuple[str, ...]:
    return (region,) if carriers.keys else ()


def test_a_change_of_it_is_a_refresh(carriers: Carriers) -> None:
    known: dict[datetime, str | None] = {}

    def collected() -> list[datetime]:
        kind = carriers.kind
        found = list(collect_snapshot(kind, carriers.feed, [(FIRST, NOW)], known, CLOCK, NOW))
        known.update({one.instance: one.signature for one in found})
        assert all(one.version == kind.version(carriers.path, None) for one in found)
        return [one.instance for one in found]

    assert collected() == []
    carriers.make()
    assert collected() == []
    before = datetime.now(UTC) - timedelta(seconds=1)
    carriers.land(values(carriers), 1, 2)
    refreshed = refreshed_at(carriers.kind, carriers.feed, carriers.path, CLOCK)
    assert refreshed is not None
    assert before < refreshed <= datetime.now(UTC)
    assert collected() == [FIRST, SECOND]
    assert collected() == []
    carriers.land(values(carriers, "EU"), 3)
    assert collected() == [SECOND]


def test_what_it_lacks_is_said(carriers: Carriers) -> None:
    def why() -> tuple[bool, str]:
        return why_not_there(carriers.kind, carriers.feed, FIRST, carriers.path, CLOCK)

    at = f"default.{carriers.name} at {carriers.catalog.endpoint}"
    assert why() == (False, f"there is no table {at}")
    carriers.make()
    assert why() == (False, f"there are no rows in {at}")
    carriers.land(values(carriers), 1)
    assert is_there(carriers.kind, carriers.feed, FIRST, carriers.path, CLOCK)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert not is_there(carriers.kind, carriers.feed, later, carriers.path, CLOCK)
    is_begun, said = why_not_there(carriers.kind, carriers.feed, later, carriers.path, CLOCK)
    assert is_begun
    assert said.startswith("snapshot last refreshed at ")


def test_a_table_that_changes_meanwhile_is_looked_at_again_later(
    carriers: Carriers, monkeypatch: pytest.MonkeyPatch
) -> None:
    carriers.make()
    carriers.land(values(carriers), 1)
    look = IcebergCatalog.partitions

    def changed(self: IcebergCatalog, *asked: object) -> object:
        found = look(self, *asked)  # type: ignore[arg-type]
        monkeypatch.setattr(IcebergCatalog, "partitions", look)
        carriers.land(values(carriers), 2)
        return found

    kind = carriers.kind
    monkeypatch.setattr(IcebergCatalog, "partitions", changed)
    with pytest.raises(StorageError, match="changes while it is read"):
        kind.listing(carriers.path, None)
    assert snapshot_listing(carriers.kind, carriers.feed, carriers.path) is not None


def test_a_table_with_keys_that_are_not_said(endpoint: str, tmp_path: Path) -> None:
    keyed, plain = Carriers(endpoint, tmp_path, ("region",)), Carriers(endpoint, tmp_path, ())
    plain.name = keyed.name
    keyed.make()
    with pytest.raises(StorageError, match=r"it is also partitioned by region: add region=\*"):
        plain.kind.is_available(plain.feed, plain.path)


def test_nothing_that_goes_by_instances_finds_it(carriers: Carriers) -> None:
    carriers.make()
    carriers.land(values(carriers), 1)
    with pytest.raises(StorageError, match="is coarser than the frequency"):
        carriers.kind.stored(carriers.feed)
    assert list(carriers.kind.instances(carriers.feed, [(FIRST, NOW)])) == []
