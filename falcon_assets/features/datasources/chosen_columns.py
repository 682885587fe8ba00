"""Which columns of a source are taken."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from falcon_assets.errors import DatasourceError
from falcon_assets.model.transfer import Fields

_NEAREST = 3


def chosen(names: Sequence[str], fields: Fields | None, where: str) -> Sequence[str]:
    """Returns those that are taken, in order; ``where`` names the source, for people.

    Raises:
        DatasourceError: one is not there, there are none, or two are the same name to Spark.
    """
    for named in (fields.include or fields.exclude or ()) if fields else ():
        require_column(named, names, where)
    taken = fields.of(tuple(names)) if fields else names
    if not taken:
        raise DatasourceError(f"{where} has no columns")
    lower = [one.lower() for one in taken]
    if same := [one for one in taken if lower.count(one.lower()) > 1]:
        rest = "are the same name to Spark: leave one out (fields), or rename it in a query"
        raise DatasourceError(f"{where}: columns {' and '.join(same)} {rest}")
    return taken


def require_column(named: str, names: Sequence[str], where: str) -> None:
    """Raises DatasourceError where it is not there, with the nearest ones."""
    if named not in names:
        there = get_close_matches(named, names, _NEAREST, 0.5) or names
        raise DatasourceError(f"{where} has no column {named!r}; there is: {', '.join(there)}")
