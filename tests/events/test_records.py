"""A record comes back from Dagster's log as it was written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.history.events.event_log import Fact, asset_facts, materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.history.events.record import DATA_VERSION_TAG, AssetEvent, Record
from falcon_assets.planning.instance_record import InstanceState
from tests.events.strategies import AVAILABLE, FACTS, FOR_PEOPLE
from tests.records import read_record

T = datetime(2013, 1, 1, tzinfo=UTC)
KEY = dg.AssetKey(["primary", "raw"])


def stored(event: AssetEvent) -> AssetEvent:
    """The event as it comes back from Dagster's database."""
    found: AssetEvent = dg.deserialize_value(dg.serialize_value(event))
    assert type(found) is type(event)
    return found


def key_of(fact: Fact) -> dg.AssetKey:
    return dg.AssetKey([fact.cluster, getattr(fact, "feed", "any")])


@given(FACTS)
def test_a_fact_comes_back(fact: Fact) -> None:
    write = materialization if isinstance(fact, FeedInstanceAvailable) else observation
    event = stored(write(key_of(fact), "2013", fact))
    assert asset_facts(7, event, T) == (fact,)
    assert read_record(type(fact), event) == fact


@given(FOR_PEOPLE)
def test_what_people_read_comes_back(record: Record) -> None:
    assert read_record(type(record), stored(observation(KEY, None, record))) == record


@given(AVAILABLE, st.floats(0, 9))
def test_a_publication_says_that_its_process_instance_succeeded(published: FeedInstanceAvailable, took: float) -> None:
    done = InstanceChanged(
        "p", published.cluster, T, InstanceState.SUCCEEDED, published.seen_at, "", {}, published.late
    )
    done = replace(done, definition=published.definition)
    made = FeedInstanceAvailable(**{**vars(published), "process": "p", "nominal": T, "inputs": {}})
    event = stored(materialization(key_of(published), "2013", made, done, WorkDone(took)))
    assert asset_facts(7, event, T) == (made, done)


def test_what_dagster_knows_how_to_show() -> None:
    there = FeedInstanceAvailable("primary", "raw", T, "v1", T, records=3, path="s3://lake/raw/2013")
    event = materialization(KEY, "2013", there)
    assert event.tags == {DATA_VERSION_TAG: "v1"}
    assert event.metadata["path"] == dg.MetadataValue.path("s3://lake/raw/2013")
    assert event.metadata["dagster/row_count"] == dg.MetadataValue.int(3)


def test_what_nobody_reads_is_one_entry_at_the_end() -> None:
    there = FeedInstanceAvailable(
        *("primary", "raw", T, "v1", T), bytes=3, signature="ab", looked_before=T, source_versions={"backup": "v1"}
    )
    event = stored(materialization(KEY, "2013", there))
    assert list(event.metadata) == ["instance", "data_version", "at", "bytes", "source_versions", "internals"]
    assert event.metadata["internals"].value == {"signature": "ab", "looked_before": "2013-01-01T00:00:00.000+00:00"}
    assert read_record(FeedInstanceAvailable, event) == there


def test_internals_of_earlier_versions_stand_beside_the_others() -> None:
    metadata = {"instance": "2013-01-01T00:00Z", "data_version": "v1", "at": "2013-01-01T00:00:00+00:00"}
    for told in ({"signature": "ab"}, {"internals": {"signature": "ab"}}, {"signature": "ab", "internals": "text"}):
        event = dg.AssetMaterialization(KEY, metadata={**metadata, **told}, partition="2013")
        assert read_record(FeedInstanceAvailable, event).signature == "ab"


def test_a_state_is_shown_first_and_said_in_a_sentence() -> None:
    event = InstanceChanged("p", "primary", T, InstanceState.FAILED, T, "no rows").event(KEY, "2013")
    assert list(event.metadata) == ["state", "reason", "process", "nominal_time", "at"]
    assert event.description == "p 2013-01-01T00:00Z: FAILED: no rows"
