"""``falcon retention``: what goes from the clusters, what stays, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from falcon_assets.features.retention.copies import CopyVerdict
from falcon_assets.features.retention.operations import retention_plan
from falcon_assets.features.retention.plan import FeedPlan
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.eviction import StoredInstance, Verdict, VersionVerdict
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.parameters import INSTANT

_COLORS = {"keep": "green", "delete": "red", "archive": "yellow"}


@click.group(cls=FullHelpGroup)
def retention() -> None:
    """See what goes from the clusters, what stays, and why."""


@retention.command()
@click.option("--feed", help="Only that feed, even if it declares no retention.")
@click.option("--cluster", help="Only on that cluster.")
@click.option("--as-of", type=INSTANT, help="As if it were that time (YYYY-MM-DDTHH:MMZ).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def plan(feed: str | None, cluster: str | None, as_of: datetime | None, as_json: bool) -> None:
    """List what would go, what stays and why. Changes nothing."""
    with open_installation() as installation:
        plans = retention_plan(installation, feed, cluster, as_of)
    if as_json:
        click.echo(json.dumps([_as_dict(one) for one in plans], indent=2))
    else:
        if not plans:
            click.echo("no feed declares retention" + (f" on cluster {cluster!r}" if cluster else ""))
        for one in plans:
            if not one.problem:
                _show(one, console())
    for one in plans:
        if one.problem:
            click.echo(f"Error: {one.feed.name} on {one.cluster.name}: {one.problem}", err=True)
    if any(one.problem for one in plans):
        sys.exit(1)


def _as_dict(one: FeedPlan) -> dict[str, Any]:
    return {
        "feed": one.feed.name,
        "cluster": one.cluster.name,
        "status": one.status.status.value,
        "instances": [_verdict(verdict, one) for verdict in one.verdicts],
        **({"unfinished_copies": list(map(_copy, one.copies))} if one.copies else {}),
        **({"versions": list(map(_version, one.versions))} if one.versions else {}),
        **({"problem": one.problem} if one.problem else {}),
    }


def _copy(one: CopyVerdict) -> dict[str, Any]:
    return {
        "instance": format_instant(one.verdict.instance.nominal),
        "action": one.verdict.action,
        "reason": one.verdict.reason,
        "path": one.copy.path,
        "sources": list(one.copy.sources),
    }


def _version(one: VersionVerdict) -> dict[str, Any]:
    return {
        "instance": format_instant(one.kept.nominal),
        "version": one.kept.version,
        "action": "delete" if one.goes else "keep",
        "reason": one.reason,
        **({"kept_by": one.kept_by.as_data()} if one.kept_by else {}),
        "replaced_at": format_instant(one.replaced_at) if one.replaced_at else None,
        "path": one.kept.path,
    }


def _verdict(one: Verdict, of: FeedPlan) -> dict[str, Any]:
    entry = of.feed.on(of.cluster.name)
    archive_cluster = entry.retention.archive_cluster if entry and entry.retention else None
    return {
        "instance": format_instant(one.instance.nominal),
        "action": one.action,
        "reason": one.reason,
        **({"kept_by": one.kept_by.as_data()} if one.kept_by else {}),
        "paths": [location.place for location in one.instance.locations],
        **({"archive_to": one.archive_place} if one.archive_place else {}),
        **({"archive_cluster": archive_cluster} if one.archive_to and archive_cluster else {}),
    }


def _show(one: FeedPlan, console: Console) -> None:
    """A table of neighbours with the same fate, for people: a hundred thousand lines help nobody."""
    if not (one.verdicts or one.copies or one.versions):
        console.print(_title(one))
        return
    table = Table(title=_title(one), title_justify="left")
    for column in ("action", "instances", "from", "to"):
        table.add_column(column, no_wrap=True)
    table.add_column("reason", overflow="fold")
    copies, versions = [copy.verdict for copy in one.copies], list(map(_as_verdict, one.versions))
    for verdicts, what in ((one.verdicts, ""), (copies, " copy"), (versions, " version")):
        for alike in _runs(verdicts):
            first, last = alike[0], alike[-1]
            action = f"[{_COLORS[first.action]}]{first.action}[/]{what}"
            times = [format_instant(end.instance.nominal) for end in (first, last)]
            table.add_row(action, str(len(alike)), *times, shown(first.reason))
    console.print(table)


def _as_verdict(one: VersionVerdict) -> Verdict:
    return Verdict(StoredInstance(one.kept.nominal, ()), "delete" if one.goes else "keep", one.reason)


def _title(one: FeedPlan) -> str:
    going = sum(verdict.action != "keep" for verdict in one.verdicts)
    status = one.status.status.value
    said = "" if status == "RUNNING" else f"; the feed is {status}, so nothing goes by itself"
    what = (
        f"{going} of {len(one.verdicts)} would go" if one.verdicts or one.copies or one.versions else "nothing is there"
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
