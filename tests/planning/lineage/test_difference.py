"""Why two versions differ, as far as it is recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falcon_assets.features.lineage.difference import difference
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, VersionStatus

T = parse_instant("2013-01-01T00:00Z")
ENVIRONMENT = {"python": "3.11.7", "pyspark": "4.3.0", "packages": "a1"}
OLD = Version("primary", "sums", T, "v1", number=1, status=VersionStatus.REPLACED, environment=ENVIRONMENT, plan="p1")


def causes(**changed: object) -> list[str]:
    new = replace(OLD, number=2, version="v2", **changed)  # type: ignore[arg-type]
    return difference((OLD, new), ((), ()), (None, None)).causes


def test_what_of_the_environment_differs_is_named() -> None:
    assert causes() == []
    assert causes(environment={**ENVIRONMENT, "python": "3.12.1"}) == ["python 3.11.7 and 3.12.1"]
    assert causes(environment={**ENVIRONMENT, "packages": "b2"}) == ["other packages are installed"]
    assert causes(environment={"python": "3.11.7", "packages": "a1"}) == ["pyspark 4.3.0 and none"]
    new = replace(OLD, environment={**ENVIRONMENT, "pyspark": "4.4.0"})
    told = difference((OLD, new), ((), ()), (None, None)).as_data()["environment"]
    assert told == {"pyspark": {"from": "4.3.0", "to": "4.4.0"}}


def test_what_is_not_recorded_is_no_difference() -> None:
    assert causes(environment=None, plan=None) == []


A, B = OutputColumn("n", "int", (("raw", "a"),)), OutputColumn("n", "int", (("raw", "b"),))


@pytest.mark.parametrize(
    ("was", "now", "differ"),
    [
        (OutputColumns((A,)), OutputColumns((B,)), True),
        (OutputColumns((A,), ()), OutputColumns((A,), (("raw", "day"),)), True),
        (OutputColumns((A,)), OutputColumns((A,), (("raw", "day"),)), False),
        (OutputColumns((A,)), OutputColumns((B,), (("raw", "day"),)), True),
        (None, OutputColumns((A,)), False),
    ],
)
def test_columns(was: OutputColumns | None, now: OutputColumns | None, differ: bool) -> None:
    new = replace(OLD, number=2, version="v2", plan="p2")
    found = difference((OLD, new), ((), ()), (None, None), (was, now)).causes
    assert found == (["the columns, or what they are made from, differ"] if differ else [])
