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
    """Trace versions of data: what each was made from, and what was made from it.

    A version is the data of a feed instance on a cluster at one time. It stays in the lineage after it was replaced or
    evicted. The first characters of a version's id suffice to name it.
    """
