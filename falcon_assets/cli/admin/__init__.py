"""``falcon admin``: the installation as a whole."""

from __future__ import annotations

import click

from falcon_assets.cli.admin.audit import audit
from falcon_assets.cli.admin.health import status, version
from falcon_assets.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def admin() -> None:
    """Show who did what, what is installed, and whether it works."""


for _command in (audit, version, status):
    admin.add_command(_command)
