"""Which instance of a table feed lies at a place: partitions may lie outside of the folder of their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from falcon_assets.planning.data_usage import normal_place

MOST_ELSEWHERE = 10_000
"""So many partitions of a table are looked through for one that does not lie below its folder; of more, none is."""


def instance_there(place: str, instances: Mapping[str, datetime]) -> datetime | None:
    """The instance that has the place, or a folder above it; None: none has."""
    return next((instances[one] for one in _up(place) if one in instances), None)


def is_below(place: str, folder: str) -> bool:
    """Whether a place is in a folder, or that."""
    return f"{place}/".startswith(f"{normal_place(folder)}/")


def _up(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]
