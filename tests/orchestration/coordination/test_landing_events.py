"""What collectors say in the UI of what they found."""

from __future__ import annotations

from datetime import timedelta

import pytest

from falcon_assets.features.landing.landing_events import Landings
from falcon_assets.history.events.feed_instances import InstancesLanded
from falcon_assets.planning.clock import Clock
from tests.builders import make_feed
from tests.hours import START
from tests.records import read_record


@pytest.mark.parametrize(
    ("snapshot", "count", "said"),
    [
        (False, 1, "2013-01-01T00:00Z landed"),
        (False, 25, "25 instances landed, 2013-01-01T00:00Z to 2013-01-02T00:00Z"),
        (True, 25, "refreshed: it is the data of 25 instances, 2013-01-01T00:00Z to 2013-01-02T00:00Z"),
        (True, 1, "refreshed: it is the data of 2013-01-01T00:00Z"),
    ],
)
def test_what_landed_at_once(snapshot: bool, count: int, said: str) -> None:
    where = {"snapshot": True, "locations": {"data": "/raw"}} if snapshot else {}
    feed = make_feed(**where)
    instances = [START + timedelta(hours=number) for number in range(count)]
    event = Landings(Clock(), START, {}).summary("primary", feed, instances)
    assert event.description == f"{feed.name}: {said}"
    assert read_record(InstancesLanded, event).landed == count
