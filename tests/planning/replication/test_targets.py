from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError, UnknownEntityError
from falcon_assets.planning.replication import common_timeline, contributions, partition_patterns, sources_of
from tests.builders import make_cluster, make_feed
from tests.hours import START

CLUSTERS = {
    name: make_cluster(name=name, colo=colo, properties={"region": f"{colo}-1"})
    for name, colo in {"primary": "east", "second": "west", "backup": "north"}.items()
}


def at(hours: int) -> datetime:
    return START + timedelta(hours=hours)


def on(name: str, role: str, first: int = 0, last: int = 24, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": role, "validity": {"start": at(first), "end": at(last)}, **more}


def feed(*clusters: dict[str, Any], **overrides: Any) -> Any:
    return make_feed(**{"partitions": ["country", "carrier"], "clusters": list(clusters), **overrides})


def replicated(replicated_feed: Any, first: datetime, last: datetime) -> list[datetime]:
    """What any source brings to the target."""
    sources = [entry.name for entry in replicated_feed.clusters if entry.type == "source"]
    lines = [line for name in sources if (line := common_timeline(replicated_feed, name, "backup")) is not None]
    return sorted({one for line in lines for one in line.between(first, last)})


def hours(first: int, last: int, *clusters: dict[str, Any]) -> list[int]:
    found = replicated(feed(*clusters), at(first), at(last))
    return [int((one - START) / timedelta(hours=1)) for one in found]


def test_the_overlap_of_both_validities() -> None:
    source, target = on("primary", "source", 2, 9), on("backup", "target", 0, 6)
    assert hours(-100, 100, source, target) == [2, 3, 4, 5]
    assert hours(3, 4, source, target) == [3, 4]


def test_no_overlap() -> None:
    assert hours(0, 100, on("primary", "source", 0, 3), on("backup", "target", 3, 6)) == []


def test_steps_that_do_not_meet() -> None:
    source = {"name": "primary", "type": "source", "validity": {"start": at(0), "end": at(24)}}
    target = {"name": "backup", "type": "target", "validity": {"start": at(0) + timedelta(minutes=30), "end": at(24)}}
    assert hours(0, 100, source, target) == []


def test_months_keep_the_steps_of_their_own_start() -> None:
    validity = {"start": "2013-01-31T00:00Z", "end": "2014-01-01T00:00Z"}
    source = {"name": "primary", "type": "source", "validity": validity}
    target = {"name": "backup", "type": "target", "validity": {**validity, "end": "2013-06-01T00:00Z"}}
    monthly = feed(source, target, frequency="months(1)")
    found = replicated(monthly, datetime(2013, 2, 1, tzinfo=UTC), START + timedelta(days=999))
    assert [f"{one:%m-%d}" for one in found] == ["02-28", "03-31", "04-30", "05-31"]


def test_sources_of_an_instance() -> None:
    east, west = on("primary", "source", 0, 6, partition="US"), on("second", "source", 4, 9, partition="DE")
    parts = contributions(feed(east, west, on("backup", "target")), "backup", CLUSTERS)
    sources = {hour: [part.source for part in sources_of(parts, at(hour))] for hour in (0, 3, 4, 5, 6, 8, 9)}
    both = ["primary", "second"]
    assert sources == {0: ["primary"], 3: ["primary"], 4: both, 5: both, 6: ["second"], 8: ["second"], 9: []}


PARTITIONS = {
    "none": (None, None, ["US/AA/x", "x", "a/b/c/d"], []),
    "a constant": ("US", None, ["US/AA/x", "US/x", "country=US/x"], ["DE/AA/x", "x", "US", "USA/x", "carrier/US/x"]),
    "the name": ("${cluster.name}", None, ["primary/x"], ["second/x", "east/x"]),
    "the colo": ("${cluster.colo}", None, ["east/AA/x"], ["west/AA/x", "x"]),
    "a property": ("${region}/*", None, ["east-1/AA/x"], ["east-1/x", "west-1/AA/x"]),
    "a wildcard": ("*/A*", None, ["US/AA/x", "DE/carrier=AB/x"], ["US/BA/x", "US/x"]),
    "the target's below it": ("*", "${cluster.colo}", ["US/north/x"], ["US/east/x", "north/US/x", "north/x"]),
    "the target's alone": (None, "DE", ["DE/x"], ["US/x"]),
}


@pytest.mark.parametrize(("source", "target", "inside", "outside"), PARTITIONS.values(), ids=PARTITIONS)
def test_partitions(source: str | None, target: str | None, inside: list[str], outside: list[str]) -> None:
    clusters = on("primary", "source", partition=source), on("backup", "target", partition=target)
    (part,) = contributions(feed(*clusters), "backup", CLUSTERS)
    assert [name for name in inside if not part.holds(name)] == []
    assert [name for name in outside if part.holds(name)] == []


def test_what_is_no_target() -> None:
    with pytest.raises(UnknownEntityError, match="cluster 'primary' is not a target of feed 'raw-flights'"):
        contributions(feed(on("primary", "source"), on("backup", "target")), "primary", CLUSTERS)


def test_an_unknown_variable() -> None:
    with pytest.raises(
        ExpressionError, match=re.escape("unknown variable '${cluster.nam}' (did you mean 'cluster.name'?)")
    ):
        partition_patterns("${cluster.nam}", CLUSTERS["primary"])


HOURS = st.integers(0, 30)


@given(st.lists(st.tuples(HOURS, st.integers(1, 20), st.sampled_from([0, 30])), min_size=1, max_size=3), HOURS, HOURS)
def test_an_instance_is_replicated_where_a_source_and_the_target_have_it(
    sources: list[tuple[int, int, int]], first: int, length: int
) -> None:
    names = list(CLUSTERS)[:2]
    entries = [
        {
            "name": name,
            "type": "source",
            "validity": {"start": at(start) + timedelta(minutes=shift), "end": at(start + hours_long)},
            "partition": name,
        }
        for name, (start, hours_long, shift) in zip(names, sources, strict=False)
        if hours_long > 1
    ]
    if not entries:
        return
    found = replicated(feed(*entries, on("backup", "target", first, first + length + 1)), at(-5), at(200))
    expected = [
        at(hour)
        for hour in range(first, first + length + 1)
        if any(
            shift == 0 and start <= hour < start + long
            for _, (start, long, shift) in zip(names, sources, strict=False)
            if long > 1
        )
    ]
    assert found == expected
