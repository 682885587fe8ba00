"""``falcon run``: what the sensors do, in the foreground, until nothing can run any more."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.cli.ending import ends_in_time
from falcon_assets.cli.quiet import errors_to
from falcon_assets.cli.run_display import shown_on, tell
from falcon_assets.engines.computing.programs import kill_programs
from falcon_assets.errors import SettingsError, UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.process import Process
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.orchestration.coordination.coordinator import pipelines
from falcon_assets.orchestration.coordination.foreground import Foreground, Outcome
from falcon_assets.orchestration.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.orchestration.platform.dagster_instance import open_instance
from falcon_assets.orchestration.platform.open_ledger import open_ledger, set_clock
from falcon_assets.orchestration.platform.postgres import database_url, leave_embedded, require_space, unreachable
from falcon_assets.settings import Settings, load_settings
from falcon_assets.spark.java import require_java
from falcon_assets.spark.reach import require_reachable
from falcon_assets.spark.session import interrupt_sessions, stop_sessions

_INTERRUPTED = "Interrupted: what was finished is recorded, the rest runs the next time."


@click.command()
@click.option("--until", metavar="INSTANT", help="Leave out instances after this one (2013-01-08T00:00Z).")
@click.option(
    "--pipeline",
    "pipeline",
    metavar="NAME",
    help="Only this pipeline; the replications to CLUSTER are CLUSTER.replication.",
)
@click.option("--process", "process", metavar="NAME", help="Only this process.")
def run(until: str | None, pipeline: str | None, process: str | None) -> None:
    """Run everything whose time and inputs have come, in this process, until nothing is ready any more.

    Looks for data that landed, runs scheduled processes and replications in the order of their inputs, waits for
    retries, and ends when what is left waits for data. What cannot be reached or looked at is left out and named. The
    exit code is 1 where something was left out, or an instance failed or timed out for good.
    """
    with ends_in_time(_INTERRUPTED, _leave):
        try:
            outcome = _run(load_settings(), until, pipeline, process)
        except KeyboardInterrupt:
            click.echo(_INTERRUPTED)
            sys.exit(130)
    for what, why in outcome.left_out.items():
        click.echo(f"Error: {what} was left out: {why}", err=True)
    if not outcome.is_whole:
        sys.exit(1)


def _run(settings: Settings, until: str | None, pipeline: str | None, process: str | None) -> Outcome:
    require_java(settings.environ)
    require_space(settings.home)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    processes = _selected(store, pipeline, process)
    last = parse_instant(until) if until else None
    set_clock(settings, anew=False)
    console = Console()
    try:
        with open_instance(settings) as instance, errors_to(settings.home / "run.log"), shown_on(console) as display:
            definitions, ledger = build_definitions(store, settings, display.copying), open_ledger(settings, instance)
            foreground = Foreground(store, settings, definitions, ledger, display, _require_reachable)
            try:
                outcome = foreground.run(processes, last)
            finally:
                stop_sessions()
    except DATABASE_ERRORS as error:
        gone = unreachable(database_url(settings), error)
        raise SettingsError(f"{gone}; what was finished is recorded, the rest runs the next time") from error
    tell(console, outcome)
    console.print(f"{outcome.succeeded} instances succeeded, {len(outcome.trouble)} did not")
    return outcome


def _leave() -> None:
    """What must not go on without this process."""
    kill_programs()
    interrupt_sessions()
    leave_embedded()


def _selected(store: EntityStore, pipeline: str | None, process: str | None) -> list[Process]:
    if process is not None:
        found = [store.process(process)]
        if pipeline is not None and pipeline not in found[0].pipelines:
            raise UnknownEntityError(f"process {process!r} is not in the pipeline {pipeline!r}")
        return found
    if pipeline is None:
        return list(store.coordinated)
    selected = [one for one in store.coordinated if pipeline in one.pipelines]
    if not selected:
        raise UnknownEntityError(f"no process is in a pipeline {pipeline!r}; there is: {', '.join(pipelines(store))}")
    return selected


def _require_reachable(cluster: Cluster) -> None:
    """Better one error before its first run than one for each of its instances."""
    require_reachable(cluster.name, cluster.interfaces.execute.endpoint)
