"""Columns of a version and their sources as Dagster's metadata, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falcon_assets.history.events.record import Record, Words, internals, storable
from falcon_assets.planning.version_columns import Hows, OutputColumn, OutputColumns, Source, is_place

SCHEMA, LINEAGE, ROWS = "dagster/column_schema", "dagster/column_lineage", "rows_from"
ROWS_OPAQUE, HOW = "rows_opaque", "column_transformations"
_OPAQUE = "falcon/opaque"
_OPAQUE_TEXT = "passed through code that Spark does not look into: it may come from more, or from less"


def columns_metadata(columns: OutputColumns | None, cluster: str) -> dict[str, Any]:
    """Returns Dagster's metadata of columns and their sources; a place without a feed is an asset key."""
    import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

    if columns is None:
        return {}
    schema = [
        dg.TableColumn(one.name, one.type, _OPAQUE_TEXT, tags={_OPAQUE: "true"})
        if one.is_opaque
        else dg.TableColumn(one.name, one.type)
        for one in columns.each
    ]
    lineage = {
        one.name: [
            dg.TableColumnDep(dg.AssetKey([source] if is_place(source) else [cluster, source]), column)
            for source, column in one.inputs
        ]
        for one in columns.each
    }
    rows: dict[str, Any] = {} if columns.rows_from is None else {ROWS: columns.as_data()["rows_from"]}
    rows |= {ROWS_OPAQUE: dg.MetadataValue.bool(True)} if columns.are_rows_opaque else {}
    # By the names of what it comes from: Dagster sorts its own list.
    hows = {one.name: one.as_data()["from"] for one in columns.each if any(one.how)}
    rows |= {HOW: hows} if hows else {}
    return {SCHEMA: dg.TableSchema(schema), LINEAGE: dg.TableColumnLineage(lineage), **rows}


def columns_in(metadata: Mapping[str, Any]) -> OutputColumns | None:
    import dagster as dg  # noqa: PLC0415 - as above

    said = {key: getattr(value, "value", value) for key, value in {**internals(metadata), **metadata}.items()}
    schema, lineage, rows, hows = map(said.get, (SCHEMA, LINEAGE, ROWS, HOW))
    hows = hows if isinstance(hows, dict) else {}
    if not isinstance(schema, dg.TableSchema) or not isinstance(lineage, dg.TableColumnLineage) or not schema.columns:
        return None
    each = []
    for one in schema.columns:
        deps = lineage.deps_by_column.get(one.name, ())
        inputs = tuple((storable(dep.asset_key.path[-1]), storable(dep.column_name)) for dep in deps)
        how = _hows(inputs, hows.get(one.name))
        each.append(OutputColumn(storable(one.name), storable(one.type), inputs, _OPAQUE in one.tags, how))
    is_opaque = said.get(ROWS_OPAQUE) is True
    decided = _sources(rows)
    return OutputColumns(tuple(each), decided, is_opaque, _hows(decided or (), rows))


def _hows(sources: Sequence[Source], said: Any) -> Hows:
    try:
        ways = {(one["feed"], one["column"]): tuple(storable(way) for way in one["how"]) for one in said}
    except (TypeError, KeyError, AttributeError):
        return ()
    return tuple(ways.get(one, ()) for one in sources)


def _sources(said: Any) -> tuple[Source, ...] | None:
    try:
        return tuple((storable(one["feed"]), storable(one["column"])) for one in said)
    except (TypeError, KeyError, AttributeError):  # others may write about these assets, and whatever they like
        return None


@dataclass(frozen=True)
class DataCaptured(Record):
    """The data that an instance really read and wrote; ``capture`` is ``complete``, or ``none`` and the reason."""

    key = "capture"

    capture: Words
    capture_warnings: tuple[Words, ...] = ()
