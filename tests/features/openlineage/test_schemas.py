"""The check of events is not content with anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features.openlineage.schemas import assert_valid

URL = "https://openlineage.io/spec"
BASE = {
    "_producer": "pkg:pypi/x",
    "_schemaURL": f"{URL}/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet",
}


def event(facet: dict[str, Any], **more: Any) -> dict[str, Any]:
    run = {"runId": "10000000-0000-4000-8000-000000000000", "facets": {"nominalTime": {**BASE, **facet}}}
    about = {"eventTime": "2013-01-01T00:00:00Z", "eventType": "START", "inputs": [], "outputs": []}
    where = {"producer": "pkg:pypi/x", "schemaURL": f"{URL}/2-0-2/OpenLineage.json#/$defs/RunEvent"}
    return {"run": run, "job": {"namespace": "n", "name": "j"}, **about, **where, **more}


def test_a_good_one() -> None:
    assert_valid(event({"nominalStartTime": "2013-01-01T00:00:00Z"}))


@pytest.mark.parametrize(
    ("facet", "more"),
    [
        ({}, {}),
        ({"nominalStartTime": "yesterday"}, {}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z", "other": 1}, {}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z"}, {"eventType": "ENDED"}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z"}, {"eventTime": "2013-01-01"}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z"}, {"job": {"name": "j"}}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z"}, {"producer": "me and you"}),
        ({"nominalStartTime": "2013-01-01T00:00:00Z"}, {"run": {"runId": "7"}}),
    ],
)
def test_bad_ones(facet: dict[str, Any], more: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        assert_valid(event(facet, **more))
