"""How versions are printed, and given."""

from __future__ import annotations

from falcon_assets.errors import printable
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant

SHOWN = 12
"""Printed characters of a version; commands take its beginning."""


def named(one: Version) -> str:
    """Which version of which instance, where."""
    return printable(f"{one.feed} {format_instant(one.instance)} on {one.cluster} @{one.version[:SHOWN]}")


def status(one: Version) -> str:
    """Returns the present state of a version."""
    where = " (archived)" if one.archived_to else " (kept)" if one.kept_at else ""
    return f"{one.status.value}{where}"


def made(one: Version) -> str:
    """By whom it was made; nothing where it landed from outside."""
    if one.process is None:
        return ""
    run = f" in run {one.run_id[:8]}" if one.run_id else ""
    definition = f", definition {one.definition}" if one.definition else ""
    return printable(f"  by {one.process}{run}{definition}{', for late data' if one.late else ''}")
