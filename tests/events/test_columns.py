"""Columns go into Dagster's metadata, and come out of it as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pytest

from falcon_assets.history.events.columns import HOW, ROWS, columns_in, columns_metadata
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, with_hows

K = OutputColumn("k", "int", (("raw", "a"), ("/aside", "b")), how=(("AGGREGATION", "WINDOW"), ("IDENTITY",)))
SURE = OutputColumns((K,), (("raw", "day"),), rows_how=(("FILTER", "JOIN"),))


def recorded(metadata: dict[str, Any]) -> Mapping[str, Any]:
    return dg.AssetMaterialization("a", metadata=metadata).metadata


def test_ways_are_kept() -> None:
    read = columns_in(recorded(columns_metadata(SURE, "primary")))
    assert read is not None
    (column,) = read.each
    assert dict(with_hows(column.inputs, column.how)) == dict(with_hows(K.inputs, K.how))  # Dagster sorts them
    assert (read.rows_from, read.rows_how) == (SURE.rows_from, SURE.rows_how)
    assert OutputColumns.of_data(read.as_data()).as_data() == read.as_data()


@pytest.mark.parametrize("said", ["x", {"k": 3}, {"k": [3]}, {"k": [{"feed": "raw", "column": "a", "how": 3}]}, None])
def test_what_others_write_there_is_no_way(said: Any) -> None:
    told = {**columns_metadata(SURE, "primary"), HOW: dg.MetadataValue.json(said)}
    told[ROWS] = dg.MetadataValue.json([{"feed": "raw", "column": "day", "how": 5}])
    read = columns_in(recorded(told))
    assert read is not None
    assert (read.rows_from, set(read.each[0].inputs)) == (SURE.rows_from, set(K.inputs))
    assert all("how" not in one for one in read.as_data()["columns"][0]["from"])


def test_without_ways_columns_are_what_they_were() -> None:
    old = OutputColumns((OutputColumn("k", "int", (("raw", "a"),)),), (("raw", "day"),))
    assert not old.differs_from(OutputColumns((OutputColumn("k", "int", K.inputs[:1], how=K.how[:1]),), old.rows_from))
    assert old.as_data()["columns"][0]["from"] == [{"feed": "raw", "column": "a"}]
