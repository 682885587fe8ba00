"""``falcon instance list|status|running|summary|search``: nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from falcon_assets.instances.operations import questions
from falcon_assets.instances.views.grid import SHAPES, GridRow, InstanceGrid
from falcon_assets.instances.views.listing import InstanceCounts
from falcon_assets.instances.views.query import FeedInstanceInfo, InstanceInfo, InstancePage
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.listing import one_line, say_more
from falcon_assets.surface.cli.states import colored


def _show_counts(found: Page[InstanceCounts]) -> None:
    table = _table("kind", "cluster", "state", "instances")
    for one in found.items:
        for state, number in one.states.items():
            table.add_row(shown(one.entity), one.kind, one.cluster, colored(state.value), f"{number:,}")
    print_table(table, nothing="no instance fits")


def _show(page: InstancePage) -> None:
    of_feeds = [one for one in page.items if isinstance(one, FeedInstanceInfo)]
    details = sorted({name for one in of_feeds for name in one.details})
    fields = ("files", "bytes", "landed", "expires", "replicated") if of_feeds else ("attempt", "started", "ended")
    table = _table("cluster", "instance", "state", *fields, *details)
    table.add_column("reason", overflow="fold")
    for one in page.items:
        reason = shown(one_line(one.reason["text"])) if one.reason else ""
        state, instant = colored(one.state.value), format_instant(one.instance)
        table.add_row(shown(one.entity), one.cluster, instant, state, *_told(one, details), reason)
    print_table(table, nothing="no instance fits")
    if page.next is not None:
        say_more(len(page.items), page.total, "instance")


def _show_grid(found: InstanceGrid) -> None:
    first, last = format_instant(found.at(0)), format_instant(found.at(found.steps - 1))
    table = Table("entity", "cluster", f"{first} to {last}")
    for row in found.items:
        table.add_row(shown(row.entity), row.cluster, _cells(row, found.steps))
    print_table(table, nothing="no instance fits")
    if found.next is not None:
        say_more(len(found.items), found.total, "entity", "entities")


def _cells(row: GridRow, steps: int) -> str:
    cells, at = "", 0
    for run in row.runs:
        cells += " " * (run.step - at) + colored(run.state.value, SHAPES[run.state] * run.steps)
        at = run.step + run.steps
    return cells + " " * (steps - at)


def _told(one: InstanceInfo, details: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(one, FeedInstanceInfo):
        return str(one.attempt), moment(one.started), moment(one.ended)
    row = one.stored
    sizes = ("" if size is None else f"{size:,}" for size in ((row.files, row.bytes) if row else (None, None)))
    landed = moment(row.landed_at) if row and row.version else ""
    replicated = ", ".join(f"{copy.target}: {copy.state.value}" for copy in one.replications)
    more = (shown(one.details.get(name, {}).get("text", "")) for name in details)
    return *sizes, landed, moment(one.expires), replicated, *more


def _table(*columns: str) -> Table:
    table = Table()
    table.add_column("entity", overflow="fold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


list_ = command(questions.ListInstances, _show)
status = command(questions.InstanceStatus, _show)
running = command(questions.ListRunning, _show)
search = command(questions.SearchInstances, _show)
summary = command(questions.SummarizeInstances, _show_counts, "Print JSON instead of a table.")
grid = command(questions.ShowGrid, _show_grid)
