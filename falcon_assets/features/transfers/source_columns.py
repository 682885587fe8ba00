"""Columns of a source that differ from those that were read before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from falcon_assets.errors import DatasourceError, count_of
from falcon_assets.features.datasources.datasource_type import SourceColumn
from falcon_assets.model.transfer import Import


def require_known_columns(
    columns: Sequence[SourceColumn], before: Mapping[str, str], declared: Import, where: str
) -> None:
    """Compares the columns that are read with ``before`` (name -> type in the feed); empty: nothing was read yet.

    Args:
        columns: Those of the source that are taken.
        before: Those that were taken by the newest instance.
        declared: Says whether new ones are welcome.
        where: Names the source.

    Raises:
        DatasourceError: a column has another type, is gone, or is new where that is not allowed.
    """
    if not before:
        return
    taken = {one.name: one for one in columns}
    fields = declared.fields
    for name in fields.of(tuple(before)) if fields else before:
        if name not in taken:
            raise DatasourceError(
                f"{where} has no column {name!r} any more: name the others (fields: {{include: [..]}}), read a query "
                "that makes one, or import into a new feed"
            )
        if taken[name].spark_type != before[name]:
            now = f"{taken[name].spark_type} ({taken[name].source_type})"
            raise DatasourceError(
                f"{where}: column {name!r} was {before[name]} and is {now} now: read a query that casts it, leave it "
                "out (fields), or import into a new feed"
            )
    named = fields.include or () if fields else ()
    new = [one for one in columns if one.name not in before and one.name not in named]
    if new and not declared.merge_schema:
        said = ", ".join(f"{one.name!r} ({one.spark_type})" for one in new)
        one_or_more = "it" if len(new) == 1 else "them"
        raise DatasourceError(
            f"{where} has {count_of(len(new), 'new column')}, {said}: merge_schema: true lets {one_or_more} follow, "
            f"fields: {{exclude: [{', '.join(one.name for one in new)}]}} leaves {one_or_more} out"
        )
