"""Which version of its definition an instance runs with (source: Apache Falcon)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class VersionSince:
    """A version of a definition, and since when it has held, on the falcon clock."""

    number: int
    since: datetime


def version_for(nominal: datetime, scheduled_since: datetime | None, versions: Sequence[VersionSince]) -> int:
    """The version that an instance runs with.

    It is the one that held at the nominal time; for instances of the time before the entity was scheduled the one that
    held when it was. An entity that never was scheduled is still being written: its instances run with the present one.

    Args:
        nominal: The nominal time of the instance.
        scheduled_since: When the entity was scheduled first, on the falcon clock; None: it never was.
        versions: All versions, the oldest first; one at least.
    """
    if scheduled_since is None:
        return versions[-1].number
    at = max(nominal, scheduled_since)
    return next((one.number for one in reversed(versions) if one.since <= at), versions[0].number)
