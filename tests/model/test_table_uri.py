"""URIs of tables, and which partitions an instance is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.table_uri import ANY, TableUri

NAMES = st.text("abcXYZ_09", min_size=1, max_size=8)
VALUES = st.text(st.characters(blacklist_characters=";#", blacklist_categories=["Cs", "Z"]), min_size=1, max_size=8)
KEYS = st.lists(st.tuples(NAMES, VALUES), max_size=4, unique_by=lambda pair: pair[0].lower())


@given(NAMES, NAMES, KEYS)
def test_a_uri_is_read_as_it_is_written(database: str, table: str, keys: list[tuple[str, str]]) -> None:
    uri = TableUri(database, table, tuple(keys))
    assert TableUri.parse(str(uri)) == uri


@given(KEYS, st.data())
def test_each_partition_belongs_to_the_instance_that_it_makes_up(
    keys: list[tuple[str, str]], data: st.DataObject
) -> None:
    uri = TableUri("db", "t", tuple(keys))
    order = data.draw(st.permutations([key.upper() for key, _ in keys]))
    assert uri.differs_from(order) is None
    values = [uri.fixed.get(key.lower()) or data.draw(VALUES) for key in order]
    of = uri.of(order, values)
    assert str(of) == str(uri)  # which has only fixed values, or leaves them open


def test_of_a_feed_only_what_is_open_stays_open() -> None:
    uri = TableUri.parse("catalog:db:t#ds=${YEAR}-${MONTH}-${DAY};region=*")
    assert str(uri.of(["region", "ds"], ["US", "2024-01-02"])) == "catalog:db:t#ds=2024-01-02;region=*"
    assert uri.name == "db.t" and ANY not in uri.fixed.values()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("catalog:db:t#ds", "'ds' is not of the form key=value"),
        ("catalog:db:t#ds=", "'ds=' is not of the form key=value"),
        ("catalog:db:t#ds=1;DS=2", "the partition key 'DS' is there twice"),
        ("catalog:db#ds=1", "write catalog:database:table#key=value;key=value"),
        ("catalog:db:t#", "'' is not of the form key=value"),
        ("catalog:t", "write catalog:database:table#key=value;key=value"),
    ],
)
def test_any_other_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        TableUri.parse(text)
    assert str(raised.value) == f"{text!r}: {why}"


def test_a_table_that_is_partitioned_otherwise_is_told() -> None:
    uri = TableUri.parse("catalog:db:t#ds=1")
    assert uri.differs_from(["DS", "region"]) == "it is also partitioned by region: add region=*"
    assert uri.differs_from([]) == "it is not partitioned, not by ds"
    assert TableUri.parse("catalog:db:t#ds=1;hh=2").differs_from(["ds"]) == "it is partitioned by ds, not by hh"
