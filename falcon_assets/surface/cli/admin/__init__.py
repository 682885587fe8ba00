"""``falcon admin``: the installation as a whole."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
    **{"audit": "audit", "version": "health", "status": "health", "root": "roots", "colos": "colos"},
    **dict.fromkeys(("backup", "restore"), "backups"),
    **dict.fromkeys(("token", "user", "session"), "access"),
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def admin() -> None:
    """Inspect and back up the installation, and manage its storage roots, colos, tokens, users and sessions."""
