"""Which part of a list may be asked for: what programs hand over is as strange as what people write."""

from __future__ import annotations

from typing import Any

import pytest

from falcon_assets.errors import QueryError
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.paging import MOST, Query


@pytest.mark.parametrize(
    ("query", "asked", "text"),
    [
        (Query, {"offset": -1}, f"offset -1 must be from 0 to {MOST}"),
        (Query, {"offset": 10**30}, f"offset {10**30} must be from 0 to {MOST}"),
        (Query, {"limit": -1}, f"limit -1 must be from 0 to {MOST}"),
        (Query, {"limit": 10**30}, f"limit {10**30} must be from 0 to {MOST}"),
        (InstanceQuery, {"limit": 0}, f"limit 0 must be from 1 to {MOST}"),
        (InstanceQuery, {"limit": 10**30}, f"limit {10**30} must be from 1 to {MOST}"),
        (InstanceQuery, {"sort": ""}, "there is no field ''; there is: entity, instance, started, attempt"),
        (InstanceQuery, {"sort": "--entity"}, "there is no field '-entity'*; there is: *"),
    ],
)
def test_no_such_part_or_order(query: Any, asked: dict[str, Any], text: str) -> None:
    with pytest.raises(QueryError) as refused:
        query(**asked)
    beginning, _, _ = text.partition("*")
    assert str(refused.value).startswith(beginning)


def test_what_lists_have() -> None:
    assert Query(limit=0).limit == 0
    assert InstanceQuery(sort="-started", limit=1).descending
