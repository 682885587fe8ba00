"""``rerun`` says which version of its definition will run: who has mended a workflow means the latest one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from falcon_assets.entities.definition_versions import Recorder, record_definitions
from falcon_assets.entities.status import Status, command
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.views.query import InstanceQuery
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.entities import RETAINED
from tests.operations.opening import OpenAt
from tests.operations.rows import process_row, write

FAILED = InstanceQuery("reader", start=hour(1), end=hour(2))


@pytest.fixture
def notes(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Callable[..., list[str]]:
    """Two instances failed with a workflow that was recorded and scheduled at 03:00, and is then another one."""

    def told(workflow: str = "SELECT 2", *, recorded: bool = False, **options: bool) -> list[str]:
        root = write_entities({"all.yaml": RETAINED, "a.sql": "SELECT 1"})
        with open_at("2013-01-01T05:30Z") as opened:
            empty(opened.ledger.engine)
            engine, recorder = opened.ledger.engine, Recorder("me")
            record_definitions(engine, root, hour(3), recorder)
            with engine.begin() as connection:
                command(connection, opened.entities.processes["reader"], Status.RUNNING, hour(3))
            write(opened, *(process_row("reader", one, "FAILED", failures=9) for one in (1, 2)))
            write_entities({"all.yaml": RETAINED, "a.sql": workflow})
            if recorded:
                record_definitions(engine, root, hour(4), recorder)
            request = InstanceRequest(FAILED, dry_run=True)
            return [one for one in rerun_instances(opened, request, RerunOptions(**options)).notes if "version" in one]

    return told


def test_an_old_version_is_named_with_the_way_out(notes: Callable[..., list[str]]) -> None:
    said = "2 instances of reader run with version 1 of the definition, as before, not with the latest, 2"
    assert notes(recorded=True) == [f"{said}: --use-latest takes that one"]


def test_what_was_just_mended_is_the_latest_before_anything_has_loaded_it(notes: Callable[..., list[str]]) -> None:
    new = ", which was changed since and is recorded when something runs"
    said = "2 instances of reader run with version 1 of the definition, as before, not with the latest, 2"
    assert notes() == [f"{said}{new}: --use-latest takes that one"]
    assert notes(use_latest=True) == [f"2 instances of reader run with version 2 of the definition, the latest{new}"]


def test_the_only_version(notes: Callable[..., list[str]]) -> None:
    assert notes("SELECT 1") == ["2 instances of reader run with version 1 of the definition, the latest"]
