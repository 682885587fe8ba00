"""Dagster spells its tags as we do."""

from __future__ import annotations

import pytest
from dagster._core.definitions import data_version
from dagster._core.storage import tags as theirs

from falcon_assets.history.dagster_internals import tags as ours
from falcon_assets.history.events import record


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HIDDEN_TAG_PREFIX", ours.HIDDEN),
        ("PARENT_RUN_ID_TAG", ours.PARENT_RUN),
        ("PRIORITY_TAG", ours.PRIORITY),
        ("RUN_KEY_TAG", ours.RUN_KEY),
        ("ASSET_PARTITION_RANGE_START_TAG", ours.RANGE_START),
        ("ASSET_PARTITION_RANGE_END_TAG", ours.RANGE_END),
        ("USER_TAG", ours.LAUNCHED_BY),
        ("SCHEDULE_NAME_TAG", ours.STARTED_BY[0]),
        ("SENSOR_NAME_TAG", ours.STARTED_BY[1]),
        ("TICK_ID_TAG", ours.STARTED_BY[2]),
        ("BACKFILL_ID_TAG", ours.STARTED_BY[3]),
        ("AUTO_MATERIALIZE_TAG", ours.STARTED_BY[4]),
        ("AUTO_OBSERVE_TAG", ours.STARTED_BY[5]),
        ("AUTOMATION_CONDITION_TAG", ours.STARTED_BY[6]),
        ("REPORTING_USER_TAG", ours.STARTED_BY[7]),
    ],
)
def test_tags_are_spelt_so(name: str, value: str) -> None:
    spelt = getattr(theirs, name, "no more")
    assert spelt == value, f"Dagster's {name} is {spelt} now: what we write and look for as {value}, it does not know"


def test_the_tag_of_a_data_version_is_spelt_so() -> None:
    spelt = getattr(data_version, "DATA_VERSION_TAG", "no more")
    assert spelt == record.DATA_VERSION_TAG, f"Dagster's data versions are tagged {spelt} now, ours otherwise"


def test_our_tags_are_hidden_in_the_ui() -> None:
    hidden = theirs.get_tag_type(f"{ours.HIDDEN}falcon_slots").name
    assert hidden == "HIDDEN", f"Dagster takes tags that begin with {ours.HIDDEN} for {hidden}: the UI would show ours"
