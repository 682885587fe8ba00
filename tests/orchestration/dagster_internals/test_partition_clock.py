"""Which partitions exist by a simulated clock, in the process that has opened the storage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest

from falcon_assets.history.dagster_internals.partitions import partitions_exist_by
from falcon_assets.history.mapping.partitions import partitions_of
from falcon_assets.history.platform.instance_storage import FalconStorage
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.timeline import Timeline
from falcon_assets.settings import Settings

HOURS = Timeline(
    parse_instant("2013-01-01T00:00Z"), parse_instant("2014-01-01T00:00Z"), Frequency.parse("hours(1)"), "UTC"
)


@pytest.fixture(autouse=True)
def real_time() -> Iterator[None]:
    yield
    partitions_exist_by(None)


def test_those_of_its_future_do_not_exist() -> None:
    shown = [parse_instant("2013-01-03T06:10Z")]
    hours = partitions_of(HOURS)
    partitions_exist_by(lambda: shown[0])
    assert (hours.get_num_partitions(), hours.get_last_partition_key()) == (55, "2013-01-03T06:00Z")
    assert not hours.has_partition_key("2013-01-03T07:00Z")
    shown[0] = parse_instant("2013-01-03T07:00Z")  # it exists from its nominal time on
    assert (hours.get_num_partitions(), hours.get_last_partition_key()) == (56, "2013-01-03T07:00Z")
    partitions_exist_by(None)
    assert hours.get_num_partitions() == 8760


def test_who_asks_about_a_moment_gets_what_existed_then() -> None:
    partitions_exist_by(lambda: parse_instant("2013-01-03T06:10Z"))
    with dg.partition_loading_context(effective_dt=datetime(2013, 2, 1, tzinfo=UTC)):
        assert partitions_of(HOURS).get_last_partition_key() == "2013-02-01T00:00Z"


def test_the_storage_says_by_which_clock(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T02:00Z")
    FalconStorage.from_config_value(None, {}).dispose()
    assert partitions_of(HOURS).get_num_partitions() == 3
    monkeypatch.delenv("FALCON_CLOCK")
    FalconStorage.from_config_value(None, {}).dispose()
    assert partitions_of(HOURS).get_num_partitions() == 8760
