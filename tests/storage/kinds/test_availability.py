from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.available_instances import AvailableInstances
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster, make_feed
from tests.hours import START
from tests.properties import examples

CLUSTER = make_cluster()
END = datetime(2014, 1, 1, tzinfo=UTC)
TEMPLATES = ["/${YEAR}/${MONTH}/${DAY}/${HOUR}", "/x/${YEAR}${MONTH}/${DAY}-${HOUR}"]


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    return ClusterStore(CLUSTER, tmp_path, {})


def touch(store: ClusterStore, path: str) -> None:
    file = Path(store.path(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def at(day: int, hour: int = 0, month: int = 1) -> datetime:
    return datetime(2013, month, day, hour, tzinfo=UTC)


def found(store: ClusterStore, feed: Feed, first: datetime = START, last: datetime = END) -> list[datetime]:
    listed = kind_of(store).instances(feed, [(first, last)])
    return sorted(instance for instance, path in listed if kind_of(store).is_available(feed, path))


def test_the_flag_says_complete(store: ClusterStore) -> None:
    feed = make_feed()
    touch(store, "raw/flights/2013/01/01/00/part-0")
    assert not kind_of(store).is_available(feed, "/raw/flights/2013/01/01/00")
    touch(store, "raw/flights/2013/01/01/00/_SUCCESS")
    assert kind_of(store).is_available(feed, "/raw/flights/2013/01/01/00")
    Path(store.path("raw/flights/2013/01/01/01/_SUCCESS")).mkdir(parents=True)
    assert not kind_of(store).is_available(feed, "/raw/flights/2013/01/01/01")


def test_without_a_flag_presence_says_complete(store: ClusterStore) -> None:
    feed = make_feed(availability_flag=None)
    assert not kind_of(store).is_available(feed, "/raw/x")
    touch(store, "/raw/x")
    assert kind_of(store).is_available(feed, "/raw/x")
    Path(store.path("/raw/y")).mkdir()
    assert kind_of(store).is_available(feed, "/raw/y")


def test_what_a_link_puts_outside_the_root_is_not_available(store: ClusterStore, tmp_path: Path) -> None:
    feed = make_feed()
    outside = tmp_path / "outside" / "00"
    outside.mkdir(parents=True)
    (outside / "_SUCCESS").touch()
    touch(store, "raw/flights/2013/01/02/00/_SUCCESS")
    Path(store.path("raw/flights/2013/01/01")).symlink_to(outside.parent)
    Path(store.path("raw/flights/2013/01/02") + "/01").symlink_to(outside)
    assert not kind_of(store).is_available(feed, "/raw/flights/2013/01/01/00")
    assert found(store, feed) == [at(2)]


def test_only_exact_paths_of_existing_instances_in_the_span_are_listed(store: ClusterStore) -> None:
    feed = make_feed()
    for path in [
        "2013/01/01/00", "2013/01/01/23", "2013/01/02/05", "2013/12/31/23",
        "2012/12/31/23", "2014/01/01/00",  # outside the validity
        "2013/01/03/24", "2013/13/01/00", "2013/02/30/00", "2013/1/03/00", "2013/01/03/7", "2013/01/03/x",
        "2013/01/03/00.bak", "2013/01/03/00/05", "x2013/01/03/00", "2013/01/03",
    ]:  # fmt: skip
        touch(store, f"raw/flights/{path}/_SUCCESS")
    touch(store, "raw/flights/2013/01/04/00/part-0")  # no flag
    touch(store, "raw/flights/2013/01/05")  # a file where a folder is expected
    touch(store, "raw/flights2/2013/01/06/00/_SUCCESS")
    assert found(store, feed) == [at(1), at(1, 23), at(2, 5), at(31, 23, month=12)]
    assert found(store, feed, at(1, 23), at(2, 5)) == [at(1, 23), at(2, 5)]
    assert found(store, feed, at(1, 1), at(1, 22)) == []


def test_nothing_there_is_nothing_available(store: ClusterStore) -> None:
    assert found(store, make_feed()) == []


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", id="a folder each"),
        pytest.param("raw/${YEAR}-${MONTH}-${DAY}-${HOUR}.json", id="all in one"),
        pytest.param("/raw/${YEAR}${MONTH}/x/${DAY}${HOUR}/data/", id="literals between and below"),
        pytest.param("/raw/${MONTH}/${YEAR}/${HOUR}/${DAY}", id="not coarsest first"),
        pytest.param("/raw/${YEAR}/${DAY}/${MONTH}/${HOUR}", id="with a gap"),
        pytest.param("/raw/${YEAR}/${YEAR}-${MONTH}/${YEAR}-${MONTH}-${DAY}/${HOUR}", id="repeated"),
        pytest.param("/raw/${cluster.colo}/${YEAR}/${base}/${MONTH}/${DAY}/${HOUR}", id="other variables"),
        pytest.param("/ra w[1]/${YEAR}.${MONTH}/${DAY}(${HOUR})", id="signs of other languages"),
    ],
)
@pytest.mark.parametrize("flag", [pytest.param("_SUCCESS", id="flag"), pytest.param(None, id="no flag")])
def test_every_shape_of_template_is_listed(store: ClusterStore, template: str, flag: str | None) -> None:
    feed = make_feed(locations={"data": template}, availability_flag=flag, properties={"base": "a/b"})
    paths = InstancePaths(feed, CLUSTER)
    instances = [at(1), at(1, 1), at(28, 23, month=2), at(30, 5, month=11), at(31, 23, month=12)]
    for instance in instances:
        touch(store, f"{paths.data(instance)}/{flag or 'part-0'}")
    assert found(store, feed) == instances
    assert found(store, feed, at(1, 1), at(30, 5, month=11)) == instances[1:4]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Apia"])
@given(data=st.data())
@examples(25)
def test_listing_finds_what_probing_finds(zone: str, data: st.DataObject) -> None:
    start = datetime(2011, 12, 20, data.draw(st.integers(0, 23)), tzinfo=UTC)
    validity = {"start": start, "end": start + timedelta(days=40)}
    feed = make_feed(
        frequency=data.draw(st.sampled_from(["hours(7)", "days(1)", "days(3)", "months(1)"])),
        timezone=zone,
        locations={"data": data.draw(st.sampled_from(TEMPLATES))},
        clusters=[{"name": "primary", "validity": validity}],
    )
    paths = InstancePaths(feed, CLUSTER)
    instances = paths.timeline.between(paths.timeline.start, paths.timeline.end)
    present = data.draw(st.sets(st.sampled_from(instances)))
    first = start + timedelta(hours=data.draw(st.integers(-50, 1000)))
    last = first + timedelta(hours=data.draw(st.integers(0, 500)))
    with TemporaryDirectory() as home:
        store = ClusterStore(CLUSTER, Path(home), {})
        for instance in present:
            touch(store, f"{paths.data(instance)}/_SUCCESS")
        probed = [
            one for one in instances if first <= one <= last and kind_of(store).is_available(feed, paths.data(one))
        ]
        assert found(store, feed, first, last) == probed
        assert set(probed) == {one for one in present if first <= one <= last}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Asia/Tokyo", "UTC", "Pacific/Honolulu", "Pacific/Apia"])
def test_a_span_of_one_instance_holds_it_whatever_the_clock_shows(store: ClusterStore, zone: str) -> None:
    validity = {"start": "2011-12-25T03:00Z", "end": "2012-01-08T03:00Z"}
    clusters = [{"name": "primary", "validity": validity}]
    feed = make_feed(frequency="days(1)", timezone=zone, locations={"data": TEMPLATES[0]}, clusters=clusters)
    paths = InstancePaths(feed, CLUSTER)
    instances = paths.timeline.between(paths.timeline.start, paths.timeline.end)
    for instance in instances:
        touch(store, f"{paths.data(instance)}/_SUCCESS")
    assert [found(store, feed, instance, instance) for instance in instances] == [[instance] for instance in instances]


def test_listing_costs_parents_not_instances(store: ClusterStore) -> None:
    feed = make_feed(
        clusters=[{"name": "primary", "validity": {"start": "2005-01-01T00:00Z", "end": "2020-01-01T00:00Z"}}]
    )
    for year in range(2005, 2020):
        touch(store, f"raw/flights/{year}/06/15/00/_SUCCESS")
    touch(store, "raw/flights/2013/01/02/05/_SUCCESS")
    assert (
        listings(lambda: found(store, feed, at(1, 1, month=6), at(20, month=6))) == 4
    )  # all years, 2013, 2013/06, 2013/06/15
    assert (
        listings(lambda: found(store, feed, at(15, month=9), at(20, month=9))) == 0
    )  # no folder of these days is there
    # All years, 2005 to 2014, nine Junes and a January, as many days.
    assert listings(lambda: found(store, feed, datetime(2005, 1, 1, tzinfo=UTC))) == 1 + 10 + 10 + 10


def listings(ask: Callable[[], object]) -> int:
    """How many folders one call lists, counted in a process of its own, as audit hooks are for ever."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def hook(event: str, args: tuple[Any, ...]) -> None:
                nonlocal count
                count += event in ("os.scandir", "os.listdir")

            sys.addaudithook(hook)
            ask()
            os.write(writing, str(count).encode())
        finally:
            os._exit(0)  # an error must not go on as a second pytest
    os.close(writing)
    answer = int(os.read(reading, 20))
    os.close(reading)
    os.waitpid(child, 0)
    return answer


def test_the_next_available_one_is_found_however_far_it_is(store: ClusterStore) -> None:
    """Of a feed of minutes that is valid for a century and has two instances: asking for each would take minutes."""
    feed = make_feed(
        frequency="minutes(1)",
        locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}${MINUTE}"},
        clusters=[{"name": "primary", "validity": {"start": "1950-01-01T00:00Z", "end": "2050-01-01T00:00Z"}}],
    )
    there = AvailableInstances(kind_of(store), feed)
    first, last = datetime(1950, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
    early, late = first + timedelta(days=9), last - timedelta(minutes=3)
    for instance in (early, late):
        touch(store, f"{InstancePaths(feed, CLUSTER).data(instance)}/_SUCCESS")
    Path(store.path(InstancePaths(feed, CLUSTER).data(at(1)))).mkdir(parents=True)  # without a flag
    assert list(there.backwards(first, last)) == [late, early]
    assert list(there.forwards(first, last)) == [early, late]
    assert list(there.forwards(early, late)) == [early, late]
    assert list(there.backwards(early + timedelta(minutes=1), late - timedelta(minutes=1))) == []


def test_what_is_close_is_found_without_a_listing(store: ClusterStore) -> None:
    feed = make_feed()
    for hour in range(20):
        touch(store, f"raw/flights/2013/01/02/{hour:02}/_SUCCESS")
    there = AvailableInstances(kind_of(store), feed)
    assert listings(lambda: next(there.backwards(START, at(2, 22)))) == 0
    assert listings(lambda: list(islice(there.backwards(START, at(2, 22)), 20))) == 1  # the 2nd
