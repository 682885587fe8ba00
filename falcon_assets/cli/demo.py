"""``falcon demo``: real flights through the whole pipeline, headless."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import click
import dagster as dg
from click.core import ParameterSource
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.cli.demo_live import land_live
from falcon_assets.cli.quiet import errors_to
from falcon_assets.demo.landing import land
from falcon_assets.demo.pending import pending_work
from falcon_assets.demo.pipeline import run
from falcon_assets.demo.report import feed_reports, is_recorded, report_landing
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import parse_instant
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.orchestration.instance import open_instance
from falcon_assets.orchestration.postgres import require_space
from falcon_assets.settings import Settings, load_settings
from falcon_assets.spark.java import require_java
from falcon_assets.storage.cluster_store import ClusterStore


@click.command()
@click.option("--start", default="2013-01-01T00:00Z", show_default=True, help="First instance.")
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365), help="How many days of flights.")
@click.option("--live", is_flag=True, help="Only land, hour by hour as FALCON_CLOCK reaches them, at most DAYS back.")
@click.pass_context
def demo(ctx: click.Context, start: str, days: int, live: bool) -> None:
    """Land real flights and weather, run the demo processes over them, and show what was produced."""
    settings = load_settings()
    if live:
        if ctx.get_parameter_source("start") is not ParameterSource.DEFAULT:
            raise click.UsageError("--start does not go with --live: FALCON_CLOCK says where that starts")
        land_live(settings, timedelta(days=days))
        return
    require_java(settings.environ)
    require_space(settings.home)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    first = parse_instant(start)
    console = Console()
    with open_instance(settings) as instance:
        _run(Demo(settings, store, instance, console), first, first + timedelta(days=days))


class Demo:
    """What the steps of the demo share."""

    def __init__(self, settings: Settings, store: EntityStore, instance: dg.DagsterInstance, console: Console) -> None:
        self.settings, self.store, self.instance, self.console = settings, store, instance, console
        self._files: dict[str, ClusterStore] = {}

    def files(self, cluster: Cluster) -> ClusterStore:
        """The file system of the cluster."""
        if cluster.name not in self._files:
            self._files[cluster.name] = ClusterStore(cluster, self.settings.home, self.settings.environ)
        return self._files[cluster.name]

    def progress(self) -> Progress:
        """A progress bar on the console."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        return Progress(*columns, console=self.console)


def _run(demo: Demo, first: datetime, end: datetime) -> None:
    last = end - timedelta(minutes=1)
    landed = _land(demo, first, last)
    log = demo.settings.home / "demo.log"
    with errors_to(log):
        computed = _compute(demo, first, last)
    demo.console.print(_table(demo))
    if landed or computed:
        demo.console.print(f"{landed} instances landed, {computed} were computed. Look at them: make up")
    else:
        demo.console.print("Everything was there already: nothing landed, nothing was computed again.")


def _land(demo: Demo, first: datetime, last: datetime) -> int:
    count = 0
    with demo.progress() as progress:
        task = progress.add_task("landing flights and weather", total=None)
        for landed in land(demo.store, demo.files, first, last, partial(is_recorded, demo.instance)):
            if landed is not None:
                report_landing(demo.instance, landed, demo.files(landed.cluster))
                count += 1
            progress.advance(task)
        progress.update(task, total=progress.tasks[task].completed)
    return count


def _compute(demo: Demo, first: datetime, last: datetime) -> int:
    definitions = build_definitions(demo.store, demo.settings)
    count = 0
    with demo.progress() as progress:
        for work in pending_work(demo.store, demo.files, demo.instance, first, last):
            task = progress.add_task(f"{work.process.name} on {work.cluster.name}", total=work.count)
            run(work, definitions, demo.instance, partial(_show, progress, task))
            if work.waiting:
                progress.console.print(f"{work.waiting} instances of {work.process.name} wait for their inputs")
            count += work.count
    return count


def _show(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _table(demo: Demo) -> Table:
    table = Table("feed", "cluster", title="Produced", title_justify="left")
    for name in ("instances", "records", "bytes"):
        table.add_column(name, justify="right")
    for row in feed_reports(demo.store, demo.instance):
        table.add_row(row.feed, row.cluster, f"{row.instances:,}", f"{row.records:,}", decimal(row.bytes))
    return table
