"""How versions are printed, and given."""

from __future__ import annotations

from typing import Any

import click

from falcon_assets.errors import ExpressionError, UsageError, printable
from falcon_assets.features.lineage.graph import Version
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.model.instant import format_instant

SHOWN = 12
"""So much of a version is printed; commands take its beginning."""


class _VersionType(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """``[CLUSTER/]FEED/INSTANCE[@VERSION]``."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> VersionQuery:
        """The version that is asked for."""
        try:
            return VersionQuery.parse(value)
        except (UsageError, ExpressionError) as error:
            self.fail(str(error), param, ctx)


VERSION = _VersionType()
"""A version, as ids of graphs are written."""


def named(one: Version) -> str:
    """Which version of which instance, where."""
    return printable(f"{one.feed} {format_instant(one.instance)} on {one.cluster} @{one.version[:SHOWN]}")


def status(one: Version) -> str:
    """What has become of it."""
    where = " (archived)" if one.archived_to else " (kept)" if one.kept_at else ""
    return f"{one.status.value}{where}"


def made(one: Version) -> str:
    """By whom it was made; nothing where it landed from outside."""
    if one.process is None:
        return ""
    run = f" in run {one.run_id[:8]}" if one.run_id else ""
    definition = f", definition {one.definition}" if one.definition else ""
    return printable(f"  by {one.process}{run}{definition}{', for late data' if one.late else ''}")
