"""``falcon lineage``: which versions came from which, by which run, and what was made from them."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup

MODULES = {
    **dict.fromkeys(["show", "path", "diff"], "asking"),
    "impact": "impact",
    "search": "searching",
    **dict.fromkeys(["status", "prune-plan", "expire"], "lifecycle"),
    "export": "exporting",
}
"""Command -> its module."""


@click.group(cls=LazyGroup, package=__package__, modules=MODULES)
def lineage() -> None:
    """Show which versions of data came from which, by which run, and what was made from them; protect them.

    A version is what a feed instance held on a cluster at a time. It stays known after it was replaced or evicted. Of a
    version its beginning is enough.
    """
