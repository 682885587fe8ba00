"""``falcon run``: what the sensors do, in the foreground, until nothing can run any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.cli.quiet import errors_to
from falcon_assets.errors import UnknownEntityError
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Process
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.orchestration.coordinator import PlannedRun, pipelines
from falcon_assets.orchestration.foreground import Display, Foreground, Outcome
from falcon_assets.orchestration.instance import open_instance
from falcon_assets.orchestration.open_ledger import open_ledger
from falcon_assets.orchestration.postgres import require_space
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import load_settings
from falcon_assets.spark.java import require_java
from falcon_assets.spark.session import stop_sessions

_SHOWN = 5


@click.command()
@click.option("--until", metavar="INSTANT", help="Leave out instances after this one (2013-01-08T00:00Z).")
@click.option("--pipeline", "pipeline", metavar="NAME", help="Only the processes of this pipeline.")
@click.option("--process", "process", metavar="NAME", help="Only this process.")
def run(until: str | None, pipeline: str | None, process: str | None) -> None:
    """Run everything whose time and inputs have come, in this process, until nothing is ready any more.

    Looks for data that landed, runs scheduled processes in the order of their inputs, waits for retries, and ends when
    what is left waits for data. The exit code is 1 where an instance failed or timed out for good.
    """
    settings = load_settings()
    require_java(settings.environ)
    require_space(settings.home)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    processes = _selected(store, pipeline, process)
    last = parse_instant(until) if until else None
    console = Console()
    with open_instance(settings) as instance, errors_to(settings.home / "run.log"), _shown(console) as display:
        foreground = Foreground(
            store, settings, build_definitions(store, settings), open_ledger(settings, instance), display
        )
        try:
            outcome = foreground.run(processes, last)
        except KeyboardInterrupt:
            console.print("Interrupted: what was finished is recorded, the rest runs the next time.")
            sys.exit(130)
        finally:
            stop_sessions()
    _tell(console, outcome)
    if outcome.trouble:
        sys.exit(1)


def _selected(store: EntityStore, pipeline: str | None, process: str | None) -> list[Process]:
    if process is not None:
        found = [store.process(process)]
        if pipeline is not None and pipeline not in found[0].pipelines:
            raise UnknownEntityError(f"process {process!r} is not in the pipeline {pipeline!r}")
        return found
    if pipeline is None:
        return list(store.processes.values())
    selected = [one for one in store.processes.values() if pipeline in one.pipelines]
    if not selected:
        raise UnknownEntityError(f"no process is in a pipeline {pipeline!r}; there is: {', '.join(pipelines(store))}")
    return selected


@contextmanager
def _shown(console: Console) -> Iterator[Display]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as progress:

        def collected(count: int) -> None:
            if count:
                progress.console.print(f"{count} instances landed")

        def started(one: PlannedRun) -> None:
            times = " to ".join(map(format_instant, dict.fromkeys((one.launch.nominals[0], one.launch.nominals[-1]))))
            name = f"{one.member.process.name} on {one.member.cluster.name} {times}"
            tasks[one.run_key] = progress.add_task(name, total=len(one.launch.nominals))

        def moved(one: PlannedRun, count: int) -> None:
            progress.update(tasks[one.run_key], completed=count)

        def waits(at: datetime) -> None:
            progress.console.print(f"waiting for a retry at {at:%Y-%m-%dT%H:%M:%SZ}")

        yield Display(collected, started, moved, waits)


def _tell(console: Console, outcome: Outcome) -> None:
    """Says what went wrong, what waits, and how many succeeded."""
    for one in outcome.trouble:
        what = "timed out" if one.state is InstanceState.TIMED_OUT else "failed"
        console.print(f"{one.process} on {one.cluster} {format_instant(one.nominal)} {what}: {one.reason}")
    for (process, cluster), decision in outcome.outlook.decisions.items():
        waiting = list(decision.waiting.items())
        for nominal, reason in waiting[:_SHOWN]:
            console.print(f"{process} on {cluster} {format_instant(nominal)}: {reason}")
        if len(waiting) > _SHOWN:
            console.print(f"... and {len(waiting) - _SHOWN} more instances of {process} on {cluster} wait")
    console.print(f"{outcome.succeeded} instances succeeded, {len(outcome.trouble)} did not")
