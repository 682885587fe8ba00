"""Replications as workloads: which instances they have, when they are due, how they are retried and late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.replication import common_timeline, replicated_timeline
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import ReplicationWorkload, replications_to
from tests.builders import make_feed, make_process, workload_of
from tests.hours import START, hour


def on(name: str, role: str, start: int = 0, end: int = 48, **more: Any) -> dict[str, Any]:
    """A cluster of the feed that is valid from one half hour of 2013 to another."""
    first, last = (format_instant(START + timedelta(minutes=30 * number)) for number in (start, end))
    return {"name": name, "type": role, "validity": {"start": first, "end": last}, **more}


def replicated(*clusters: dict[str, Any], **overrides: Any) -> Feed:
    return make_feed(clusters=list(clusters), **overrides)


def replications(feed: Feed, target: str) -> list[ReplicationWorkload]:
    entry = feed.on(target)
    assert entry is not None
    return list(replications_to(feed, entry))


SPANS = st.tuples(st.integers(0, 60), st.integers(1, 60)).map(lambda span: (span[0], span[0] + span[1]))


@given(SPANS, SPANS, SPANS, st.sampled_from(["minutes(30)", "minutes(45)", "hours(1)", "hours(3)", "days(1)"]))
def test_common_instances_are_those_that_exist_on_both_sides(
    here: tuple[int, int], east: tuple[int, int], west: tuple[int, int], frequency: str
) -> None:
    feed = replicated(
        on("east", "source", *east), on("west", "source", *west), on("here", "target", *here), frequency=frequency
    )
    ours = set(feed_timeline(feed, "here").until(hour(1000)))
    union: set[datetime] = set()
    for source in ("east", "west"):
        found = common_timeline(feed, source, "here")
        expected = ours & set(feed_timeline(feed, source).until(hour(1000)))
        assert set(found.until(hour(1000)) if found else ()) == expected
        union |= expected
    asset = replicated_timeline(feed, "here")
    assert union <= set(asset.until(hour(1000)) if asset else ())
    assert {one.reads_on for one in replications(feed, "here")} == {
        source for source in ("east", "west") if common_timeline(feed, source, "here")
    }


def test_what_a_replication_answers() -> None:
    feed = replicated(
        on("primary", "source", 0, 20, delay="minutes(40)"),
        on("backup", "target", 4, 48),
        properties={"parallel": "3", "order": "LIFO", "timeout": "hours(2)"},
        late_arrival={"cut_off": "hours(6)"},
        schedule=True,
    )
    (one,) = replications(feed, "backup")
    assert (one.name, one.cluster, one.reads_on) == ("raw-flights from primary", "backup", "primary")
    assert (one.entity, one.assets, one.own_feeds) == (feed, ["raw-flights"], frozenset())
    assert (one.job_name, one.description) == (
        "backup__raw_flights__replication_job",
        "Copies raw-flights to backup, every hours(1)",
    )
    assert one.pipelines == ("backup.replication",)
    assert (one.parallel, one.order, str(one.timeout)) == (3, "LIFO", "hours(2)")
    assert one.timeline.until(hour(99)) == [hour(number) for number in range(2, 10)]
    assert (one.retry.policy, one.retry.attempts, str(one.retry.delay)) == ("periodic", 3, "minutes(10)")
    assert one.late is not None
    assert (one.late.policy, str(one.late.delay)) == ("exp-backoff", "hours(3)")
    assert one.delay == timedelta(minutes=40)


def test_what_a_process_answers() -> None:
    process = make_process()
    one = workload_of(process)
    assert (one.name, one.cluster, one.reads_on, one.delay) == ("hourly-delays", "primary", "primary", timedelta())
    assert (one.entity, one.assets, one.own_feeds) == (process, ["delays"], frozenset())
    assert (one.job_name, one.description) == (
        "primary__hourly_delays_job",
        "hourly-delays on primary, every hours(1): reads raw-flights and writes delays",
    )


def test_without_a_cut_off_nothing_is_late() -> None:
    (one,) = replications(replicated(on("primary", "source"), on("backup", "target")), "backup")
    assert one.late is None


@pytest.mark.parametrize(
    ("source", "target", "minutes"),
    [(None, None, 0), ("minutes(5)", None, 5), (None, "minutes(7)", 7), ("minutes(5)", "hours(1)", 60)],
    ids=["none", "source", "target", "longer"],
)
def test_the_longer_delay_counts(source: str | None, target: str | None, minutes: int) -> None:
    feed = replicated(on("primary", "source", delay=source), on("backup", "target", delay=target))
    (one,) = replications(feed, "backup")
    assert one.delay == timedelta(minutes=minutes)


def test_properties_that_are_not_legal() -> None:
    feed = replicated(on("primary", "source"), on("backup", "target"), properties={"parallel": "many"})
    with pytest.raises(ExpressionError, match="'many' is not a whole number from 1 to 9999"):
        replications(feed, "backup")


def test_the_asset_has_what_any_source_brings() -> None:
    feed = replicated(on("east", "source", 4, 8), on("west", "source", 6, 20), on("backup", "target", 0, 16))
    east, west = replications(feed, "backup")
    for one, instances in ((east, [2, 3]), (west, [3, 4, 5, 6, 7])):
        partitions = one.partitions
        assert partitions.timeline.until(hour(99)) == [hour(number) for number in range(2, 8)]
        assert partitions.nominal.until(hour(99)) == [hour(number) for number in instances]
        for number in instances:
            assert partitions.partition_of(hour(number)) == hour(number) == partitions.nominal_of(hour(number))


@pytest.mark.parametrize(
    ("minute", "launched", "wake_minute"), [(0, [], 40), (39, [], 40), (40, [0], 100)], ids=["at-once", "early", "due"]
)
def test_an_instance_is_due_after_the_delay(minute: int, launched: list[int], wake_minute: int) -> None:
    feed = replicated(on("primary", "source", delay="minutes(40)"), on("backup", "target"))
    (one,) = replications(feed, "backup")
    decision = decide(
        Situation(
            readiness=Readiness(one),
            now=START + timedelta(minutes=minute),
            until=None,
            since=START,
            first_open=0,
            records={},
            slots_in_use=0,
            available={feed.name: {hour(0), hour(1)}},
        )
    )
    assert [nominal for launch in decision.launches for nominal in launch.nominals] == [hour(one) for one in launched]
    assert decision.wake_at == START + timedelta(minutes=wake_minute)


def test_the_timeout_counts_from_the_delay() -> None:
    feed = replicated(
        on("primary", "source", delay="hours(10)"), on("backup", "target"), properties={"timeout": "hours(1)"}
    )
    (one,) = replications(feed, "backup")

    def decided(minutes: int) -> Any:
        return decide(
            Situation(
                readiness=Readiness(one),
                now=hour(10) + timedelta(minutes=minutes),
                until=None,
                since=START,
                first_open=0,
                records={},
                slots_in_use=0,
                available={feed.name: set()},
            )
        )

    assert {one: str(why) for one, why in decided(59).waiting.items()} == {
        hour(0): "waits for source: raw-flights 2013-01-01T00:00Z"
    }
    ((nominal, why),) = decided(60).timed_out
    assert (nominal, str(why)) == (hour(0), "missing after hours(1): source: raw-flights 2013-01-01T00:00Z")
