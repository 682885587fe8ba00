from __future__ import annotations

import re
from datetime import timedelta

import dagster as dg
import pytest
from click.testing import CliRunner

from falcon_assets.history.database import upsert
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import ENTITY_STATUS, METADATA, PROCESS_INSTANCES
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.ledger import ledger
from tests.hours import START
from tests.ledger.histories import empty

KEPT = {"kind": "process", "name": "hourly", "status": "SUSPENDED", "since": START, "commanded": True}
KEPT["scheduled_since"] = START


@pytest.fixture
def opened(settings: Settings, instance: dg.DagsterInstance) -> Ledger:
    """An empty ledger that is folded up to now."""
    found = open_ledger(settings, instance)
    instance.wipe()
    empty(found.engine)
    return found


def happen(instance: dg.DagsterInstance, hour: int, state: InstanceState, process: str = "hourly") -> None:
    """An instance comes to a state in Dagster's history."""
    at, key = START + timedelta(hours=hour), dg.AssetKey(["primary", f"{process}-out"])
    changed = InstanceChanged(process, "primary", at, state, at)
    instance.report_runless_asset_event(changed.event(key, f"{at:%Y-%m-%d-%H:%M}"))


def call(*arguments: str) -> list[str]:
    result = CliRunner().invoke(ledger, arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def cells(lines: list[str]) -> list[list[str]]:
    return [re.findall(r"[\w-]+", line) for line in lines]


def test_status_of_an_empty_ledger(opened: Ledger) -> None:
    first, *rest = call("status")
    assert first == "folded up to event 0: up to date"
    assert [row for row in cells(rest) if row[1:] == ["0"]] == [[table.name, "0"] for table in METADATA.tables.values()]
    assert not any("Process instances" in line for line in rest)


def test_status_counts_what_is_folded_and_what_is_not_and_changes_nothing(
    opened: Ledger, instance: dg.DagsterInstance
) -> None:
    for hour, state in enumerate((InstanceState.SUCCEEDED, InstanceState.TIMED_OUT, InstanceState.SUCCEEDED)):
        happen(instance, hour, state)
    happen(instance, 0, InstanceState.SKIPPED, "daily")
    assert call("status")[0] == "folded up to event 0: 4 events behind"
    opened.catch_up()
    happen(instance, 5, InstanceState.SKIPPED)
    for _ in range(2):
        first, *rest = call("status")
        assert re.fullmatch(r"folded up to event [1-9][0-9]*: 1 event behind", first)
        rows = cells(rest)
        assert ["process_instances", "4"] in rows
        assert rows.index(["process", "cluster", "SUCCEEDED", "TIMED_OUT", "SKIPPED"]) < rows.index(
            ["daily", "primary", "0", "0", "1"]
        )
        assert ["hourly", "primary", "2", "1", "0"] in rows


def test_rebuild_mends_the_projection_and_keeps_what_was_commanded(
    opened: Ledger, instance: dg.DagsterInstance
) -> None:
    for hour in range(3):
        happen(instance, hour, InstanceState.TIMED_OUT)
    opened.catch_up()
    with opened.engine.begin() as connection:
        connection.execute(PROCESS_INSTANCES.update().values(state="RUNNING"))
        upsert(connection, ENTITY_STATUS, [KEPT])
    happen(instance, 3, InstanceState.TIMED_OUT)
    (line,) = call("rebuild")
    assert re.fullmatch(r"the ledger is rebuilt: 4 facts in [0-9]+\.[0-9] s", line)
    first, *rest = call("status")
    assert first.endswith(": up to date")
    rows = cells(rest)
    assert ["hourly", "primary", "4"] in rows
    assert ["process", "cluster", "TIMED_OUT"] in rows
    assert ["entity_status", "1"] in rows
