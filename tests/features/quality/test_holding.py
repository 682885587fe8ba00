"""Outputs that fail their checks are kept aside, unpublished, until they are accepted or computed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from falcon_assets.errors import StorageError
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.quality.operations import AcceptInstance
from falcon_assets.instances.runs.run_locks import all_taken, instance_lock
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml, process_yaml
from tests.features.landing.snapshot_tables import run, said
from tests.features.quality.shop import anew, at, checking
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
SQL = "SELECT n FROM rows"
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


READ = "SELECT version FROM falcon.feed_instances WHERE feed = 'rows'"
HELD = "SELECT records, accepted_by IS NOT NULL, accepted_reason FROM falcon.quality_held"
VERDICTS = "SELECT verdict, accepted_by IS NOT NULL FROM falcon.quality_verdicts ORDER BY event_id"
AUDITED = "SELECT reason, result FROM falcon.audit WHERE operation = 'quality accept' ORDER BY id"
RERUN = ("instance", "rerun", "keep", "--start", "2013-01-01T01:00Z", "--force")
AT = "2013-01-01T01:00Z"


def held(installation: Installation) -> list[int]:
    """What lies aside, as a stranger reads it."""
    found = installation.settings.home.glob("data/primary/.falcon/staging/held/*/written/*.parquet")
    return sorted(n for one in found for n in pq.read_table(one)["n"].to_pylist())


def entities() -> str:
    retry = {"policy": "periodic", "delay": "minutes(1)", "attempts": 3}
    return cluster_yaml() + FEEDS + process_yaml("keep", "rows", "kept", HOUR, schedule=True, retry=retry)


@pytest.fixture
def keeping(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": entities(), "a.sql": SQL})
    with open_at("2013-01-01T03:00Z") as installation:
        yield anew(installation)


def test_what_fails_is_held_and_published_as_it_is_when_it_is_accepted(keeping: Installation) -> None:
    land(keeping, -1)
    (trouble,) = run(keeping).trouble
    assert (trouble.state.value, trouble.attempt, trouble.reason_data["kind"]) == ("FAILED", 1, "held_back")
    place = keeping.settings.home / "data/primary/.falcon/staging/held"
    held_is, accept, rerun = trouble.reason.splitlines()
    assert held_is.startswith(
        "kept 2013-01-01T01:00Z is held, not published: enough: 1 rows; at least 2 are expected; in_range_n: 1 of 1 "
        f"rows: n is below 0. It lies at file://{place}/kept-20130101-01."
    )
    assert accept == (
        "To publish it as it is: falcon quality accept kept 2013-01-01T01:00Z --cluster primary --reason REASON"
    )
    assert rerun == (
        "It is kept for 7 days, or until it is computed again: falcon instance rerun keep --start 2013-01-01T01:00Z "
        "--cluster primary"
    )
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == (None, [-1], [(1, False, None)])
    again = run(keeping)
    assert (again.trouble, again.outlook.decisions["keep", "primary"].retry_at) == ((), None), (
        "retries are for what may come out otherwise"
    )
    assert rows(keeping, VERDICTS) == []
    assert "is held, not published (enough, in_range_n): file://" in said("quality", "show", "kept", AT)
    said("ledger", "rebuild")
    assert rows(keeping, HELD) == [(1, False, None)]
    land(keeping, 1, 2, 3)  # nobody computes again
    assert "accepted by" in said("quality", "accept", "kept", AT, "--reason", "a holiday", "--dry-run")
    assert (published(keeping), rows(keeping, HELD), rows(keeping, AUDITED)) == (None, [(1, False, None)], [])
    assert "accepted by" in said("quality", "accept", "kept", AT, "--reason", "a holiday")
    for _ in range(2):
        assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([-1], [], [])
        assert rows(keeping, VERDICTS) == [("INVALID", True)]
        assert rows(keeping, "SELECT state, attempt FROM falcon.process_instances") == [("SUCCEEDED", 1)]
        said("ledger", "rebuild")
    assert rows(keeping, AUDITED) == [("a holiday", "done")]
    assert checking(keeping).run(keeping.ledger) == (0, []), "what was checked before is not checked after"


def test_what_was_accepted_has_the_history_of_what_was_computed(keeping: Installation) -> None:
    land(keeping, -1)
    assert len(run(keeping).trouble) == 1
    read = rows(keeping, READ)
    land(keeping, 1, 2, 3)
    collect_instances(keeping, "rows", at(1), at(1))
    assert rows(keeping, READ) != read
    said("quality", "accept", "kept", AT, "--reason", "a holiday")
    version = "SELECT version, process, records, files, made_by IS NOT NULL, definition FROM falcon.data_versions"
    (made,) = rows(keeping, f"{version} WHERE feed = 'kept'")
    assert (made[1:], len(made[0])) == (("keep", 1, 1, True, 1), 32)
    runs = "SELECT v.run_id = p.run_id, v.attempt FROM falcon.data_versions v, falcon.process_instances p"
    assert rows(keeping, f"{runs} WHERE v.feed = 'kept'") == [(True, 1)], "by the run that computed it"
    edges = "SELECT i.version FROM falcon.version_edges JOIN falcon.data_versions i ON i.id = input"
    assert rows(keeping, edges) == read, "it was made from what its process had read"
    assert rows(keeping, "SELECT version FROM falcon.consumed") == read
    columns = "SELECT columns FROM falcon.version_columns JOIN falcon.data_versions USING (plan)"
    ((found,),) = rows(keeping, columns)
    assert [one["name"] for one in found] == ["n"]
    (evaluation,) = rows(keeping, "SELECT count(*) FROM asset_check_executions WHERE execution_status = 'SUCCEEDED'")
    assert evaluation == (2,), "Dagster shows the checks as overruled"


def test_what_is_published_stays_until_good_data_replaces_it(keeping: Installation) -> None:
    land(keeping, 1, 2)
    assert run(keeping).succeeded == 1
    assert (published(keeping), rows(keeping, VERDICTS)) == ([1, 2], [("VALID", False)])
    assert checking(keeping).run(keeping.ledger) == (0, [])
    land(keeping, 1, -2)
    said(*RERUN)
    assert len(run(keeping).trouble) == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([1, 2], [-2, 1], [(2, False, None)])
    assert "VALID" in said("quality", "check", "kept", AT, "--rerun")
    assert rows(keeping, HELD) == [(2, False, None)], "that is about what is published"
    land(keeping, -2)
    said(*RERUN)
    assert len(run(keeping).trouble) == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([1, 2], [-2], [(1, False, None)])
    land(keeping, 3, 4, 5)
    said(*RERUN)
    assert run(keeping).succeeded == 1
    assert (published(keeping), held(keeping), rows(keeping, HELD)) == ([3, 4, 5], [], [])
    assert "there is nothing to overrule" not in said("quality", "accept", "kept", AT, "--reason", "why")


def refused(installation: Installation) -> str:
    with pytest.raises(StorageError) as error:
        AcceptInstance(feed="kept", instance=at(1), reason="why").run(installation)
    return str(error.value)


def test_what_is_written_changed_or_removed_is_not_published(keeping: Installation) -> None:
    land(keeping, -1)
    run(keeping)
    with all_taken(keeping.ledger.engine, [instance_lock("keep", "primary", at(1))]):
        busy = refused(keeping)
    assert busy == "keep 2013-01-01T01:00Z is being written by a run: let it end, or kill it, and accept it then"
    assert rows(keeping, HELD) == [(1, False, None)]
    (file,) = keeping.settings.home.glob("data/primary/.falcon/staging/held/*/written/*.parquet")
    content = file.read_bytes()
    file.write_bytes(content + b"?")
    assert "somebody changed what is held at file://" in refused(keeping)
    assert (published(keeping), rows(keeping, HELD)) == (None, [(1, True, "why")])
    assert "accepted by" in said("quality", "show", "kept", AT)
    file.write_bytes(content)
    away = file.parents[1].with_name("away")
    file.parents[1].rename(away)
    gone = refused(keeping)
    assert "what was held is not at file://" in gone and gone.endswith("the instance has to be computed again")
    away.rename(file.parents[1])
    said("quality", "accept", "kept", AT, "--reason", "why")
    assert (published(keeping), rows(keeping, HELD)) == ([-1], [])
    results = ["failed", "failed", "failed", "done"]
    assert rows(keeping, AUDITED) == [("why", result) for result in results]


def test_a_feed_that_holds_nothing_any_more_is_published(
    keeping: Installation, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    land(keeping, -1)
    run(keeping)
    write_entities({"all.yaml": entities().replace("on_error: hold", "on_error: publish"), "a.sql": SQL})
    keeping.forget_entities()
    assert "held, not published" in said("quality", "show", "kept", AT), "it still is"
    said(*RERUN)
    assert run(keeping).succeeded == 1
    assert (published(keeping), rows(keeping, HELD)) == ([-1], [])
    assert "held" not in said("quality", "show", "kept", AT)
