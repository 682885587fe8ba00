"""Columns of a version, and what they were made from, as Dagster has them in metadata, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from falcon_assets.events.record import storable
from falcon_assets.planning.lineage.usage import OutputColumn

SCHEMA, LINEAGE = "dagster/column_schema", "dagster/column_lineage"
_OPAQUE = "falcon/opaque"
_OPAQUE_TEXT = "passed through code that Spark does not look into: it may come from more, or from less"


def columns_metadata(columns: Sequence[OutputColumn], cluster: str) -> dict[str, Any]:
    """What Dagster knows of columns and what they were made from; a place that is no feed's is an asset key."""
    import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

    if not columns:
        return {}
    schema = [
        dg.TableColumn(one.name, one.type, _OPAQUE_TEXT, tags={_OPAQUE: "true"})
        if one.is_opaque
        else dg.TableColumn(one.name, one.type)
        for one in columns
    ]
    lineage = {
        one.name: [
            dg.TableColumnDep(dg.AssetKey([source] if "/" in source else [cluster, source]), column)
            for source, column in one.inputs
        ]
        for one in columns
    }
    return {SCHEMA: dg.TableSchema(schema), LINEAGE: dg.TableColumnLineage(lineage)}


def columns_in(metadata: Mapping[str, Any]) -> tuple[OutputColumn, ...]:
    """The columns that such metadata says; none where it is not ours."""
    import dagster as dg  # noqa: PLC0415 - as above

    schema, lineage = (getattr(metadata.get(name), "value", None) for name in (SCHEMA, LINEAGE))
    if not isinstance(schema, dg.TableSchema) or not isinstance(lineage, dg.TableColumnLineage):
        return ()
    return tuple(
        OutputColumn(
            storable(one.name),
            storable(one.type),
            tuple(
                (storable(dep.asset_key.path[-1]), storable(dep.column_name))
                for dep in lineage.deps_by_column.get(one.name, ())
            ),
            _OPAQUE in one.tags,
        )
        for one in schema.columns
    )
