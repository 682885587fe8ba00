"""``falcon instance``: what reads, and what records that instances landed."""

from __future__ import annotations

import click

from falcon_assets.cli.instance.collecting import collect
from falcon_assets.cli.instance.details import dependency, params
from falcon_assets.cli.instance.logs import logs
from falcon_assets.cli.instance.operating import kill, rerun, resume, suspend
from falcon_assets.cli.instance.reading import list_, running, search, status, summary
from falcon_assets.cli.instance.triage import triage
from falcon_assets.cli.instance.waiting import wait


@click.group()
def instance() -> None:
    """See instances of processes, replications and feeds; command them; record instances of feeds that landed."""


for _command in (
    list_,
    status,
    running,
    summary,
    search,
    params,
    dependency,
    logs,
    collect,
    wait,
    triage,
    rerun,
    kill,
    suspend,
    resume,
):
    instance.add_command(_command)
