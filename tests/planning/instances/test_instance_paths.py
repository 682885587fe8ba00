from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instance_paths import InstancePaths, first_shared
from falcon_assets.planning.timeline import dated_changes
from tests.builders import make_cluster, make_feed
from tests.properties import examples
from tests.zones import ZONES

TEMPLATES = {
    "minutes(5)": ["/a/${YEAR}/${MONTH}/${DAY}/${HOUR}/${MINUTE}"],
    "minutes(45)": ["a-${YEAR}${MONTH}${DAY}${HOUR}${MINUTE}/"],
    "hours(1)": ["//a/./${YEAR}-${MONTH}-${DAY}-${HOUR}/x", "/a/${YEAR}/${MONTH}/${DAY}/${HOUR}/${MINUTE}"],
    "hours(24)": ["/a/${YEAR}/${MONTH}/${DAY}"],
    "days(1)": [
        "/a/${YEAR}/${MONTH}/${DAY}",
        "/${cluster.colo}/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        "/a/${YEAR}${MONTH}${DAY}/${YEAR}",
    ],
    "days(7)": ["/a/${YEAR}/${MONTH}/${DAY}"],
    "months(1)": ["/a/${YEAR}/${MONTH}", "/a/${YEAR}/${MONTH}/${DAY}/${HOUR}"],
    "months(12)": ["/a/${YEAR}"],
}
minutes = st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1)).map(
    lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC)
)


def paths(
    frequency: str = "hours(1)",
    template: str = "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}",
    *,
    start="2013-01-01T00:00Z",
    end="2014-01-01T00:00Z",
    zone: str = "UTC",
    **overrides,
) -> InstancePaths:
    feed = make_feed(
        frequency=frequency,
        timezone=zone,
        **{"locations": {"data": template}, **overrides},
        clusters=[{"name": "primary", "validity": {"start": start, "end": end}}],
    )
    return InstancePaths(feed, make_cluster(properties={"table": "flights", "up": "../.."}))


@st.composite
def declared(draw):
    frequency = draw(st.sampled_from(sorted(TEMPLATES)))
    start = draw(minutes)
    end = start + timedelta(days=draw(st.sampled_from([800, 3000])))
    return paths(
        frequency,
        draw(st.sampled_from(TEMPLATES[frequency])),
        start=format_instant(start),
        end=format_instant(end),
        zone=draw(st.sampled_from(ZONES)),
    )


@examples(500)
@given(declared(), st.integers(0, 10**6))
def test_an_instance_maps_to_its_path_and_back(paths, k):
    k %= paths.timeline.count
    instance = paths.timeline.instance(k)
    path = paths.data(instance)
    assert path.startswith("/") and not path.endswith("/") and "//" not in path
    assert path.startswith("/" if paths.prefix == "/" else paths.prefix + "/")
    assert paths.instance(path) == instance
    assert paths.instance(path + "/") is None
    assert paths.instance(path[1:]) is None
    neighbour = paths.timeline.instance(k + 1)
    assert paths.data(neighbour) != path
    assert paths.instance(paths.data(neighbour)) == (neighbour if neighbour < paths.timeline.end else None)


@st.composite
def shown_elsewhere(draw):
    """Paths that show the clock of any zone: without days that share a path, which the checks of definitions refuse."""
    frequency = draw(st.sampled_from(sorted({*TEMPLATES, "minutes(7)"})))
    start = draw(minutes)
    template = "/a/${YEAR}/${MONTH}/${DAY}/${HOUR}/${MINUTE}" if frequency == "minutes(7)" else None
    return paths(
        frequency,
        template or draw(st.sampled_from(TEMPLATES[frequency])),
        start=format_instant(start),
        end=format_instant(start + timedelta(days=800)),
        zone=draw(st.sampled_from(ZONES)),
        path_timezone=draw(st.sampled_from(ZONES)),
    )


@examples(300)
@given(shown_elsewhere(), st.integers(0, 10**6), st.booleans())
def test_a_path_of_another_clock_maps_back(paths, k, near_a_change):
    line = paths.timeline
    changes = [at for at, _ in dated_changes(paths.zone, line.start.year, line.end.year)]
    if near_a_change and changes:
        k = line.index_at_or_before(changes[k % len(changes)]) + k % 200 - 100
    k %= line.count
    instance, path = line.instance(k), paths.data(line.instance(k))
    around = 2 * line.frequency.length + timedelta(hours=3)
    near = line.between(instance - around, instance + around)
    shared = sum(paths.data(one) == path for one in near) > 1
    assert first_shared(paths, paths.template) is not None or not shared
    assert shared or paths.instance(path) == instance


@examples(100)
@given(shown_elsewhere())
def test_what_is_said_to_share_a_path_does(paths):
    shared = first_shared(paths, paths.template)
    assert shared is None or (shared[0] < shared[1] and paths.data(shared[0]) == paths.data(shared[1]))
    assert shared is None or paths.instance(paths.data(shared[1])) == shared[0]


@examples(300)
@given(declared(), st.text("/a0123456789-x\n", max_size=20))
def test_any_other_text_is_none_and_no_crash(paths, text):
    found = paths.instance(text)
    assert found is None or paths.data(found) == text


@examples(300)
@given(declared(), minutes)
def test_a_path_between_two_instances_belongs_to_none(paths, moment):
    path = paths.data(moment)
    found = paths.instance(path)
    assert found is None or paths.data(found) == path


@pytest.mark.parametrize(
    ("frequency", "zone", "instance", "path"),
    [
        ("hours(1)", "America/New_York", "2013-07-01T04:00Z", "/raw/2013/07/01/04"),
        ("days(1)", "America/New_York", "2013-07-01T04:00Z", "/raw/2013/07/01/00"),
        ("days(1)", "America/New_York", "2013-01-01T05:00Z", "/raw/2013/01/01/00"),
    ],
    ids=["hours show UTC", "days show the wall, summer", "days show the wall, winter"],
)
def test_the_rule_of_zones(frequency, zone, instance, path):
    found = paths(frequency, start="2013-01-01T05:00Z", zone=zone)
    assert found.data(parse_instant(instance)) == path
    assert found.instance(path) == parse_instant(instance)


@pytest.mark.parametrize(
    ("frequency", "shown", "instance", "path"),
    [
        ("days(1)", "UTC", "2013-07-01T04:00Z", "/raw/2013/07/01/04"),
        ("days(1)", "Asia/Kolkata", "2013-07-01T04:00Z", "/raw/2013/07/01/09"),
        ("hours(1)", "Asia/Kolkata", "2013-07-01T04:00Z", "/raw/2013/07/01/09"),
        ("hours(1)", "America/New_York", "2013-07-01T04:00Z", "/raw/2013/07/01/00"),
    ],
)
def test_paths_show_the_clock_that_is_declared(frequency, shown, instance, path):
    """Of the feed, or of one of its clusters only."""
    for_all = paths(frequency, start="2013-01-01T05:00Z", zone="America/New_York", path_timezone=shown)
    entry = {"name": "primary", "validity": {"start": "2013-01-01T05:00Z", "end": "2014-01-01T00:00Z"}}
    feed = make_feed(
        frequency=frequency,
        timezone="America/New_York",
        path_timezone="Asia/Tokyo",
        locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
        clusters=[{**entry, "path_timezone": shown}, {**entry, "name": "backup"}],
    )
    for found in (for_all, InstancePaths(feed, make_cluster())):
        assert (found.data(parse_instant(instance)), found.instance(path)) == (path, parse_instant(instance))
    assert InstancePaths(feed, make_cluster(name="backup")).zone == "Asia/Tokyo"


def test_an_instance_pushed_past_midnight_keeps_its_day():
    # In Nuuk clocks go from 23:00 to 00:00 in the night of 30 March 2024.
    found = paths(
        "days(1)", "/a/${YEAR}/${MONTH}/${DAY}", start="2024-03-29T01:30Z", end="2025-01-01T00:00Z", zone="America/Nuuk"
    )
    days = found.timeline.until(parse_instant("2024-04-02T00:00Z"))
    assert [found.data(day) for day in days] == ["/a/2024/03/28", "/a/2024/03/29", "/a/2024/03/30", "/a/2024/03/31"]
    assert [found.instance(found.data(day)) for day in days] == days


@pytest.mark.parametrize(
    "path",
    [
        "/raw/2012/12/31/23",
        "/raw/2014/01/01/00",
        "/raw/2013/02/30/00",
        "/raw/9999/12/31/23",
        "/raw/0001/01/01/00",
        "/raw/2013/01/01",
        "/raw/2013/01/01/00/part-0",
        "/RAW/2013/01/01/00",
        "",
        "/",
    ],
)
def test_outside_the_validity_or_not_exact_is_none(path):
    assert paths().instance(path) is None


def test_the_earliest_and_latest_path_are_no_crash():
    for zone in ("America/New_York", "Asia/Tokyo"):
        found = paths("days(1)", "/a/${YEAR}/${MONTH}/${DAY}", zone=zone)
        assert (found.instance("/a/0001/01/01"), found.instance("/a/9999/12/31")) == (None, None)


def test_variables_and_prefix():
    found = paths(
        template="/${cluster.colo}/${table}/${team}/${cluster.name}/${YEAR}/${MONTH}/${DAY}/${HOUR}",
        properties={"team": "ops", "table": "shadowed by the cluster's"},
    )
    assert found.data(parse_instant("2013-01-01T05:00Z")) == "/east/flights/ops/primary/2013/01/01/05"
    assert found.prefix == "/east/flights/ops/primary"
    assert paths(template="${YEAR}/${MONTH}/${DAY}/${HOUR}").prefix == "/"


def test_stats_meta_and_other_templates():
    instance = parse_instant("2013-01-01T05:00Z")
    assert [kind for kind, _ in paths().templates()] == ["data"]
    locations = {"data": "/d/${YEAR}/${MONTH}/${DAY}/${HOUR}", "stats": "s/${YEAR}/", "meta": "//m/${HOUR}"}
    found = paths(locations=locations)
    shown = {kind: found.render(template, instance) for kind, template in found.templates()}
    assert shown == {"data": "/d/2013/01/01/05", "stats": "/s/2013", "meta": "/m/05"}
    assert found.render(PathTemplate.parse("/archive/${YEAR}"), instance) == "/archive/2013"


@pytest.mark.parametrize(
    ("template", "root", "path"),
    [
        ("s3://lake/a/b/${YEAR}/${MONTH}-${DAY}/${HOUR}", "s3://lake/a/b", "/2013/01-02/05"),
        ("S3://lake//a/./x-${YEAR}/${MONTH}-${DAY}/${HOUR}/", "s3://lake/a", "/x-2013/01-02/05"),
        ("s3://lake/${YEAR}/${MONTH}-${DAY}/${HOUR}", "s3://lake/", "/2013/01-02/05"),
        ("s3://${table}-${cluster.colo}/${team}/${YEAR}${MONTH}${DAY}${HOUR}", "s3://flights-east/ops", "/2013010205"),
        ("abfs://box@account.net/a/${YEAR}${MONTH}${DAY}${HOUR}", "abfs://box@account.net/a", "/2013010205"),
        ("file:///mnt/a/${YEAR}${MONTH}${DAY}${HOUR}", "file:///mnt/a", "/2013010205"),
        ("file:///${YEAR}${MONTH}${DAY}${HOUR}", "file:///", "/2013010205"),
        ("hdfs://name:8020/a/${YEAR}${MONTH}${DAY}${HOUR}", "hdfs://name:8020/a", "/2013010205"),
    ],
)
def test_a_whole_url_has_a_root_of_its_own(template, root, path):
    """The folder above the first time variable."""
    instance = parse_instant("2013-01-02T05:00Z")
    found = paths(template=template, properties={"team": "ops"})
    assert (found.root, found.data(instance), found.instance(path)) == (root, path, instance)
    assert found.roots == {root}
    assert found.place(PathTemplate.parse("/old/${YEAR}")) == (None, PathTemplate("/old/${YEAR}"))


@pytest.mark.parametrize(
    ("template", "root", "path"),
    [
        ("/dimensions/names", None, "/dimensions/names"),
        ("s3://lake/dimensions/names.json", "s3://lake/dimensions", "/names.json"),
        ("s3://lake/names", "s3://lake/", "/names"),
        ("file:///names.csv", "file:///", "/names.csv"),
    ],
)
def test_a_path_without_a_time_is_that_of_all_instances_and_of_none(template, root, path):
    found = paths(template=template)
    instances = [parse_instant("2013-01-02T05:00Z"), parse_instant("2013-01-02T06:00Z")]
    assert (found.root, [found.data(one) for one in instances]) == (root, [path, path])
    assert found.instance(path) is None


def test_statistics_may_lie_on_other_stores():
    data = "s3://lake/a/${YEAR}/${MONTH}/${DAY}/${HOUR}"
    found = paths(locations={"data": data, "stats": "/s/${YEAR}", "meta": "gs://m/about"})
    assert found.roots == {"s3://lake/a", None}, "what has no time in it belongs to no instance"
    assert [kind for kind, _ in found.templates()] == ["data", "stats"]


def test_a_table_has_its_uri():
    found = paths(
        locations=None, table={"uri": "catalog:db:flights#ds=${YEAR}-${MONTH}-${DAY}-${HOUR};region=${cluster.colo}"}
    )
    instance = parse_instant("2013-01-01T05:00Z")
    assert found.data(instance) == "catalog:db:flights#ds=2013-01-01-05;region=east"
    assert found.instance("catalog:db:flights#ds=2013-01-01-05;region=east") == instance
    assert found.instance("catalog:db:flights#ds=2013-01-01-05;region=west") is None
    assert found.prefix == "catalog:db:flights"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            paths(template="/a/${tabel}/${YEAR}"),
            "'/a/${tabel}/${YEAR}': unknown variable '${tabel}' (did you mean 'table'?)",
        ),
        (
            paths(template="/a/${up}/${YEAR}"),
            "'/a/${up}/${YEAR}': a variable puts '..' into the path on cluster 'primary'",
        ),
        (
            paths(template="s3://lake/${up}/x/${YEAR}"),
            "'s3://lake/${up}/x/${YEAR}': a variable puts '..' into the path on cluster 'primary'",
        ),
        (
            paths(template="${url}/${YEAR}", properties={"url": "s3://lake"}),
            "'${url}/${YEAR}': a variable puts a URL into the path on cluster 'primary'",
        ),
        (
            paths(template="s3://lake-${YEAR}/x"),
            "'s3://lake-${YEAR}/x': a time must not stand in what comes before the first folder",
        ),
        (paths(locations=None), "feed 'raw-flights' has neither a data location nor a table on cluster 'primary'"),
    ],
    ids=["unknown variable", "leaves the root", "leaves a URL", "becomes a URL", "time in the bucket", "no storage"],
)
def test_exact_messages(found, message):
    with pytest.raises(ExpressionError) as caught:
        found.data(parse_instant("2013-01-01T05:00Z"))
    assert str(caught.value) == message
    assert found.instance("/a/2013") is None
