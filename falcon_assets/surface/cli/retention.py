"""``falcon retention``: what goes from the clusters, what stays, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import click
from rich.console import Console
from rich.table import Table

from falcon_assets.features.retention.archives import ArchiveVerdict
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.retention.plan import FeedPlan
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.eviction import StoredInstance, Verdict, VersionVerdict
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.declared import command_of, perform
from falcon_assets.surface.cli.help import FullHelpGroup

_COLORS = {"keep": "green", "delete": "red", "archive": "yellow"}


@click.group(cls=FullHelpGroup)
def retention() -> None:
    """Show what retention would delete or archive, and what it keeps."""


@retention.add_command
@command_of(PlanRetention, "Print JSON instead of tables.")
def plan(asked: PlanRetention, as_json: bool) -> None:
    with open_installation() as installation:
        plans = asked.run(installation)
    perform(plans, partial(_show_plans, cluster=asked.cluster), as_json=as_json)
    for one in plans:
        if one.problem:
            click.echo(f"Error: {one.feed.name} on {one.cluster.name}: {one.problem}", err=True)
    if any(one.problem for one in plans):
        sys.exit(1)


def _show_plans(plans: Sequence[FeedPlan], cluster: str | None) -> None:
    if not plans:
        click.echo("no feed declares retention" + (f" on cluster {cluster!r}" if cluster else ""))
    for one in plans:
        if not one.problem:
            _show(one, console())


def _show(one: FeedPlan, console: Console) -> None:
    """A table of neighbours with the same fate, for people: a hundred thousand lines help nobody."""
    if not (one.verdicts or one.copies or one.versions or one.archives):
        console.print(_title(one))
        return
    table = Table(title=_title(one), title_justify="left")
    for column in ("action", "instances", "from", "to"):
        table.add_column(column, no_wrap=True)
    table.add_column("reason", overflow="fold")
    copies = [copy.verdict for copy in one.copies]
    versions = [_as_verdict(kept.kept.nominal, kept) for kept in one.versions]
    archives = [_as_verdict(there.archived.instance, there) for there in one.archives]
    for verdicts, what in ((one.verdicts, ""), (copies, " copy"), (versions, " version"), (archives, " archive")):
        for alike in _runs(verdicts):
            first, last = alike[0], alike[-1]
            action = f"[{_COLORS[first.action]}]{first.action}[/]{what}"
            times = [format_instant(end.instance.nominal) for end in (first, last)]
            table.add_row(action, str(len(alike)), *times, shown(first.reason))
    console.print(table)


def _as_verdict(nominal: datetime, one: VersionVerdict | ArchiveVerdict) -> Verdict:
    return Verdict(StoredInstance(nominal, ()), "delete" if one.goes else "keep", one.reason)


def _title(one: FeedPlan) -> str:
    going = sum(verdict.action != "keep" for verdict in one.verdicts)
    status = one.status.status.value
    said = "" if status == "RUNNING" else f"; the feed is {status}, so nothing goes by itself"
    what = (
        f"{going} of {len(one.verdicts)} would go"
        if one.verdicts or one.copies or one.versions or one.archives
        else "nothing is there"
    )
    return f"{one.feed.name} on {one.cluster.name}: {what}{said}"


def _runs(verdicts: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """Stretches of verdicts with the same action and reason."""
    alike: list[Verdict] = []
    for verdict in verdicts:
        if alike and (alike[0].action, alike[0].reason) != (verdict.action, verdict.reason):
            yield alike
            alike = []
        alike.append(verdict)
    if alike:
        yield alike
