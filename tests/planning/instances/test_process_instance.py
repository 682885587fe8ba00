from __future__ import annotations

import pytest

from falcon_assets.errors import ExpressionError, UnknownEntityError, UnknownInstanceError
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.process_instance import ProcessInstance, plan_process_instance
from tests.builders import make_cluster, make_feed, make_process

CLUSTER = make_cluster(properties={"threshold": "5", "spark.sql.shuffle.partitions": "4"})
FEEDS = {
    "raw-flights": make_feed(),
    "delays": make_feed(
        name="delays",
        locations={"data": "/delays/${YEAR}/${MONTH}/${DAY}"},
        frequency="days(1)",
        clusters=[{"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": "2013-02-01T00:00Z"}}],
    ),
}


def plan(
    nominal: str = "2013-01-03T06:00Z", feeds=FEEDS, available=lambda feed: lambda instance: False, **overrides
) -> ProcessInstance:
    return plan_process_instance(
        make_process(**overrides), CLUSTER, feeds, parse_instant(nominal), user="etl", available=available
    )


def an_input(**overrides) -> list[dict]:
    return [{"name": "flights", "feed": "raw-flights", "start": "now(0,0)", "end": "now(0,0)", **overrides}]


def test_what_it_reads_and_writes():
    found = plan(
        inputs=an_input(
            start="now(-1,0)", optional=True, partition="*/${formatTime(instanceTime(),'yyyy')}/${cluster.colo}"
        )
    )
    (flights,), (delays,) = found.inputs, found.outputs
    assert (flights.name, flights.feed.name, flights.optional) == ("flights", "raw-flights", True)
    assert list(map(format_instant, flights.instances)) == ["2013-01-03T05:00Z", "2013-01-03T06:00Z"]
    assert flights.paths == ("/raw/flights/2013/01/03/05", "/raw/flights/2013/01/03/06")
    assert flights.partition == "*/2013/east"
    assert (delays.name, delays.feed.name, delays.path) == ("delays", "delays", "/delays/2013/01/03")
    assert format_instant(delays.instance) == "2013-01-03T00:00Z"
    assert (found.process.name, found.cluster.name, format_instant(found.nominal)) == (
        "hourly-delays", "primary", "2013-01-03T06:00Z",
    )  # fmt: skip


def test_properties():
    found = plan(
        properties={
            "threshold": "15",
            "day": "${formatTime(today(0,0),'yyyyMMdd')}",
            "at": "${nominalTime}",
            "who": "${user()}",
        }
    )
    assert found.properties == {
        "spark.sql.shuffle.partitions": "4",
        "threshold": "15",
        "day": "20130103",
        "at": "2013-01-03T06:00Z",
        "who": "etl",
        "nominalTime": "2013-01-03T06:00Z",
        "nominal_time": "2013-01-03T06:00Z",
        "process.name": "hourly-delays",
        "cluster.name": "primary",
        "cluster.colo": "east",
    }


def test_properties_do_not_see_each_other():
    with pytest.raises(ExpressionError) as caught:
        plan(properties={"a": "1", "b": "${a}"})
    assert str(caught.value) == "'${a}': unknown variable '${a}'"


def test_latest_asks_what_is_available_and_times_do_not():
    asked = []

    def available(feed):
        def is_available(instance):
            asked.append((feed.name, format_instant(instance)))
            return instance.hour % 2 == 1

        return is_available

    assert plan(available=available).inputs[0].paths == ("/raw/flights/2013/01/03/06",)
    assert asked == []
    found = plan(available=available, inputs=an_input(start="latest(-1)", end="latest(0)"))
    assert found.inputs[0].paths == ("/raw/flights/2013/01/03/03", "/raw/flights/2013/01/03/05")
    assert asked[:2] == [("raw-flights", "2013-01-03T06:00Z"), ("raw-flights", "2013-01-03T05:00Z")]


def test_not_enough_for_latest():
    (lacking,) = plan("2013-01-01T06:00Z", inputs=an_input(start="latest(-1)", end="latest(0)")).inputs
    assert (lacking.instances, lacking.short) == ((), "latest(-1) to latest(0)")
    optional = plan("2013-01-01T06:00Z", inputs=an_input(start="latest(-1)", end="latest(0)", optional=True))
    assert optional.inputs[0].instances == ()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"nominal": "2013-01-03T06:30Z"},
            UnknownInstanceError,
            "process 'hourly-delays' on cluster 'primary' has no instance 2013-01-03T06:30Z: its frequency is "
            "hours(1), and the nearest ones are 2013-01-03T06:00Z and 2013-01-03T07:00Z",
        ),
        (
            {"nominal": "2013-02-01T06:00Z"},
            UnknownInstanceError,
            "output 'delays' of instance 2013-02-01T06:00Z of process 'hourly-delays' on 'primary': feed 'delays' "
            "has no instance 2013-02-01T00:00Z: its validity ends at 2013-02-01T00:00Z",
        ),
        (
            {"feeds": {"delays": FEEDS["delays"]}},
            UnknownEntityError,
            "process 'hourly-delays' names feed 'raw-flights', which is not defined",
        ),
        (
            {"clusters": [{"name": "backup", "validity": {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}}]},
            UnknownEntityError,
            "process 'hourly-delays' is not on cluster 'primary'; it is on: backup",
        ),
    ],
    ids=["no instance", "output outside its feed", "unknown feed", "other cluster"],
)
def test_exact_messages(given, error, message):
    with pytest.raises(error) as caught:
        plan(**given)
    assert str(caught.value) == message
