"""Instances that are partitions of tables: the same tests with both kinds of catalog."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.data_usage import normal_place
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.kinds.available_instances import AvailableInstances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.landing import Collected, collect
from falcon_assets.storage.tables.catalog import TableCatalog
from tests.builders import make_feed
from tests.hours import START
from tests.registries import KINDS, Tables, endpoint_of

DAY = timedelta(days=1)


@pytest.fixture(params=KINDS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, request.param), tmp_path)


def feed_of(tables: Tables, region: str) -> Feed:
    uri = f"catalog:default:{tables.name}#DS=${{YEAR}}-${{MONTH}}-${{DAY}};region={region}"
    declared: dict[str, Any] = {"locations": None, "table": {"uri": uri}, "availability_flag": None}
    return make_feed(**declared, frequency="days(1)", format="parquet")


def collected(tables: Tables, feed: Feed, known: dict[datetime, str | None] | None = None) -> Iterator[Collected]:
    return collect(kind_of(tables.store), feed, [(START, START + 30 * DAY)], known or {}, START)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tables: Tables) -> list[str]:
    """What the catalog is asked."""
    asked: list[str] = []
    for name in ("layout", "values", "partitions"):
        real = getattr(type(tables.catalog), name)

        def counting(self: TableCatalog, *args: Any, name: str = name, real: Any = real) -> Any:
            asked.append(name)
            return real(self, *args)

        monkeypatch.setattr(type(tables.catalog), name, counting)
    return asked


def test_instances_that_are_there_are_found_by_a_few_calls(tables: Tables, calls: list[str]) -> None:
    feed = feed_of(tables, "US")
    assert list(collected(tables, feed)) == []  # no table yet
    tables.make()
    for day in range(1, 8):
        tables.land((f"2013-01-{day:02}", "US"), day)
    tables.land(("2013-01-01", "EU"), 1)
    tables.land(("not-a-day", "US"), 1)
    calls.clear()
    found = list(collected(tables, feed))
    assert [one.instance for one in found] == [START + n * DAY for n in range(7)]
    assert found[0].path == f"catalog:default:{tables.name}#DS=2013-01-01;region=US"
    assert found[0].version.files == 1
    assert len(calls) <= 4  # the table, the names, and the partitions all at once
    known: dict[datetime, str | None] = {one.instance: one.signature for one in found}
    assert list(collected(tables, feed, known)) == []
    tables.land(("2013-01-03", "US"), 4, 5)
    (changed,) = collected(tables, feed, known)
    assert changed.instance == START + 2 * DAY
    assert changed.version.version != found[2].version.version
    (visit,) = kind_of(tables.store).visits(feed, START + 2 * DAY, None)  # type: ignore[arg-type]
    assert [instance for instance, _ in visit.found] == [START, START + DAY, START + 2 * DAY]


def test_an_instance_is_all_of_its_partitions(tables: Tables) -> None:
    feed = feed_of(tables, "*")
    tables.make()
    tables.land(("2013-01-01", "US"), 1)
    (alone,) = collected(tables, feed)
    path = InstancePaths(feed, tables.cluster).data(START)
    assert alone.path == path
    tables.land(("2013-01-01", "EU"), 2)
    (both,) = collected(tables, feed, {START: alone.signature})
    assert both.version.files == 2 and both.version.version != alone.version.version
    assert kind_of(tables.store).version(path, None) == both.version
    tables.land(("2013-01-01", "EU"), 3)
    assert kind_of(tables.store).version(path, None).version != both.version.version


def test_a_partition_outside_of_the_folder_of_its_table_is_known(tables: Tables, calls: list[str]) -> None:
    feed, kind = feed_of(tables, "US"), kind_of(tables.store)
    assert kind.instance_at(feed, "/anywhere") is None
    tables.make()
    there = [normal_place(tables.land((f"2013-01-{day:02}", "US"), day).places[0]) for day in (1, 2, 3)]
    assert not any(place.startswith(f"{tables.home}/{tables.name}/") for place in there)
    kind = kind_of(tables.store)
    calls.clear()
    assert [kind.instance_at(feed, place) for place in there] == [START, START + DAY, START + 2 * DAY]
    assert kind.instance_at(feed, "/anywhere/else") is None
    assert calls.count("values") == 1


def test_the_latest_instances_are_found(tables: Tables) -> None:
    feed = feed_of(tables, "US")
    tables.make()
    for day in (1, 2):
        tables.land((f"2013-01-{day:02}", "US"), day)
    there = AvailableInstances(kind_of(tables.store), feed)
    assert list(there.backwards(START, START + 200 * DAY)) == [START + DAY, START]


def test_what_is_missing_is_told(tables: Tables) -> None:
    feed = feed_of(tables, "US")
    path = InstancePaths(feed, tables.cluster).data(START)
    at = tables.catalog.endpoint
    assert kind_of(tables.store).why_unavailable(feed, path) == (
        False,
        f"there is no table default.{tables.name} at {at}",
    )
    tables.make()
    assert not kind_of(tables.store).is_available(feed, path)
    assert kind_of(tables.store).why_unavailable(feed, path) == (
        False,
        f"there is no partition DS=2013-01-01;region=US of default.{tables.name} at {at}",
    )
    with pytest.raises(StorageError, match="there is nothing at catalog:"):
        kind_of(tables.store).version(path, None)


def test_a_table_that_is_partitioned_otherwise_is_refused(tables: Tables) -> None:
    tables.make()
    feed = make_feed(
        locations=None, availability_flag=None, table={"uri": f"catalog:default:{tables.name}#ds=${{YEAR}}"}
    )
    with pytest.raises(StorageError, match=r"is there, but it is also partitioned by region: add region=\*$"):
        list(collected(tables, feed))
