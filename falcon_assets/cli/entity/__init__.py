"""``falcon entity``: clusters, feeds and processes, one file for what reads and one for each kind of change."""

from __future__ import annotations

import click

from falcon_assets.cli.entity.changing import CHANGE_COMMANDS
from falcon_assets.cli.entity.reading import dependency, list_, lookup, show, status
from falcon_assets.cli.entity.scheduling import STATUS_COMMANDS
from falcon_assets.cli.entity.summarizing import summary
from falcon_assets.cli.entity.versions import diff, history, restore
from falcon_assets.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def entity() -> None:
    """List, submit, update and delete clusters, feeds and processes; schedule, suspend and resume them.

    A feed or process is SUBMITTED, or RUNNING where its definition says "schedule: true", until a command says
    otherwise.
    """


for _command in (
    list_,
    show,
    status,
    summary,
    dependency,
    lookup,
    history,
    diff,
    *CHANGE_COMMANDS,
    restore,
    *STATUS_COMMANDS,
):
    entity.add_command(_command)
