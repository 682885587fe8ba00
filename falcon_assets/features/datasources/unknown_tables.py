"""What is said of a table that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from falcon_assets.errors import DatasourceError

_SHOWN = 3


def no_such_table(datasource: str, name: str, known: Sequence[str]) -> DatasourceError:
    """The error, with the nearest names; ``known`` are all tables that the user can see."""
    shown = get_close_matches(name, known, _SHOWN, 0.5) or sorted(known)[:_SHOWN]
    there = f"there is: {', '.join(shown)}" if shown else "there are no tables that this user can see"
    return DatasourceError(f"datasource {datasource!r} has no table {name!r}; {there}")
