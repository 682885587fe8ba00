"""``falcon notification list|test``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.history.tables import CLOCK
from falcon_assets.instances.outbox.delivery import Delivery
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.notification import notification
from tests.builders import cluster_yaml
from tests.ledger.histories import empty
from tests.receivers import Received, web_hook

PROCESS = """---
kind: process
name: {name}
frequency: hours(1)
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: "2013-01-02T00:00Z"}}}}]
workflow: {{engine: spark-sql, path: nothing.sql}}
retry: {{policy: final}}
schedule: true
{more}
"""
TELLS = "notification: {on: [FAILED], to: [{url: {env: HOOK}}, {url: {env: NOWHERE}}]}\n"
OTHERS = 'acl: {owner: somebody-else, permission: "0700"}\n'
NAMES = ("hourly", "secret", "mute")
FILES = {
    "all.yaml": cluster_yaml()
    + PROCESS.format(name="hourly", more=TELLS)
    + PROCESS.format(name="secret", more=TELLS + OTHERS)
    + PROCESS.format(name="mute", more="")
}
NOON = "2013-01-01T12:00Z"


@pytest.fixture
def hook() -> Iterator[Received]:
    with web_hook() as made:
        yield made


@pytest.fixture
def call(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
    hook: Received,
) -> Callable[..., Result]:
    """Calls the command when an instance of each process has failed, and those who listen were told."""
    url = f"json://127.0.0.1:{hook.port}/hushhush"
    for name, value in (("FALCON_CLOCK", NOON), ("HOOK", url)):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NOWHERE", raising=False)
    monkeypatch.chdir(settings.home)
    root = write_entities(FILES)
    (root / "nothing.sql").write_text("SELECT 1")
    now = parse_instant(NOON)
    settings = replace(settings, clock=Clock(origin=now), environ={**settings.environ, "HOOK": url})
    ledger = open_ledger(settings, instance)
    instance.wipe()
    empty(ledger.engine, CLOCK)
    recording = EventRecording(load_entities(root), settings)
    recording.record(ledger, now)
    for name in NAMES:
        failed = InstanceChanged(name, "primary", now, InstanceState.FAILED, now, "[no] space")
        instance.report_runless_asset_event(failed.event(dg.AssetKey(["primary", name]), NOON))
    recording.record(ledger, now)
    Delivery(recording.clusters, lambda: now, recording.receivers).deliver(ledger)
    return lambda *arguments: CliRunner().invoke(notification, arguments)


def listed(call: Callable[..., Result], *arguments: str) -> list[dict[str, Any]]:
    result = call("list", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["items"]
    return found


def test_what_waits_and_what_was_sent_of_what_one_may_read(call: Callable[..., Result], hook: Received) -> None:
    (waits,) = listed(call)
    assert waits == {
        "state": "PENDING",
        "event": "FAILED",
        "kind": "process",
        "entity": "hourly",
        "cluster": "primary",
        "instance": NOON,
        "at": "2013-01-01T12:00:00+00:00",
        "reason": "[no] space",
        "receiver": "NOWHERE",
        "message": None,
        "settled": None,
        "failures": 1,
        "problem": "the environment variable NOWHERE is not set",
        "retry": "2013-01-01T12:01:00+00:00",
    }
    (sent,) = listed(call, "--filter", "state=sent")
    assert (sent["receiver"], sent["failures"], sent["problem"]) == ("HOOK", 0, "")
    assert sent["message"] == hook.messages[0][2]
    assert listed(call, "--filter", f"message={sent['message']}") == [sent]
    assert listed(call, "--filter", "receiver=HOOK") == []


def test_the_table(call: Callable[..., Result]) -> None:
    shown = call("list").output
    assert "[no] space" in shown
    assert "the environment variable NOWHERE is not set; next try at 2013-01-01T12:01:00Z" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--filter", "state=LOST"), "there is no state 'LOST'; there is: PENDING, SENDING, SENT, GIVEN_UP"),
        (("list", "--filter", "colour=red"), "there is no field 'colour'"),
        (("test", "hourli"), "there is no feed, process or cluster 'hourli' (did you mean 'hourly'?)"),
        (("test", "mute"), "nobody is notified of process 'mute': declare its notification"),
        (("test", "secret"), "may not read"),
    ],
)
def test_what_cannot_be_done(call: Callable[..., Result], arguments: tuple[str, ...], said: str) -> None:
    result = call(*arguments)
    assert result.exit_code != 0
    assert said in result.output + str(result.exception)


def test_a_test_message(call: Callable[..., Result], hook: Received) -> None:
    result = call("test", "hourly")
    assert result.exit_code == 1
    assert result.output.splitlines() == ["HOOK: sent", "NOWHERE: the environment variable NOWHERE is not set"]
    assert hook.messages[-1][:2] == (
        "falcon: a test for process hourly",
        "This is a test. You are notified of process hourly: FAILED.",
    )
