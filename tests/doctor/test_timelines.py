"""Instances that the present definitions do not have are named, with what can be done about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from falcon_assets.doctor.timelines import OffTimelines, judge_timelines
from falcon_assets.instances.store.former_instances import EntityTimeline, changed
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.timeline import Timeline
from tests.builders import VALIDITY, cluster_yaml
from tests.doctor.conftest import Installed
from tests.hours import START


def line(frequency: str, timezone: str = "UTC", name: str = "raw") -> EntityTimeline:
    timeline = Timeline(START, datetime(2014, 1, 1, tzinfo=UTC), Frequency.parse(frequency), timezone)
    return EntityTimeline("feed", name, "primary", timeline)


@pytest.mark.parametrize(
    ("now", "recorded", "is_changed"),
    [
        (line("hours(1)"), ("hours(1)", None), False),
        (line("hours(1)"), ("hours( 1 )", "UTC"), False),
        (line("hours(1)"), ("hours(1)", "Asia/Kolkata"), False),  # hours are counted in absolute time
        (line("days(1)"), ("hours(1)", None), True),
        (line("days(1)"), ("days(1)", "Asia/Kolkata"), True),
        (line("days(1)", "Asia/Kolkata"), ("days(1)", "Asia/Kolkata"), False),
        (line("days(1)"), (None, None), False),  # nobody knows
    ],
)
def test_whose_definitions_were_others(
    now: EntityTimeline, recorded: tuple[str | None, str | None], is_changed: bool
) -> None:
    assert changed([now], [("feed", "raw", *recorded)]) == ([now] if is_changed else [])
    assert changed([now], [("process", "raw", *recorded), ("feed", "other", *recorded)]) == []


def test_many_of_them_are_a_few_lines() -> None:
    found = [OffTimelines(line("days(1)", name=f"f{number}"), 2, START + timedelta(hours=1)) for number in range(8)]
    told = list(judge_timelines(found))
    assert len(told) == 6
    assert told[-1].text == "3 entities have such instances, too"


DEFINITIONS = """---
kind: feed
name: clicks
frequency: {frequency}
locations: {{data: "/clicks/${{YEAR}}/${{MONTH}}/${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: {start}, end: {end}}}}}]
"""


def test_what_a_change_by_hand_left_behind_is_named(installed: Installed) -> None:
    def define(frequency: str) -> None:
        installed.define(cluster_yaml() + DEFINITIONS.format(frequency=frequency, **VALIDITY))

    row = "state, version, landed_at, seen_at, changes, event_id, version_event, late"
    known = (
        "INSERT INTO falcon.definition_versions (kind, name, version, text, since, operation, actor, reason) VALUES "
    )
    define("hours(1)")
    try:
        installed.execute(
            f"{known} ('feed', 'clicks', 1, :text, now(), 'load', 'me', '')",
            text='{kind: feed, name: clicks, "frequency": "hours(1)"}',
        )
        for hour in range(3):
            installed.execute(
                f"INSERT INTO falcon.feed_instances (cluster, feed, instance, {row}) VALUES "
                "('primary', 'clicks', :at, :state, 'v', now(), now(), 0, 1, 1, false)",
                at=START + timedelta(days=1, hours=hour),
                state="EVICTED" if hour == 2 else "AVAILABLE",
            )
        assert installed.ill("timelines") == []
        define("days(1)")
        ((_, status, text, fix),) = installed.ill("timelines")
    finally:
        installed.execute("DELETE FROM falcon.feed_instances WHERE feed = 'clicks'")
        installed.execute("DELETE FROM falcon.definition_versions WHERE name = 'clicks'")
    assert (status, text) == (
        "warning",
        "feed 'clicks' on cluster 'primary': 1 recorded instance is none of the present definition, whose frequency is "
        "days(1), such as 2013-01-02T01:00Z",
    )
    assert "falcon entity history clicks --type feed has it" in fix
