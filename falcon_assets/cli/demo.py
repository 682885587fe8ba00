"""``falcon demo``: real flights through the whole pipeline, headless."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.cli.demo_live import land_live
from falcon_assets.cli.quiet import errors_to
from falcon_assets.cli.run_display import progress_on, shown_on, tell
from falcon_assets.demo.landing import first_landing, land
from falcon_assets.demo.report import feed_reports
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.orchestration.foreground import Foreground, Outcome
from falcon_assets.orchestration.instance import open_instance
from falcon_assets.orchestration.open_ledger import Ledger, open_ledger
from falcon_assets.orchestration.postgres import require_space
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings, load_settings
from falcon_assets.spark.java import require_java
from falcon_assets.spark.own_server import own_server
from falcon_assets.spark.session import stop_sessions


@click.command()
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365), help="How many days of 2013.")
@click.option("--live", is_flag=True, help="Only land, hour by hour as FALCON_CLOCK reaches them, at most DAYS back.")
def demo(days: int, live: bool) -> None:
    """Land real flights and weather, run the demo processes over them, and show what was produced.

    The clock stands still at the end of the last day, whatever FALCON_CLOCK says. The Spark Connect server that the
    demo computes on is started, and stopped at the end, unless it runs.
    """
    settings = load_settings()
    if live:
        land_live(settings, timedelta(days=days))
        return
    require_java(settings.environ)
    require_space(settings.home)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    first = first_landing(store)
    last = first + timedelta(days=days, minutes=-1)
    # All data of these days is there, and nothing is due after them: on the real clock, which is years ahead,
    # instances would time out that nobody wants to see.
    shown = Demo(replace(settings, clock=Clock(origin=last)), store, Console())
    landed = shown.land(first, last)
    outcome = shown.compute(last)
    if outcome.trouble:
        sys.exit(1)
    if landed or outcome.succeeded:
        done = f"{landed} instances landed, {outcome.succeeded} were computed or copied"
        shown.console.print(f"{done}. Look at them: make up")
    else:
        shown.console.print("Everything was there already: nothing landed, nothing was computed or copied again.")


@dataclass(frozen=True)
class Demo:
    """What the steps of the demo share."""

    settings: Settings
    store: EntityStore
    console: Console

    def land(self, first: datetime, last: datetime) -> int:
        """Lands files; the number of instances that were not there."""
        count = 0
        with progress_on(self.console) as progress:
            task = progress.add_task("landing flights and weather", total=None)
            for landed in land(self.store, self.settings, first, last):
                count += landed is not None
                progress.advance(task)
            progress.update(task, total=progress.tasks[task].completed)
        return count

    def compute(self, last: datetime) -> Outcome:
        """Runs what is ready up to ``last``, as ``falcon run`` does, and shows what there is then."""
        settings = self.settings
        with open_instance(settings) as instance:
            ledger = open_ledger(settings, instance)
            outcome = self._run(ledger, settings.home / "demo.log", last)
            tell(self.console, outcome)
            self.console.print(self._table(ledger))
        return outcome

    def _run(self, ledger: Ledger, log: Path, last: datetime) -> Outcome:
        settings = self.settings
        with (
            errors_to(log),
            own_server(settings.home, settings.environ) as serve,
            shown_on(self.console) as display,
        ):
            definitions = build_definitions(self.store, settings, display.copying)
            foreground = Foreground(self.store, settings, definitions, ledger, display, serve)
            try:
                return foreground.run(list(self.store.coordinated), last)
            except KeyboardInterrupt:
                self.console.print("Interrupted: what was finished is recorded, the rest runs the next time.")
                sys.exit(130)
            finally:
                stop_sessions()

    def _table(self, ledger: Ledger) -> Table:
        table = Table("feed", "cluster", title="Produced", title_justify="left")
        for name in ("instances", "records", "bytes"):
            table.add_column(name, justify="right")
        with ledger.engine.connect() as connection:
            reports = feed_reports(self.store, connection)
        for row in reports:
            records = "" if row.records is None else f"{row.records:,}"
            table.add_row(row.feed, row.cluster, f"{row.instances:,}", records, decimal(row.bytes))
        return table
