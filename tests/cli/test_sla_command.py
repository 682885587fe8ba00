"""``falcon sla alerts|pending``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import delete

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.history.tables import CLOCK, METADATA
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.sla import sla
from tests.builders import cluster_yaml
from tests.ledger.histories import empty

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
sla: {{low: hours(1), high: hours(3)}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: "2013-01-01T06:00Z"}}}}]
schedule: {schedule}
{acl}
"""
OTHERS = 'acl: {owner: somebody-else, permission: "0700"}'
FILES = {
    "all.yaml": cluster_yaml()
    + cluster_yaml("quiet")
    + FEED.format(name="raw", schedule="true", acl="")
    + FEED.format(name="idle", schedule="false", acl="")
    + FEED.format(name="secret", schedule="true", acl=OTHERS)
}


@pytest.fixture
def call(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Result]]:
    """Calls the command at 04:30, when 00:00 has come in time, 01:00 late and nothing else; evaluated at 04:15."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T04:30Z")
    monkeypatch.chdir(settings.home)
    store = load_entities(write_entities(FILES))
    ledger = open_ledger(replace(settings, clock=Clock(origin=parse_instant("2013-01-01T00:00Z"))), instance)
    instance.wipe()
    empty(ledger.engine, CLOCK)
    for hour, at in (("00:00", "00:30"), ("01:00", "03:30")):
        landed, came = parse_instant(f"2013-01-01T{hour}Z"), parse_instant(f"2013-01-01T{at}Z")
        said = FeedInstanceAvailable("primary", "raw", landed, "v1", came)
        event = materialization(dg.AssetKey(["primary", "raw"]), f"2013-01-01T{hour}Z", said)
        instance.report_runless_asset_event(event)
    for time in ("00:00", "04:15"):
        SlaEvaluation(store, "primary", lambda time=time: parse_instant(f"2013-01-01T{time}Z")).evaluate(ledger)
    yield lambda *arguments: CliRunner().invoke(sla, arguments)


def listed(call: Callable[..., Result], *arguments: str) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def told(found: dict[str, Any]) -> list[str]:
    names = ("severity", "entity", "instance", "level", "state", "left_seconds")
    return [" ".join(str(one[name]) for name in names if name in one) for one in found["items"]]


OPEN = [
    "WARN raw 2013-01-01T03:00Z low OPEN",
    "WARN raw 2013-01-01T02:00Z low OPEN",
]


def test_alerts_are_what_is_open_and_may_be_read(call: Callable[..., Result]) -> None:
    found = listed(call, "alerts")
    assert told(found) == OPEN
    assert (found["total"], found["next"]) == (2, None)
    assert found["evaluated"] == {"primary": "2013-01-01T04:15:00+00:00"}
    assert found["items"][0] == {
        "kind": "feed",
        "entity": "raw",
        "cluster": "primary",
        "instance": "2013-01-01T03:00Z",
        "level": "low",
        "severity": "WARN",
        "deadline": "2013-01-01T04:00:00+00:00",
        "state": "OPEN",
        "cleared": None,
    }


def test_alerts_filtered_sorted_and_in_parts(call: Callable[..., Result]) -> None:
    assert told(listed(call, "alerts", "--filter", "state=met")) == ["WARN raw 2013-01-01T01:00Z low MET"]
    every = listed(call, "alerts", "--filter", "state=MET", "--filter", "state=OPEN", "--sort", "instance")
    assert [one["instance"][11:13] for one in every["items"]] == ["01", "02", "03"]
    first = listed(call, "alerts", "--limit", "1")
    assert (told(first), first["total"], first["next"]) == (OPEN[:1], 2, 1)
    assert told(listed(call, "alerts", "--offset", "1")) == OPEN[1:]
    assert told(listed(call, "alerts", "--filter", "entity=idle")) == []
    assert told(listed(call, "alerts", "--filter", "severity=error")) == []


def test_alerts_as_a_table(call: Callable[..., Result]) -> None:
    result = call("alerts", "--limit", "1")
    assert "WARN" in result.stdout and "2013-01-01T04:00:00Z" in result.stdout
    assert "1 of 2 lines; the next ones: --offset 1" in result.stdout
    assert result.stderr == "the SLAs on primary were evaluated last at 2013-01-01T04:15:00Z\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--filter", "severity=worse"], "there is no severity 'worse'; there is: WARN, ERROR"),
        (["--filter", "colour=red"], "there is: kind, entity, cluster, level, severity, state"),
        (["--sort", "when"], "there is no field 'when'; there is: deadline, instance"),
    ],
)
def test_what_cannot_be_asked_for(call: Callable[..., Result], arguments: list[str], told: str) -> None:
    result = call("alerts", *arguments)
    assert result.exit_code != 0
    assert told in result.stderr + str(result.exception)


def test_pending_is_what_soon_breaches(call: Callable[..., Result]) -> None:
    """Of what is scheduled and may be read: 04:00 has half an hour left, so only the second level is announced."""
    found = listed(call, "pending")
    assert told(found) == [
        "ERROR raw 2013-01-01T02:00Z high 1800",
        "ERROR raw 2013-01-01T03:00Z high 5400",
    ]
    assert told(listed(call, "pending", "--filter", "instance=2013-01-01T03:00Z")) == told(found)[1:]


def test_a_quarter_of_an_hour_before(call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T04:50Z")
    result = call("pending", "--sort", "instance", "--offset", "2")
    assert "WARN" in result.output and "0:10:00" in result.output


def test_nobody_evaluates(call: Callable[..., Result], settings: Settings, instance: dg.DagsterInstance) -> None:
    with open_ledger(settings, instance).engine.begin() as connection:
        connection.execute(delete(METADATA.tables["falcon.sla_evaluations"]))
    result = call("alerts")
    assert result.stderr == "the SLAs on primary were never evaluated: is Dagster's daemon running?\n"
