"""Inputs that require valid data wait for it; what is invalid is marked above, below and in what was made from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import event

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.quality.events import InstanceChecked, InvalidAccepted
from falcon_assets.features.quality.transitions import quality_events
from falcon_assets.features.quality.verdict import InstanceVerdict, QualityResult
from falcon_assets.features.rollups.passes import RollupPass
from falcon_assets.history.events.event_log import Logged, materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.coordination.input_gates import input_gates
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.features.quality.shop import GOOD, anew, at, feed, land
from tests.operations.opening import OpenAt

CHECK = "\n  - {name: enough, rule: row_count, min: 2}\n"
ROLLUP = """
---
kind: feed
name: sales-NAME
frequency: FREQUENCY
rollup: {of: [sales]}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""


def rollup(name: str, frequency: str, more: str = "") -> str:
    return ROLLUP.replace("NAME", name).replace("FREQUENCY", frequency) + more


def reading(name: str, feed: str, makes: str | None = None, **more: Any) -> str:
    read = {"name": "rows", "feed": feed, "start": "now(0,0)", "end": "now(0,0)", **more}
    return process_yaml(name, None, makes, inputs=[read], schedule=True, parallel=9)


ENTITIES = "".join(
    [
        cluster_yaml(),
        feed(checks=CHECK),
        rollup("three-hourly", "hours(3)"),
        feed_yaml("sums"),
        feed_yaml("tops"),
        reading("requiring", "sales", "tops"),
        reading("ignoring", "sales", "sums", quality="ignore"),
        reading("of-window", "sales-three-hourly"),
        reading("of-sums", "sums"),
        reading("of-valid-sums", "sums", quality="require"),
    ]
)


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-01T04:00Z") as opened:
        yield anew(opened)


def version_of(installation: Installation, name: str, instance: datetime) -> str:
    (found,) = list_instances(installation, InstanceQuery(name, "feed", start=instance, cluster="primary")).items
    return str(found.as_data()["feed"]["version"])


def judge(installation: Installation, hour: int, verdict: InstanceVerdict, name: str = "sales") -> None:
    """What a check of the present version records."""
    passed = verdict is InstanceVerdict.VALID
    result = QualityResult("enough", "row_count", "error", passed=passed, said="1 row, at least 2")
    now, version = installation.settings.now(), version_of(installation, name, at(hour))
    found = InstanceChecked("primary", name, at(hour), verdict, version, now, "full", 1, (result,))
    record(installation, name, at(hour), found)


def record(installation: Installation, name: str, instance: datetime, fact: Any) -> None:
    partition = key_of(feed_timeline(installation.entities.feed(name), "primary"), instance)
    reported = materialization if isinstance(fact, FeedInstanceAvailable) else observation
    said = reported(names.asset_key(fact.cluster, name), partition, fact, description="")
    installation.ledger.instance.report_runless_asset_event(said)
    installation.ledger.catch_up()


def make(installation: Installation, name: str, hour: int, version: str, reads: str) -> None:
    """What a run of a process records of its output."""
    read = Consumption(reads, at(hour), version_of(installation, reads, at(hour)))
    now = installation.settings.now()
    made = FeedInstanceAvailable(
        "primary", name, at(hour), version, now, process="ignoring", nominal=at(hour), inputs={"rows": (read,)}
    )
    record(installation, name, at(hour), made)


def roll_up(installation: Installation) -> int:
    return RollupPass(installation.entities, "primary", installation.settings).record(installation.ledger)


def ready(installation: Installation) -> set[tuple[str, str]]:
    workloads = installation.entities.workloads
    outlook = Coordinator(installation.entities, installation.settings, workloads).decide(installation.ledger)
    assert outlook.problems == {}
    return {(run.workload.name, format_instant(one)[11:13]) for run in outlook.runs for one in run.launch.nominals}


def reason(installation: Installation, process: str, hour: int) -> dict[str, Any]:
    (found,) = list_instances(installation, InstanceQuery(process, start=at(hour))).items
    return found.reason or {}


def quality(installation: Installation, name: str, instance: datetime) -> str:
    (found,) = list_instances(installation, InstanceQuery(name, "feed", start=instance)).items
    return str(found.as_data()["feed"].get("quality", {}).get("text", ""))


def test_instances_wait_for_checks_and_for_valid_data(installation: Installation) -> None:
    for hour in range(3):
        land(installation, hour, *GOOD)
    assert roll_up(installation) == 1
    assert ready(installation) == {("ignoring", "00"), ("ignoring", "01"), ("ignoring", "02")}
    waits = reason(installation, "requiring", 1)
    assert (waits["kind"], waits["text"]) == (
        "input_unchecked",
        "waits for the checks of sales 2013-01-01T01:00Z",
    )
    window = reason(installation, "of-window", 1)
    assert window["text"].startswith("waits for the checks of sales 2013-01-01T0")
    assert window["text"].endswith(":00Z in sales-three-hourly 2013-01-01T00:00Z")
    for hour, verdict in enumerate((InstanceVerdict.VALID, InstanceVerdict.INVALID, InstanceVerdict.VALID)):
        judge(installation, hour, verdict)
    assert {one for one in ready(installation) if one[0] != "ignoring"} == {("requiring", "00"), ("requiring", "02")}
    waits = reason(installation, "requiring", 1)
    assert waits["kind"] == "input_invalid"
    assert waits["text"] == "waits until sales 2013-01-01T01:00Z is valid: rule enough failed: 1 row, at least 2"
    assert waits["commands"][0] == "falcon quality show sales 2013-01-01T01:00Z --cluster primary"
    window = reason(installation, "of-window", 1)
    assert window["text"] == (
        "waits until sales-three-hourly 2013-01-01T00:00Z is valid: "
        "contains invalid sales 2013-01-01T01:00Z, rule enough failed"
    )
    listed = list_instances(installation, InstanceQuery("requiring", reasons=("input_invalid",))).items
    assert [one.instance for one in listed] == [at(1)]


def test_a_correction_clears_the_marks_of_what_is_made_again(installation: Installation) -> None:
    """The version that was read counts: what was made from an invalid one stays marked until it is made again."""
    for hour in range(3):
        land(installation, hour, *GOOD)
        judge(installation, hour, InstanceVerdict.INVALID if hour == 1 else InstanceVerdict.VALID)
    roll_up(installation)
    make(installation, "sums", 1, "sum-1", reads="sales")
    assert quality(installation, "sales", at(1)) == "invalid"
    assert quality(installation, "sales", at(0)) == "valid"
    assert quality(installation, "sums", at(1)) == "made from invalid sales 2013-01-01T01:00Z: rule enough"
    window = "contains invalid sales 2013-01-01T01:00Z: rule enough"
    assert quality(installation, "sales-three-hourly", at(0)) == window
    assert ("of-sums", "01") in ready(installation)
    assert "made from invalid" in reason(installation, "of-valid-sums", 1)["text"]
    land(installation, 1, *GOOD, {"id": 3, "item": "c", "n": 3})
    assert quality(installation, "sales", at(1)) == "backfilled"
    assert quality(installation, "sales-three-hourly", at(0)) == window.replace(
        ": rule", ", which was replaced since: rule"
    )
    assert roll_up(installation) == 1
    assert quality(installation, "sales-three-hourly", at(0)) == "contains backfilled sales 2013-01-01T01:00Z"
    waits = reason(installation, "requiring", 1)
    assert waits["text"] == "waits for the checks of the backfilled sales 2013-01-01T01:00Z"
    replaced = "made from invalid sales 2013-01-01T01:00Z, which was replaced since: rule enough"
    assert quality(installation, "sums", at(1)) == replaced
    judge(installation, 1, InstanceVerdict.VALID)
    assert quality(installation, "sales-three-hourly", at(0)) == ""
    assert {("requiring", "01"), ("of-window", "01")} <= ready(installation)
    assert quality(installation, "sums", at(1)) == replaced
    make(installation, "sums", 1, "sum-2", reads="sales")
    assert quality(installation, "sums", at(1)) == ""
    assert ("of-valid-sums", "01") in ready(installation)
    before = [quality(installation, name, at(1)) for name in ("sales", "sums")]
    installation.ledger.rebuild()
    assert [quality(installation, name, at(1)) for name in ("sales", "sums")] == before


def test_a_person_accepts_what_is_invalid_or_made_from_it(installation: Installation) -> None:
    """Accepting the origin clears every mark; accepting what was made from it clears that, and what follows from it."""
    land(installation, 1, *GOOD)
    judge(installation, 1, InstanceVerdict.INVALID)
    make(installation, "sums", 1, "sum-1", reads="sales")
    shown = call("show", "sums", "2013-01-01T01:00Z")
    assert shown.output.splitlines()[1] == "made from invalid sales 2013-01-01T01:00Z: rule enough"
    why = "the next day corrects it"
    accepted = call("accept", "sums", "2013-01-01T01:00Z", "--reason", why)
    assert accepted.exit_code == 0, accepted.output
    assert accepted.output.splitlines()[0] == "sums 2013-01-01T01:00Z on primary: VALID"
    assert quality(installation, "sums", at(1)) == "accepted"
    assert {one for one in ready(installation) if one[1] == "01"} == {
        ("of-valid-sums", "01"),
        ("of-sums", "01"),
        ("ignoring", "01"),
    }
    before = json.loads(call("show", "sums", "2013-01-01T01:00Z", "--json").output)
    installation.ledger.rebuild()
    assert json.loads(call("show", "sums", "2013-01-01T01:00Z", "--json").output) == before
    make(installation, "sums", 1, "sum-2", reads="sales")
    assert quality(installation, "sums", at(1)).startswith("made from invalid")
    assert call("accept", "sales", "2013-01-01T01:00Z", "--reason", why).exit_code == 0
    assert (quality(installation, "sales", at(1)), quality(installation, "sums", at(1))) == ("accepted", "")
    assert ("requiring", "01") in ready(installation)
    refused = call("accept", "tops", "2013-01-01T01:00Z", "--reason", why)
    assert "is not available" in str(refused.exception)


def test_what_is_accepted_without_a_verdict_becomes_valid(installation: Installation) -> None:
    fact = InvalidAccepted("primary", "sums", at(1), "ann", "v", at(3), "why")
    checked = InstanceChecked("primary", "sums", at(1), InstanceVerdict.VALID, "v", at(4), "full")
    with installation.ledger.engine.connect() as connection:
        found = list(quality_events(connection, [Logged(1, fact), Logged(2, checked)], ()))
    assert [(one.event, one.reason) for one in found] == [(EventKind.VALID, "accepted by ann: why")]


def test_triage_and_explain_name_the_instance_and_its_rule(installation: Installation) -> None:
    land(installation, 1, *GOOD)
    judge(installation, 1, InstanceVerdict.INVALID)
    found = " ".join(
        CliRunner().invoke(falcon, ["instance", "triage", "requiring", "2013-01-01T01:00Z"]).output.split()
    )
    assert "waits until sales 2013-01-01T01:00Z is valid: rule enough failed: 1 row, at least 2" in found
    assert "falcon quality accept sales 2013-01-01T01:00Z --cluster primary --reason REASON" in found
    explained = CliRunner().invoke(falcon, ["explain", "requiring", "2013-01-01T01:00Z", "--json"]).output
    (waits,) = json.loads(explained)["inputs"][0]["waits_for"]
    assert (waits["kind"], waits["rule"], waits["found"]) == ("input_invalid", "enough", "1 row, at least 2")
    printed = CliRunner().invoke(falcon, ["metrics"]).output.splitlines()
    counted = [line for line in printed if line.startswith("falcon_feed_instances_not_valid{")]
    assert counted == ['falcon_feed_instances_not_valid{cluster="primary",feed="sales",state="INVALID"} 1.0']


def statements(installation: Installation, store: EntityStore) -> int:
    """How many a coordinator needs to find out which gates are closed, whatever is behind them."""
    engine, said = installation.ledger.engine, list[str]()
    listener = ("before_cursor_execute", lambda _, __, statement, *rest: said.append(statement))
    feeds = [("primary", name) for name in store.feeds]
    event.listen(engine, *listener)
    try:
        with engine.begin() as connection:
            input_gates(connection, store, installation.settings.now())(feeds)
    finally:
        event.remove(engine, *listener)
    return len(said)


def test_gates_take_the_same_few_statements_and_none_without_checks(installation: Installation) -> None:
    land(installation, 0, *GOOD)
    judge(installation, 0, InstanceVerdict.INVALID)
    first = statements(installation, installation.entities)
    for hour in range(1, 4):
        land(installation, hour, *GOOD)
        judge(installation, hour, InstanceVerdict.INVALID)
        make(installation, "sums", hour, f"sum-{hour}", reads="sales")
    roll_up(installation)
    assert statements(installation, installation.entities) == first <= 8
    entities = installation.entities
    without = replace(entities, relations=replace(entities.relations, checked=frozenset()))
    assert statements(installation, without) == 0


def test_triage_names_what_checks_nothing(installation: Installation) -> None:
    land(installation, 1, *GOOD)
    output = CliRunner().invoke(falcon, ["instance", "triage", "requiring", "2013-01-01T01:00Z", "--json"]).output
    found = json.loads(output)
    assert (found["reason"]["kind"], found["fix"]) == ("input_unchecked", None)
    assert [(one["entity"], one["fix"]) for one in found["causes"]] == [("dagster-daemon", "dagster-daemon run")]


REPLICATED = (
    cluster_yaml()
    + cluster_yaml("backup")
    + feed("sales", CHECK).replace(
        "clusters: [{name: primary, ", "clusters: [{name: backup, type: target, VALID}, {name: primary, type: source, "
    )
).replace("VALID}", "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}")


def test_copies_and_compactions_go_on_and_carry_the_mark(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    write_entities({"all.yaml": REPLICATED})
    with open_at("2013-01-01T04:00Z") as installation:
        anew(installation)
        land(installation, 1, *GOOD)
        judge(installation, 1, InstanceVerdict.INVALID)
        assert ("sales from primary", "01") in ready(installation)
        version, now = version_of(installation, "sales", at(1)), installation.settings.now()
        about = {"process": "sales from primary", "nominal": at(1), "source_versions": {"primary": version}}
        record(installation, "sales", at(1), FeedInstanceAvailable("backup", "sales", at(1), "copy", now, **about))
        copy = list_instances(installation, InstanceQuery("sales", "feed", start=at(1), cluster="backup")).items[0]
        mark = "made from invalid sales 2013-01-01T01:00Z: rule enough"
        assert copy.as_data()["feed"]["quality"]["text"] == mark
        own = {"rows": (Consumption("sales", at(1), version),)}
        compacted = FeedInstanceAvailable(
            "primary", "sales", at(1), "c", now, process="sales compacted", nominal=at(1), inputs=own
        )
        record(installation, "sales", at(1), compacted)
        found = list_instances(installation, InstanceQuery("sales", "feed", start=at(1), cluster="primary")).items[0]
        shown = found.as_data()["feed"]["quality"]
        assert (shown["state"], shown["verdict"], shown["origin"]["replaced"]) == ("INVALID", "UNCHECKED", True)


def call(*words: str) -> Result:
    return CliRunner().invoke(falcon, ["quality", *words], prog_name="falcon")
