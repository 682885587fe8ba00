"""``falcon admin``: the installation as a whole."""

from __future__ import annotations

import click

from falcon_assets.cli.admin.audit import audit
from falcon_assets.cli.admin.health import status, version
from falcon_assets.cli.admin.roots import root
from falcon_assets.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def admin() -> None:
    """Show who did what, what is installed, whether it works, and the roots of stores."""


for _command in (audit, version, status, root):
    admin.add_command(_command)
