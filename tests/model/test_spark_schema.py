"""Schemas that Spark does not read are told without Spark, and none that it reads is refused."""

from __future__ import annotations

import pytest

from falcon_assets.model.spark_schema import column_types, schema_mistake

RIGHT = (
    "year int, month int",
    "a STRING NOT NULL COMMENT 'x, y', b decimal(10,2)",
    "a array<int>, m map<string, array<struct<x: int, y: string COMMENT 'q'>>>",
    "`a b` struct<>, c struct<d:bigint>, t timestamp without time zone",
    "a interval year to month, b timestamp_ntz",
    "a string collate UTF8_LCASE, b variant",
    'a int COMMENT "d", ab long, b short, c byte, d real, e dec(1), f decimal, g void',
)
PERHAPS = ("struct<a:int,b:string>", "a: int", "a varchar(3)", "a int default 5", "a int NULL")
"""What some of its readers take."""
WRONG = {
    "year itn, month int": "year has the type 'itn', which Spark does not know (did you mean int?)",
    "a money": "a has the type 'money', which Spark does not know",
    "a": "it ends where the type of a should stand",
    "": "it ends where the name of a column should stand",
    "a int b string": "a is followed by 'b': write a comma between columns",
    "a int,": "it ends where the name of a column should stand",
    "a,b": "',' stands where the type of a should",
    "a array": "array says nothing of what is in it: write array<...>",
    "a array<int": "the bracket < of array is not closed",
    "a struct<b int": "the bracket < of struct is not closed",
    "a map<int>": "a is a map of one type: write map<key, value>",
    "a map<int,int>>": "column a is followed by '>': write a comma between columns",
    "a varchar": "a has the type varchar without a length: write varchar(n), or string",
    "a decimal(10": "the bracket ( of the type decimal of a is not closed",
}


@pytest.mark.parametrize("schema", (*RIGHT, *PERHAPS))
def test_right(schema: str) -> None:
    assert schema_mistake(schema) is None


@pytest.mark.parametrize(("schema", "mistake"), WRONG.items())
def test_wrong(schema: str, mistake: str) -> None:
    assert schema_mistake(schema) == mistake


def test_columns_are_named_with_the_first_word_of_their_types() -> None:
    text = "id: BIGINT, `b c` struct<x: int, y: array<string>>, d decimal(10,2) not null comment 'x, y', e timestamp"
    assert column_types(text) == [("id", "bigint"), ("b c", "struct"), ("d", "decimal"), ("e", "timestamp")]
