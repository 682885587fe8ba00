"""``falcon instance``: what reads, and what records that instances landed."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
    **dict.fromkeys(["list", "status", "running", "summary", "search", "grid"], "reading"),
    **dict.fromkeys(["params", "dependency"], "details"),
    "logs": "logs",
    "collect": "collecting",
    "wait": "operating",
    "triage": "triage",
    **dict.fromkeys(["versions", "restore"], "versions"),
    "replay": "replaying",
    **dict.fromkeys(["rerun", "resend", "kill", "suspend", "resume"], "operating"),
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def instance() -> None:
    """List, rerun, resend, kill, suspend and resume instances; find out why one is missing."""
