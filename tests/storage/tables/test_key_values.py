"""One spelling for each value of a partition key, and back to how a URI spells it."""

from __future__ import annotations

import pytest

from falcon_assets.storage.tables.catalog import Column
from falcon_assets.storage.tables.key_values import NO_VALUE, canonical, same, spelled, why_not_written


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "05", "5"),
        ("int", "+5", "5"),
        ("int", "-05", "-5"),
        ("int", "-0", "0"),
        ("bigint", "2147483648", "2147483648"),
        ("date", "20240105", "2024-01-05"),
        ("date", "2024-1-5", "2024-01-05"),
        ("date", "2024-01-05", "2024-01-05"),
        ("boolean", "TRUE", "true"),
        ("string", "05", "05"),
        ("varchar(3)", "abc", "abc"),
        ("char(3)", "üñ", "üñ"),
        ("double", "1.50", "1.50"),
        ("int", NO_VALUE, NO_VALUE),
    ],
)
def test_a_value_has_one_spelling(kind: str, text: str, expected: str) -> None:
    assert canonical(Column("k", kind), text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "more"),
    [
        ("int", "abc", ""),
        ("int", "", ""),
        ("int", "1.0", ""),
        ("int", "2013-01-01", ""),
        ("int", "٣", ""),
        ("int", "2147483648", ""),
        ("tinyint", "128", ""),
        ("date", "2024-02-30", ""),
        ("date", "2024-01", ""),
        ("date", "2024-01-01-05", ""),
        ("boolean", "yes", ""),
        ("varchar(3)", "abcdefgh", ": it has 8 characters"),
    ],
)
def test_what_is_no_value_of_its_type_is_told(kind: str, text: str, more: str) -> None:
    with pytest.raises(ValueError) as raised:
        canonical(Column("k", kind), text)
    assert str(raised.value) == f"k is {kind} in the table, and {text!r} is none{more}"
    assert same([Column("k", kind)], (text,)) == (text,)


@pytest.mark.parametrize(
    ("kind", "text", "like", "expected"),
    [
        ("int", "5", "00", "05"),
        ("int", "13", "00", "13"),
        ("int", "7", "007", "007"),
        ("int", "123", "00", "123"),
        ("int", "20130102", "20130101", "20130102"),
        ("date", "2013-01-02", "20130101", "20130102"),
        ("date", "2013-01-02", "2013-01-01", "2013-01-02"),
        ("boolean", "true", "TRUE", "TRUE"),
        ("string", "a", "b", "a"),
    ],
)
def test_a_value_is_spelled_as_the_uri_spells_it(kind: str, text: str, like: str, expected: str) -> None:
    assert spelled(Column("k", kind), text, like) == expected


def test_keys_of_which_nobody_knows_what_is_the_same_are_not_written() -> None:
    assert why_not_written(Column("k", "double")) == (
        "partitioned by k, a double: only texts, whole numbers and dates are written"
    )
    assert [why_not_written(Column("k", kind)) for kind in ("string", "varchar(3)", "int", "date", "boolean")] == (
        [None] * 5
    )
