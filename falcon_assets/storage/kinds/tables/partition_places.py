"""Finds the instance of a table feed at a place: partitions may be outside of the folder of their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from falcon_assets.planning.data_usage import normal_place

MOST_ELSEWHERE = 10_000
"""A table with more partitions is not searched for places outside of its folder."""


def instance_there(place: str, instances: Mapping[str, datetime]) -> datetime | None:
    return next((instances[one] for one in _up(place) if one in instances), None)


def is_below(place: str, folder: str) -> bool:
    return f"{place}/".startswith(f"{normal_place(folder)}/")


def _up(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]
