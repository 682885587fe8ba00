"""Members of a roll-up that an input tells apart, wherever they lie."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falcon_assets.compute.spark.data.dataset import Members
from falcon_assets.compute.spark.data.members import read_with_members
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox

_NAMES = ("sales-eu", "sales-us")


def test_partitions_are_those_of_each_member_at_its_own_depth(sandbox: Sandbox) -> None:
    sandbox.file("eu/01/DE/a.json", '{"n": 1}')
    sandbox.file("us/deeper/01/country=NY/a.json", '{"n": 2, "m": 3}')
    data = sandbox.counted("sales", "eu/01", "us/deeper/01", format="json", partitions=["country"])
    members = Members(_NAMES, "region", True, _NAMES)
    frames = read_with_members(sandbox.session(), replace(data, members=members))
    assert sorted(frames) == ["sales", "sales__sales-eu", "sales__sales-us"]
    rows = {name: [one.asDict() for one in frame.orderBy("n").collect()] for name, frame in frames.items()}
    germany = {"m": None, "n": 1, "country": "DE", "region": "sales-eu"}
    new_york = {"m": 3, "n": 2, "country": "NY", "region": "sales-us"}
    assert rows == {"sales": [germany, new_york], "sales__sales-eu": [germany], "sales__sales-us": [new_york]}


def test_a_column_that_is_there_already_is_named(sandbox: Sandbox) -> None:
    sandbox.file("eu/01/a.json", '{"Region": 1}')
    data = sandbox.counted("sales", "eu/01", format="json")
    members = Members(_NAMES[:1], "region", False, _NAMES[:1])
    with pytest.raises(WorkflowError) as caught:
        read_with_members(sandbox.session(), replace(data, members=members))
    said = "its rows have a column region already: name another one in members.column"
    assert str(caught.value) == f"input 'sales' (feed 'sales-feed'): {said}"
