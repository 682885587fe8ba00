"""``falcon admin``: the installation as a whole."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
<<<<<<< HEAD
    **{"audit": "audit", "version": "health", "status": "health", "root": "roots"},
    **dict.fromkeys(("backup", "restore"), "backups"),
=======
    **{"audit": "audit", "version": "health", "status": "health", "root": "roots", "colos": "colos"},
>>>>>>> 4c9d39dd (Reads of several colos are merged; --colo; falcon admin colos)
    **dict.fromkeys(("token", "user", "session"), "access"),
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def admin() -> None:
<<<<<<< HEAD
    """Inspect and back up the installation, and manage its storage roots, tokens, users and sessions."""
=======
    """Inspect the installation: audit log, versions, health, roots, colos; manage tokens, users and sessions."""
>>>>>>> 4c9d39dd (Reads of several colos are merged; --colo; falcon admin colos)
