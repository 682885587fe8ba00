"""What landing jobs report by Dagster's own means: looked at in the next tick, recorded in full or refused once."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.features.landing import pushes as answering
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, PushRefused
from falcon_assets.history.events.record import DATA_VERSION_TAG
from falcon_assets.history.tables import FEED_INSTANCES, PUSHED
from tests.builders import cluster_yaml
from tests.orchestration.old_world import FEED, OldWorld, hours
from tests.records import has_record, read_record
from tests.world import MakeWorld

PRODUCED = """---
kind: process
name: make
clusters: [{name: pushed, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: landing, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: made, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
"""
FEEDS = ["landing", "made", "strange", "many", "closed", "again"]


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> OldWorld:
    text = cluster_yaml("pushed") + "".join(FEED.format(name=name, cluster="pushed") for name in FEEDS)
    made = make_world({"all.yaml": text + PRODUCED, "all.sql": "SELECT * FROM rows"}, OldWorld)
    made.tick("pushed")
    return made


def push(world: OldWorld, feed: str, *partitions: str | None, **told: Any) -> None:
    for partition in partitions:
        world.instance.report_runless_asset_event(
            dg.AssetMaterialization(["pushed", feed], partition=partition, **told)
        )


def answers(world: OldWorld, feed: str) -> list[tuple[str | None, str]]:
    """(partition, reason) of each refusal."""
    records = world.instance.fetch_observations(dg.AssetKey(["pushed", feed]), limit=100, ascending=True).records
    observed = [event for record in records if (event := record.asset_observation)]
    return [(event.partition, read_record(PushRefused, event).reason) for event in observed]


def test_a_push_is_no_record_until_it_was_checked(world: OldWorld) -> None:
    world.land("pushed", "landing", "2012-03-01T00")
    push(world, "landing", "2012-03-01T00:00Z", metadata={"rows": 12})
    assert world.known("landing") == []
    assert world.waiting("landing") == ["2012-03-01T00:00Z"]
    assert world.tick("pushed").recorded == 1
    (event,) = world.events("pushed", "landing")
    assert event.partition == "2012-03-01T00:00Z"
    there = read_record(FeedInstanceAvailable, event)
    assert (there.files, there.bytes) == (1, 4)
    assert event.tags == {DATA_VERSION_TAG: there.version}
    assert world.known("landing") == ["2012-03-01T00:00Z"]
    assert world.waiting("landing") == []
    assert world.tick("pushed").recorded == 0


def test_a_push_of_what_is_known_records_it_anew(world: OldWorld) -> None:
    """The push is its latest materialization: without an answer its version would be nowhere to be seen."""
    (world.folder("pushed", "landing", "2012-03-01T00") / "part.csv").write_text("a,2\nb,3\n")
    push(world, "landing", "2012-03-01T00:00Z")
    assert world.tick("pushed").recorded == 1
    first, second = (read_record(FeedInstanceAvailable, event) for event in world.events("pushed", "landing"))
    assert second.bytes == 8
    with world.ledger.engine.connect() as connection:
        world.ledger.catch_up()
        row = connection.execute(select(FEED_INSTANCES).where(FEED_INSTANCES.c.feed == "landing")).one()
    assert (row.changes, row.previous_version) == (1, first.version)


def test_what_is_not_there_is_said_once_and_found_when_it_comes(world: OldWorld) -> None:
    world.land("pushed", "again", "2012-03-01T01", complete=False)
    push(world, "again", "2012-03-01T00:00Z", "2012-03-01T01:00Z")
    assert world.tick("pushed").recorded == 0
    nothing, no_flag = (world.folder("pushed", "again", f"2012-03-01T0{hour}") for hour in (0, 1))
    assert answers(world, "again") == [
        ("2012-03-01T00:00Z", f"there is nothing at {nothing}"),
        ("2012-03-01T01:00Z", f"there is no _SUCCESS in {no_flag}"),
    ]
    assert world.waiting("again") == []
    assert world.tick("pushed").recorded == 0
    assert len(answers(world, "again")) == 2
    (no_flag / "_SUCCESS").touch()
    assert world.go_on("pushed").recorded == 1
    assert world.recorded("pushed", "again") == ["2012-03-01T01"]


def test_strange_pushes_are_refused_with_a_reason(world: OldWorld) -> None:
    push(world, "strange", None, "yesterday", "2012-03-01T00:30Z", "2011-12-31T23:00Z", "2013-05-01T00:00Z")
    push(world, "made", "2012-03-01T00:00Z")
    push(world, "nobody declares this", "2012-03-01T00:00Z")
    push(world, "strange", "2012-03-01T02:00Z", metadata={"instance": "i-0abc", "bytes": "12 MB", "at": "now"})
    assert world.tick("pushed").recorded == 0
    nothing = world.folder("pushed", "strange", "2012-03-01T02")
    assert answers(world, "strange") == [
        (None, "say which partition landed; its partitions are like 2012-01-01T00:00Z"),
        (None, "'yesterday' is no partition of it; its partitions are like 2012-01-01T00:00Z"),
        (
            None,
            "feed 'strange' on cluster 'pushed' has no instance 2012-03-01T00:30Z: its frequency is hours(1), "
            "and the nearest ones are 2012-03-01T00:00Z and 2012-03-01T01:00Z",
        ),
        (
            None,
            "feed 'strange' on cluster 'pushed' has no instance 2011-12-31T23:00Z: its validity starts at "
            "2012-01-01T00:00Z",
        ),
        (None, "its time has not come, it is 2013-01-01T00:30Z; it is looked for from then on"),
        ("2012-03-01T02:00Z", f"there is nothing at {nothing}"),
    ]
    assert answers(world, "made") == [
        (None, "process 'make' writes it on cluster 'pushed': materialize the partition to have it written anew")
    ]
    assert answers(world, "nobody declares this") == []
    assert world.known("strange") == world.known("made") == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"instance": "2012-03-01T00:00Z", "at": "now"},
        {"instance": 7},
        {"nominal_time": "2012-03-01T00:00Z", "state": "DONE", "process": "make"},
        {"nominal_time": "x", "state": "SUCCEEDED"},
    ],
)
def test_what_others_write_does_not_stop_the_ledger(world: OldWorld, metadata: dict[str, Any]) -> None:
    push(world, "strange", "2012-03-01T03:00Z", metadata=metadata)
    world.instance.report_runless_asset_event(dg.AssetObservation(["pushed", "strange"], metadata=metadata))
    observed = {"evicted": "x", "too_late": 3, "pushed": "p", "pushed_event": "no number"}
    for key, value in observed.items():
        more = {**metadata, key: value}
        world.instance.report_runless_asset_event(dg.AssetObservation(["pushed", "strange"], metadata=more))
    before = len(answers_about(world))
    assert world.tick("pushed").recorded == 0
    assert len(answers_about(world)) == before + 1
    assert world.waiting("strange") == []


def answers_about(world: OldWorld) -> list[dg.AssetObservation]:
    records = world.instance.fetch_observations(dg.AssetKey(["pushed", "strange"]), limit=1000).records
    observed = [event for record in records if (event := record.asset_observation)]
    return [event for event in observed if event.partition == "2012-03-01T03:00Z" and has_record(PushRefused, event)]


def test_many_pushes_are_answered_in_order_as_the_budget_allows(
    world: OldWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "AT_ONCE", 5)
    pushed = list(hours("2012-05-01T00:00Z", 12))
    world.land("pushed", "many", *(hour[:13] for hour in pushed))
    push(world, "many", *pushed)
    assert [world.tick("pushed").recorded for _ in range(4)] == [5, 5, 2, 0]
    assert world.recorded("pushed", "many") == [hour[:13] for hour in pushed]


def test_what_cannot_be_read_is_refused_with_the_reason(world: OldWorld) -> None:
    bad = world.folder("pushed", "closed", "2012-03-01T00")
    bad.parent.mkdir(parents=True)
    bad.symlink_to(bad)
    push(world, "closed", "2012-03-01T00:00Z")
    world.tick("pushed")
    ((partition, why),) = answers(world, "closed")
    assert partition == "2012-03-01T00:00Z"
    assert "there is nothing at" in why or "links" in why


def test_a_rebuild_makes_the_same_of_history(world: OldWorld) -> None:
    push(world, "landing", "2012-09-01T00:00Z")
    world.ledger.catch_up()

    def everything() -> list[Any]:
        with world.ledger.engine.connect() as connection:
            tables = (FEED_INSTANCES, PUSHED)
            return [list(connection.execute(select(one).order_by(*one.primary_key.columns))) for one in tables]

    before = everything()
    assert [row.partition for row in before[1] if row.feed == "landing"] == ["2012-09-01T00:00Z"]
    world.ledger.rebuild()
    assert everything() == before
