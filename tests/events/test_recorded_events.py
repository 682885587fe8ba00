"""Events that versions of this package wrote, as they stand in Dagster's database: what they say stays the same.

``earlier`` ones are of the version whose runs have their tags as ``falcon/...``.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import InstancesKept, InstancesLanded, KeptInstance
from falcon_assets.history.events.process_instances import FilesCopied, WorkDone
from falcon_assets.history.events.record import Record
from falcon_assets.history.platform.dagster_history import facts_of
from falcon_assets.model.instant import parse_instant
from tests.records import read_record

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())


def entry(name: str) -> dg.EventLogEntry:
    found: dg.EventLogEntry = dg.deserialize_value(json.dumps(RECORDED[name]["event"]), dg.EventLogEntry)
    return found


def plain(fact: Fact) -> list[Any]:
    said = json.loads(json.dumps(asdict(fact), default=str))
    return [type(fact).__name__, {key: value for key, value in said.items() if value not in (None, "", [])}]


@pytest.mark.parametrize("name", RECORDED)
def test_what_an_event_says(name: str) -> None:
    found = list(facts_of(7, entry(name), RECORDED[name]["tags"]))
    assert [plain(one.fact) for one in found] == RECORDED[name]["says"]
    assert {one.event_id for one in found} <= {7}
    assert {one.run_id for one in found} <= {entry(name).run_id or None}


@pytest.mark.parametrize(
    ("name", "records"),
    [
        (
            "earlier: kept",
            [
                InstancesKept(
                    1,
                    (KeptInstance(parse_instant("2013-01-01T02:00Z"), "one of the newest 1 (keep_last)"),),
                    parse_instant("2013-01-01T05:30Z"),
                )
            ],
        ),
        (
            "landed, in sum",
            [
                InstancesLanded(
                    1,
                    parse_instant("2013-01-01T03:00Z"),
                    parse_instant("2013-01-01T03:00Z"),
                    parse_instant("2013-01-01T07:30Z"),
                )
            ],
        ),
        ("effect", [WorkDone(0.122, "local-1795350674575")]),
        (
            "earlier: replicated",
            [
                FilesCopied("east", 1, 0, 0, 9, "checksum"),
                WorkDone(1.142),
            ],
        ),
    ],
)
def test_what_an_event_says_to_people(name: str, records: list[Record]) -> None:
    event = entry(name).asset_materialization or entry(name).asset_observation
    assert [read_record(type(one), event) for one in records] == records
