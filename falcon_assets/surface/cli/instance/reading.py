"""``falcon instance list|status|running|summary|search``: nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.table import Table

from falcon_assets.instances.views.feed_listing import FeedInstanceInfo
from falcon_assets.instances.views.listing import instance_status, latest, list_instances, summarize_instances
from falcon_assets.instances.views.query import FIELDS, ORDERS, InstanceInfo, InstancePage, InstanceQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.listing import keyset_options, one_line, print_json, say_more
from falcon_assets.surface.cli.parameters import INSTANT, require_order
from falcon_assets.surface.cli.states import colored

TYPE = click.option(
    "--type",
    type=click.Choice(["process", "feed"]),
    default="process",
    show_default=True,
    help="Instances of processes and replications, or of feeds.",
)
_WHICH = (
    click.option("--start", type=INSTANT, help="The first (YYYY-MM-DDTHH:MMZ); alone: only it."),
    click.option("--end", type=INSTANT, help="The last; it is included."),
    click.option("--cluster", help="Only on that cluster."),
    click.option("--colo", help="Only on the clusters of that colo."),
)


def which(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which instances."""
    for option in reversed(_WHICH):
        command = option(command)
    return command


def query_of(**asked: Any) -> InstanceQuery:
    """The query that the options ask for."""
    require_order(asked["start"], asked["end"])
    return InstanceQuery(**asked)


@click.command("list")
@click.argument("name", required=False)
@TYPE
@which
@keyset_options(FIELDS, ORDERS)
def list_(as_json: bool, **asked: Any) -> None:
    """List the instances of NAME, or of all processes and replications, that are due.

    NAME is a process, or a feed: then its replications. What is due and was not launched is WAITING, with the reason.

    With --type feed it lists the instances of feeds: AVAILABLE, EVICTED, or MISSING, which is due and not there.

    Of several filters with one field any may fit, of different fields all must: --filter state=FAILED
    """
    with open_installation() as installation:
        query = query_of(**asked)
        _show(list_instances(installation, query), query, as_json=as_json)


@click.command()
@click.argument("name")
@TYPE
@which
@keyset_options(FIELDS, ORDERS)
def status(as_json: bool, **asked: Any) -> None:
    """Show the instances of NAME from --start to --end, or the latest ten.

    With --start alone it shows that one, which may lie in the future.
    """
    with open_installation() as installation:
        query = latest(query_of(**asked))
        _show(instance_status(installation, query), query, as_json=as_json)


@click.command()
@click.argument("name", required=False)
@which
@keyset_options(FIELDS, ORDERS)
def running(as_json: bool, filters: tuple[tuple[str, str], ...], **asked: Any) -> None:
    """List the instances of NAME, or of everything, that are running now."""
    if any(field == "state" and value.upper() != "RUNNING" for field, value in filters):
        raise click.BadParameter("what is listed here is RUNNING", param_hint="--filter")
    wanted = (*filters, ("state", "RUNNING"))
    with open_installation() as installation:
        query = query_of(filters=wanted, **asked)
        _show(list_instances(installation, query), query, as_json=as_json)


@click.command()
@click.argument("text")
@TYPE
@which
@keyset_options(FIELDS, ORDERS)
def search(as_json: bool, **asked: Any) -> None:
    """List the instances of processes and replications, or of feeds, that have TEXT in their name."""
    with open_installation() as installation:
        query = query_of(**asked)
        _show(list_instances(installation, query), query, as_json=as_json)


@click.command()
@click.argument("name", required=False)
@TYPE
@which
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def summary(as_json: bool, **asked: Any) -> None:
    """Count the instances of NAME, or of everything, that are due, by their state."""
    with open_installation() as installation:
        found = summarize_instances(installation, query_of(**asked))
    if as_json:
        print_json({"items": [one.as_data() for one in found], "total": len(found), "next": None})
        return
    table = _table("kind", "cluster", "state", "instances")
    for one in found:
        for state, number in one.states.items():
            table.add_row(shown(one.entity), one.kind, one.cluster, colored(state.value), f"{number:,}")
    print_table(table, nothing="no instance fits")


def _show(page: InstancePage, query: InstanceQuery, *, as_json: bool) -> None:
    if as_json:
        print_json(page.as_data())
        return
    told = (
        ("files", "bytes", "landed", "expires", "replicated")
        if query.type == "feed"
        else ("attempt", "started", "ended")
    )
    table = _table("cluster", "instance", "state", *told)
    table.add_column("reason", overflow="fold")
    for one in page.items:
        reason = shown(one_line(one.reason["text"])) if one.reason else ""
        state, instant = colored(one.state.value), format_instant(one.instance)
        table.add_row(shown(one.entity), one.cluster, instant, state, *_told(one), reason)
    print_table(table, nothing="no instance fits")
    if page.next is not None:
        say_more(len(page.items), page.total, "instance")


def _told(one: InstanceInfo) -> tuple[str, ...]:
    if not isinstance(one, FeedInstanceInfo):
        return str(one.attempt), moment(one.started), moment(one.ended)
    row = one.stored
    sizes = ("" if size is None else f"{size:,}" for size in ((row.files, row.bytes) if row else (None, None)))
    landed = moment(row.landed_at) if row and row.version else ""
    replicated = ", ".join(f"{copy.target}: {copy.state.value}" for copy in one.replications)
    return *sizes, landed, moment(one.expires), replicated


def _table(*columns: str) -> Table:
    table = Table()
    table.add_column("entity", overflow="fold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
