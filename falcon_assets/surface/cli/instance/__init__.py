"""``falcon instance``: what reads, and what records that instances landed."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
    "list": "reading",
    "status": "reading",
    "running": "reading",
    "summary": "reading",
    "search": "reading",
    "params": "details",
    "dependency": "details",
    "logs": "logs",
    "collect": "collecting",
    "wait": "operating",
    "triage": "triage",
    "versions": "versions",
    "restore": "versions",
    "replay": "replaying",
    "rerun": "operating",
    "kill": "operating",
    "suspend": "operating",
    "resume": "operating",
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def instance() -> None:
    """See instances of processes, replications and feeds; command them; record instances of feeds that landed."""
