"""Checks of runs: whether they are queued for long, or hang."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from falcon_assets.doctor.automation import dagster_or_diagnosis, is_alive
from falcon_assets.doctor.dagster_facts import MOST_RUNS, DagsterFacts, RunFacts
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, lasting, ok, problem, warning
from falcon_assets.errors import count_of

LONG_QUEUED = timedelta(minutes=10)
LONG_SILENT = timedelta(hours=1)
LONG_STARTING = timedelta(minutes=5)
"""Dagster's monitoring gives a run two minutes to start, and one to stop."""
_TAKES_ITS_LOCK = timedelta(minutes=1)
"""A run that has just started has no lock yet; coordinators end one without within half a minute."""
_LAUNCHER = "QUEUED_RUN_COORDINATOR"


def check_queue(context: CheckContext) -> Iterator[Diagnosis]:
    facts = dagster_or_diagnosis(context)
    yield facts if isinstance(facts, Diagnosis) else judge_queue(facts, context.now)


def check_runs(context: CheckContext) -> Iterator[Diagnosis]:
    facts = dagster_or_diagnosis(context)
    if isinstance(facts, Diagnosis):
        yield facts
        return
    hanging = [diagnosis for one in facts.runs for diagnosis in judge_run(one, context.now)]
    yield from hanging
    if not hanging:
        looked = f" (the first {MOST_RUNS} of them)" if facts.at_work > MOST_RUNS else ""
        yield ok(f"{count_of(facts.at_work, 'run is', 'runs are')} at work, and none hangs{looked}")


def judge_queue(facts: DagsterFacts, now: datetime) -> Diagnosis:
    of_all = "any number" if facts.places is None else str(facts.places)
    taken = f"{facts.at_work} of {of_all} runs are at work"
    oldest = facts.oldest_queued
    if oldest is None or now - oldest.created < LONG_QUEUED:
        return ok(f"{count_of(facts.queued, 'run is', 'runs are')} queued, {taken}")
    waiting = f"{count_of(facts.queued, 'run is', 'runs are')} queued, the first for {lasting(now - oldest.created)}"
    if not any(is_alive(one, now) for one in facts.daemons if one.name == _LAUNCHER):
        return problem(
            f"{waiting}, because the part of Dagster's daemon that starts them is not alive",
            "start it: dagster-daemon run, or dagster dev",
        )
    if facts.places is not None and facts.at_work >= facts.places:
        return warning(
            f"{waiting}, because {taken}",
            "wait, or let more of them work at once: concurrency.runs.max_concurrent_runs in dagster.yaml",
        )
    return warning(
        f"{waiting}, though only {taken}",
        "look into the daemon's log: a limit by tag or pool holds them back, or their code location does not answer",
    )


def judge_run(run: RunFacts, now: datetime) -> Iterator[Diagnosis]:
    """Yields nothing if the run, which occupies a slot, proceeds."""
    name, silent = f"the run {run.run_id} of {run.job}", now - run.last_event
    if run.is_lost and silent > _TAKES_ITS_LOCK:
        yield problem(
            f"{name} has lost its worker, and nothing has happened to it for {lasting(silent)}",
            "its coordinator ends it; if Dagster's daemon does not run, start it, or falcon run",
        )
    elif run.stands_still is not None:
        yield problem(
            f"the worker of {name} has stood still for {lasting(run.stands_still)}, and keeps its instances",
            "its process is stopped, or its machine hangs: let it go on (kill -CONT), or end it; its instances go to "
            "the next run then",
        )
    elif run.status == "STARTED" and silent > LONG_SILENT:
        yield warning(
            f"{name} is at work, but nothing has happened to it for {lasting(silent)}",
            "look at its log in Dagster's UI; falcon instance kill ends its instances, terminating it in the UI ends "
            "the run",
        )
    elif run.status != "STARTED" and silent > LONG_STARTING:
        yield problem(
            f"{name} is {run.status} since {lasting(silent)}",
            "run_monitoring of Dagster's daemon ends it: see that the daemon runs, and dagster.yaml enables it",
        )
