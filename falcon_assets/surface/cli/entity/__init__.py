"""``falcon entity``: all kinds of entities, one file for what reads and one for each kind of change."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
    **dict.fromkeys(["list", "show", "status", "summary", "dependency", "lookup"], "reading"),
    **dict.fromkeys(["history", "diff"], "versions"),
    **dict.fromkeys(["submit", "update", "apply", "delete", "submit-and-schedule", "touch", "restore"], "changing"),
    **dict.fromkeys(["schedule", "suspend", "resume"], "changing"),
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def entity() -> None:
    """Manage clusters, datasources, feeds and processes: submit, update, schedule and more.

    A new feed or process is SUBMITTED, or RUNNING if its definition has `schedule: true`. Commands change the status.
    """
