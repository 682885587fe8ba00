"""``make demo``: real flights through the whole pipeline, headless."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from examples.flights.landing import Landed, first_landing, land
from examples.flights.late_flights import CORRECTED
from examples.flights.live import again_in_words
from examples.flights.report import feed_reports
from examples.flights.up import alone
from falcon_assets.compute.spark.connect_server import own_server
from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.errors import count_of
from falcon_assets.instances.coordination.coordinator import Outlook
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.quiet import output_to
from falcon_assets.surface.cli.run_display import progress_on, show_outcome, shown_on
from falcon_assets.surface.foreground.run import run_workloads

_BEFORE_LATE_FLIGHTS = timedelta(minutes=119)
"""At 22:00 of the last day the flights of 20:00 are computed, without those that come late."""
_AFTER_LATE_FLIGHTS = timedelta(minutes=89)
"""At 22:30 they are there, and the flights of 16:00 are corrected, after their cut-off."""
_LANDS_BACK = CORRECTED + timedelta(hours=1)


@click.command()
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365), help="How many days of 2013.")
def demo(days: int) -> None:
    """Land real flights and weather, run the demo processes over them, and show what was produced.

    The clock stands still at the end of the last day, whatever FALCON_CLOCK says. The Spark Connect server that the
    demo computes on is started, and stopped at the end, unless it runs.
    """
    settings = load_settings()
    require_machine(settings.environ, settings.home)
    with open_installation(settings) as installation:
        first = first_landing(installation.entities)
        shown = Demo(installation, Console())
        with alone(settings.home):
            done = shown.run(first, first + timedelta(days=days, minutes=-1))
    for what, why in done.left_out.items():
        click.echo(f"Error: {what} was left out: {why}", err=True)
    if done.trouble or done.left_out:
        sys.exit(1)
    if done.landed or done.succeeded:
        computed = count_of(done.succeeded, "was", "were")
        said = f"{count_of(done.landed, 'instance')} landed, {computed} computed or copied"
        shown.console.print(f"{said}. Look at them: make up")
    else:
        shown.console.print("Everything was there already: nothing landed, nothing was computed or copied again.")


@dataclass
class Done:
    """What the demo did: how many instances landed, how those of processes and replications ended, what it left out."""

    landed: int = 0
    succeeded: int = 0
    trouble: int = 0
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demo:
    """What the steps of the demo share."""

    installation: Installation
    console: Console

    def run(self, first: datetime, last: datetime) -> Done:
        """Lands and computes what is not there, and shows what there is then.

        All data up to ``last`` is there, and nothing is due after it: on the real clock, which is years ahead,
        instances would time out that nobody wants to see. The clock stands still at ``last``, and a while before: some
        flights come late on the last evening, after their hours were computed, as they do on every day.
        """
        done = Done()
        with self._at(last - _BEFORE_LATE_FLIGHTS) as installation:
            installation.set_clock(anew=True)
        settings = self.installation.settings
        log = settings.home / "demo.log"
        with output_to(log) as terminal, own_server(settings.home, settings.environ) as serve:
            replace(self, console=Console(file=terminal))._run(first, last, serve, done)
        return done

    def _run(self, first: datetime, last: datetime, serve: Callable[[Cluster], None], done: Done) -> None:
        try:
            for now in (last - _BEFORE_LATE_FLIGHTS, last - _AFTER_LATE_FLIGHTS, last):
                landed = self._land(first, last, now)
                done.landed += landed
                first = max(first, now - _LANDS_BACK)
                if landed or now == last:
                    self._compute(now, serve, done, is_last=now == last)
        except KeyboardInterrupt:
            self.console.print("Interrupted: what was finished is recorded, the rest runs the next time.")
            sys.exit(130)
        finally:
            stop_sessions()
        self.console.print(self._table())

    def _land(self, first: datetime, last: datetime, now: datetime) -> int:
        """Lands files as they are at ``now``; the number of instances that were not there, or not like this."""
        found = list[Landed]()
        with progress_on(self.console) as progress:
            task = progress.add_task("landing flights and weather", total=None)
            for landed in land(self.installation.entities, self.installation.settings, first, last, now):
                found += [landed] if landed else []
                progress.advance(task)
            progress.update(task, total=progress.tasks[task].completed)
        for one in found:
            if one.again:
                self.console.print(f"{format_instant(now)}: {again_in_words(one)}")
        return len(found)

    def _compute(self, now: datetime, serve: Callable[[Cluster], None], done: Done, *, is_last: bool) -> None:
        """Runs what is ready at that time, as ``falcon run`` does; says at last what waits."""
        with self._at(now) as installation:
            ledger = installation.ledger
            with shown_on(self.console) as display:
                outcome = run_workloads(installation, ledger, display, serve, installation.entities.workloads, now)
        done.succeeded += outcome.succeeded
        done.trouble += len(outcome.trouble)
        done.left_out.update(outcome.left_out)
        show_outcome(self.console, outcome if is_last else replace(outcome, outlook=Outlook((), {}, {})))

    def _at(self, now: datetime) -> AbstractContextManager[Installation]:
        return open_installation(replace(self.installation.settings, clock=Clock(origin=now)))

    def _table(self) -> Table:
        table = Table("feed", "cluster", title="Produced", title_justify="left")
        for name in ("instances", "records", "bytes"):
            table.add_column(name, justify="right")
        with self.installation.database.connect() as connection:
            reports = feed_reports(self.installation.entities, connection)
        for row in reports:
            records = "" if row.records is None else f"{row.records:,}"
            table.add_row(row.feed, row.cluster, f"{row.instances:,}", records, decimal(row.bytes))
        return table
