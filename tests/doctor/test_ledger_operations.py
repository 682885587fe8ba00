"""How far the ledger is, and making it anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import pytest

from falcon_assets.doctor.admin import RebuildLedger, ShowLedger
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import InstanceState
from tests.ledger.histories import empty
from tests.operations.opening import OpenAt

START = "2013-01-01T00:00Z"
KEY = ("hourly", "primary")


@pytest.fixture
def installation(open_at: OpenAt) -> Iterator[Installation]:
    """Nothing happened yet."""
    with open_at(START) as opened:
        opened.instance.wipe()
        empty(opened.ledger.engine)
        yield opened


def happen(installation: Installation, hour: int, state: InstanceState) -> None:
    """An instance comes to a state in Dagster's history."""
    at, key = parse_instant(START) + timedelta(hours=hour), dg.AssetKey(["primary", "hourly-out"])
    changed = InstanceChanged("hourly", "primary", at, state, at)
    installation.instance.report_runless_asset_event(changed.event(key, f"{at:%Y-%m-%d-%H:%M}"))


def test_the_status_counts_what_is_folded_and_what_is_not_and_folds_nothing(installation: Installation) -> None:
    empty = ShowLedger().run(installation)
    assert (empty.event_id, empty.behind, set(empty.rows.values()), empty.instances) == (0, 0, {0}, {})
    for hour in range(3):
        happen(installation, hour, InstanceState.SUCCEEDED)
    assert [ShowLedger().run(installation).behind for _ in range(2)] == [3, 3]
    installation.ledger.catch_up()
    found = ShowLedger().run(installation)
    assert (found.behind, found.rows["process_instances"]) == (0, 3)
    assert found.instances == {KEY: {InstanceState.SUCCEEDED: 3}}


def test_rebuilding_mends_the_projection(installation: Installation) -> None:
    for hour in range(3):
        happen(installation, hour, InstanceState.TIMED_OUT)
    installation.ledger.catch_up()
    with installation.database.begin() as connection:
        connection.execute(PROCESS_INSTANCES.update().values(state="RUNNING"))
    happen(installation, 3, InstanceState.TIMED_OUT)
    assert RebuildLedger().run(installation).facts == 4
    found = ShowLedger().run(installation)
    assert (found.behind, found.instances) == (0, {KEY: {InstanceState.TIMED_OUT: 4}})
