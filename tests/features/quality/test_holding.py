"""Outputs that fail their checks are kept aside, unpublished, until they are computed again or accepted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml, process_yaml
from tests.features.landing.snapshot_tables import run, said
from tests.features.quality.shop import anew, checking
from tests.operations.opening import OpenAt

pytestmark = pytest.mark.usefixtures("spark")
ONE = "clusters: [{name: primary, validity: {start: 2013-01-01T01:00Z, end: 2013-01-01T02:00Z}}]"
FEEDS = f"""
---
kind: feed
name: rows
frequency: hours(1)
format: json
schema: "n int"
locations: {{data: "/rows/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}"}}
{ONE}
---
kind: feed
name: kept
frequency: hours(1)
schema: "n int"
on_error: hold
checks:
  - {{name: enough, rule: row_count, min: 2}}
  - {{rule: in_range, column: n, min: 0}}
locations: {{data: "/kept/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}"}}
{ONE}
"""
HOUR = {"name": "primary", "validity": {"start": "2013-01-01T01:00Z", "end": "2013-01-01T02:00Z"}}


def land(installation: Installation, *numbers: int) -> None:
    folder = installation.settings.home / "data/primary/rows/20130101-01"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.json").write_text("".join(json.dumps({"n": one}) + "\n" for one in numbers))


def published(installation: Installation) -> list[int] | None:
    folder = installation.settings.home / "data/primary/kept/20130101-01"
    return sorted(pq.read_table(folder)["n"].to_pylist()) if folder.exists() else None


def rows(installation: Installation, sql: str) -> list[tuple[Any, ...]]:
    installation.ledger.catch_up()
    with installation.ledger.engine.connect() as connection:
        return [tuple(one) for one in connection.execute(text(sql))]


HELD = "SELECT records, accepted_by IS NOT NULL, accepted_reason FROM falcon.quality_held"
VERDICTS = "SELECT verdict, accepted_by IS NOT NULL FROM falcon.quality_verdicts ORDER BY event_id"
AUDITED = "SELECT count(*) FROM falcon.audit WHERE operation = 'quality accept'"
RERUN = ("instance", "rerun", "keep", "--start", "2013-01-01T01:00Z", "--force")
AT = "2013-01-01T01:00Z"


def held(installation: Installation) -> list[int]:
    """What lies aside, as a stranger reads it."""
    found = installation.settings.home.glob("data/primary/.falcon/staging/held/*/written/*.parquet")
    return sorted(n for one in found for n in pq.read_table(one)["n"].to_pylist())


@pytest.fixture
def keeping(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    retry = {"policy": "periodic", "delay": "minutes(1)", "attempts": 3}
    process = process_yaml("keep", "rows", "kept", HOUR, schedule=True, retry=retry)
    write_entities({"all.yaml": cluster_yaml() + FEEDS + process, "a.sql": "SELECT n FROM rows"})
    with open_at("2013-01-01T03:00Z") as installation:
        yield anew(installation)


def test_what_fails_is_held_and_published_once_it_is_accepted(keeping: Installation) -> None:
    land(keeping, -1)
    (trouble,) = run(keeping).trouble
    assert (trouble.state.value, trouble.attempt, trouble.reason_data["kind"]) == ("FAILED", 1, "held_back")
    place = keeping.settings.home / "data/primary/.falcon/staging/held"
    assert trouble.reason.startswith(
        "kept 2013-01-01T01:00Z is held, not published: enough: 1 rows; at least 2 are expected; in_range_n: 1 of 1 "
        f"rows: n is below 0. It lies at file://{place}/kept-20130101-01."
    )
    assert "falcon quality accept kept 2013-01-01T01:00Z --cluster primary --reason REASON" in trouble.reason
    assert trouble.reason.endswith("falcon instance rerun keep --start 2013-01-01T01:00Z --cluster primary")
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == (None, [-1], [(1, False, None)])
    again = run(keeping)
    assert (again.trouble, again.outlook.decisions["keep", "primary"].retry_at) == ((), None), (
        "retries are for what may come out otherwise"
    )
    assert rows(keeping, VERDICTS) == []
    assert "is held, not published (enough, in_range_n): file://" in said("quality", "show", "kept", AT)
    said("quality", "accept", "kept", AT, "--reason", "a holiday")
    assert rows(keeping, HELD) == [(1, True, "a holiday")]
    assert rows(keeping, AUDITED) == [(1,)]
    said("ledger", "rebuild")
    assert rows(keeping, HELD) == [(1, True, "a holiday")]
    said(*RERUN)
    assert run(keeping).succeeded == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([-1], [], [])
    assert rows(keeping, VERDICTS) == [("INVALID", True)]
    assert checking(keeping).run(keeping.ledger) == (0, []), "what was checked before is not checked after"


def test_what_is_published_stays_until_good_data_replaces_it(keeping: Installation) -> None:
    land(keeping, 1, 2)
    assert run(keeping).succeeded == 1
    assert (published(keeping), rows(keeping, VERDICTS)) == ([1, 2], [("VALID", False)])
    assert checking(keeping).run(keeping.ledger) == (0, [])
    land(keeping, 1, -2)
    said(*RERUN)
    assert len(run(keeping).trouble) == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([1, 2], [-2, 1], [(2, False, None)])
    said("quality", "accept", "kept", AT, "--reason", "only negative")
    assert "VALID" in said("quality", "check", "kept", AT, "--rerun")
    assert rows(keeping, HELD) == [(2, True, "only negative")], "it is about what is published"
    land(keeping, -2)
    said(*RERUN)
    assert len(run(keeping).trouble) == 1, "it fails another check than what was accepted"
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([1, 2], [-2], [(1, False, None)])
    land(keeping, 3, 4, 5)
    said(*RERUN)
    assert run(keeping).succeeded == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([3, 4, 5], [], [])
