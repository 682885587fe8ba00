"""What checks and profiles measure on Spark is what plain Python, pyarrow and pandas find in the same data."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import isolated
from falcon_assets.features.quality.measuring import CheckedInstance, InstanceMeasuring, UnreadableDataError, spark_type
from falcon_assets.features.quality.profile import QUANTILES, ColumnProfile
from falcon_assets.features.quality.verdict import InstanceVerdict, Measured, QualityResult, judged, verdict_of
from falcon_assets.model.quality_check import QualityCheck
from falcon_assets.model.quality_rules import AnyCheck
from falcon_assets.model.spark_schema import row_type
from tests.model.test_spark_schema import RIGHT

NOMINAL = datetime(2013, 1, 3, tzinfo=UTC)
INSTANCE = CheckedInstance("sales", "primary", NOMINAL)
CHECKS: TypeAdapter[tuple[QualityCheck, ...]] = TypeAdapter(tuple[AnyCheck, ...])
DDL = "id int, `x.y` double, `s``p ü` string, d decimal(10,2), t timestamp, n timestamp_ntz, day date, b boolean"
NAMES = ("id", "x.y", "s`p ü", "d", "t", "n", "day", "b")


def checks_of(*declared: dict[str, Any]) -> tuple[QualityCheck, ...]:
    return CHECKS.validate_python(list(declared))


def nobody(feed: str) -> DataFrame:
    raise AssertionError(f"{feed} was asked for")


def measured(
    spark: SparkSession,
    frame: Callable[[SparkSession], DataFrame],
    *declared: dict[str, Any],
    other: Callable[[SparkSession, str], DataFrame] | None = None,
    settings: dict[str, str] | None = None,
) -> Measured:
    with in_utc(), isolated(spark) as child:
        for key, value in (settings or {}).items():
            child.conf.set(key, value)
        asked = nobody if other is None else lambda feed: other(child, feed)
        return InstanceMeasuring(child, frame(child), INSTANCE, asked).measure(checks_of(*declared))


def results(found: Measured, *declared: dict[str, Any], past: Any = None) -> dict[str, QualityResult]:
    return {one.name: one for one in judged(checks_of(*declared), found, NOMINAL, past or {})}


def violations(found: Measured) -> dict[str, int]:
    assert found.problems == {}
    return {name: one["violations"] for name, one in found.figures.items()}


def rows(*values: tuple[Any, ...], ddl: str = DDL) -> Callable[[SparkSession], DataFrame]:
    return lambda spark: spark.createDataFrame(list(values), ddl)


ZONED = datetime(2013, 1, 2, 23, 30, tzinfo=UTC)
PLAIN = datetime(2013, 1, 2, 23, 30)
SOME = (
    (1, 1.5, "a", Decimal("1.10"), ZONED, PLAIN, date(2013, 1, 2), True),
    (2, math.nan, 'it\'s \\ "x"', Decimal("0.10"), ZONED, PLAIN, date(2013, 1, 3), False),
    (2, -0.0, "${spark.app.name}", None, None, None, None, None),
    (None, None, None, Decimal("-5.00"), ZONED + timedelta(hours=1), None, date(1600, 1, 1), True),
    (3, math.inf, "Ünï", Decimal("1.10"), ZONED, PLAIN, date(2013, 1, 2), True),
)
DECLARED = {
    "nulls": ({"rule": "not_null", "columns": ["id", "s`p ü"]}, 1),
    "nan_is_a_value": ({"rule": "not_null", "columns": ["x.y"]}, 1),
    "unique": ({"rule": "unique", "columns": ["id"]}, 1),
    "unique_together": ({"rule": "unique", "columns": ["d", "b"]}, 1),
    "nan_is_in_no_range": ({"rule": "in_range", "column": "x.y", "min": 0}, 1),
    "infinity_is": ({"rule": "in_range", "column": "x.y", "max": 1e308}, 2),
    "exact_decimals": ({"rule": "in_range", "column": "d", "min": 0.1, "max": 1.1}, 1),
    "text_for_a_decimal": ({"rule": "in_range", "column": "d", "max": "0.10"}, 2),
    "texts": ({"rule": "in_range", "column": "s`p ü", "min": "a"}, 1),
    "numbers": ({"rule": "in_set", "column": "id", "values": [1, 2.0]}, 1),
    "odd_texts": (
        {"rule": "in_set", "column": "s`p ü", "values": ["a", 'it\'s \\ "x"', "${spark.app.name}"]},
        1,
    ),
    "truth": ({"rule": "in_set", "column": "b", "values": [True]}, 1),
    "days": ({"rule": "in_set", "column": "day", "values": ["2013-01-02", "2013-01-03"]}, 1),
    "pattern": ({"rule": "matching", "column": "s`p ü", "pattern": r"^\w+$"}, 3),
    "pattern_with_quotes": ({"rule": "matching", "column": "s`p ü", "pattern": r"it's \\ |a|\$\{|Ü"}, 0),
    "zone_of_a_bound": ({"rule": "in_range", "column": "t", "max": "2013-01-03T00:00Z"}, 1),
    "no_zone_is_utc": ({"rule": "in_range", "column": "t", "max": "2013-01-02 23:30"}, 1),
    "other_zone": ({"rule": "in_range", "column": "t", "min": "2013-01-03T01:00+01:00"}, 3),
    "without_zone": ({"rule": "in_range", "column": "n", "min": "2013-01-02T23:31"}, 3),
    "where": ({"rule": "in_range", "column": "d", "min": 1, "where": "id = 2 -- the second"}, 1),
    "sql": ({"rule": "sql", "query": "SELECT * FROM data WHERE id > 1 AND `x.y` >= 0;\n"}, 3),
}


@pytest.mark.parametrize("settings", [{}, {"spark.sql.session.timeZone": "America/New_York"}], ids=["utc", "new_york"])
def test_one_query_finds_what_each_rule_means(spark: SparkSession, settings: dict[str, str]) -> None:
    declared = [{**check, "name": name} for name, (check, _) in DECLARED.items()]
    found = measured(spark, rows(*SOME), *declared, settings=settings)
    assert violations(found) == {name: number for name, (_, number) in DECLARED.items()}
    assert found.figures["where"]["rows"] == 2


def test_an_empty_instance_passes_all_rules_that_are_about_rows(spark: SparkSession) -> None:
    declared = [{**check, "name": name} for name, (check, _) in DECLARED.items()]
    found = measured(spark, rows(), *declared)
    assert set(violations(found).values()) == {0}
    fresh = {"rule": "freshness", "column": "t", "within": "hours(1)"}
    few = {"rule": "row_count", "min": 1}
    judged_ones = results(measured(spark, rows(), fresh, few), fresh, few)
    assert [(one.passed, one.said) for one in judged_ones.values()] == [
        (False, "t has no value"),
        (False, "0 rows; at least 1 are expected"),
    ]


@pytest.mark.parametrize("column", ["t", "n", "day"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_freshness_is_the_same_in_every_zone(spark: SparkSession, column: str, zone: str) -> None:
    age = NOMINAL - {"t": ZONED + timedelta(hours=1), "n": ZONED, "day": datetime(2013, 1, 3, tzinfo=UTC)}[column]
    minutes = int(age.total_seconds() // 60)
    for within, passes in ((max(minutes, 1), True), (max(minutes - 1, 1), minutes <= 1)):
        check = {"rule": "freshness", "column": column, "within": f"minutes({within})"}
        found = measured(spark, rows(*SOME), check, settings={"spark.sql.session.timeZone": zone})
        (one,) = results(found, check).values()
        assert one.passed is passes, one.said
        assert one.figures["newest"] == (NOMINAL - age).isoformat()


def test_the_newest_of_some_rows_only(spark: SparkSession) -> None:
    check = {"rule": "freshness", "column": "t", "within": "minutes(30)", "where": "id = 3"}
    (one,) = results(measured(spark, rows(*SOME), check), check).values()
    assert (one.passed, one.figures["newest"]) == (True, ZONED.isoformat())


def test_nested_columns(spark: SparkSession) -> None:
    ddl = "a struct<b: struct<`c.d`: int>, x: string>, `a.x` int, l array<int>"
    frame = rows((((5,), "q"), 1, [1]), (((None,), "r"), 2, None), (None, 3, [2]), ddl=ddl)
    declared = (
        {"rule": "in_range", "column": "a.b.`c.d`", "max": 4},
        {"rule": "in_set", "column": "a.x", "values": [1, 2]},  # the column of that whole name
        {"rule": "in_set", "name": "field", "column": "`a`.`x`", "values": ["q"]},
        {"rule": "not_null", "columns": ["l", "a.b.`c.d`"]},
        {"rule": "unique", "columns": ["L"]},
    )
    assert [*violations(measured(spark, frame, *declared)).values()] == [1, 1, 1, 2, 0]


WRONG = {
    "no_column": ({"rule": "not_null", "columns": ["idd"]}, "there is no column 'idd' (did you mean 'id'?)"),
    "type": (
        {"rule": "matching", "column": "id", "pattern": "x"},
        "id is of type int: matching is for columns of string",
    ),
    "bound": ({"rule": "in_range", "column": "id", "min": "x"}, "'x' is not comparable with id, which is of type int"),
    "where": ({"rule": "row_count", "min": 1, "where": "nobody > 1"}, "nobody"),
    "syntax": ({"rule": "row_count", "min": 1, "where": "id >"}, "Syntax error at or near"),
    "cast": ({"rule": "row_count", "min": 1, "where": "CAST(`s``p ü` AS int) > 1"}, "cannot be cast"),
    "pattern": ({"rule": "matching", "column": "s`p ü", "pattern": "(a"}, "Unclosed group"),
    "query": ({"rule": "sql", "query": "SELECT nobody FROM data"}, "nobody"),
    "module": ({"rule": "python", "function": "no_such_module:f"}, "no_such_module:f: ModuleNotFoundError"),
    "function": ({"rule": "python", "function": "math:no_such"}, "math:no_such: AttributeError"),
    "raised": ({"rule": "python", "function": "math:sqrt"}, "math:sqrt: TypeError"),
}


def test_what_cannot_be_measured_fails_alone(spark: SparkSession) -> None:
    declared = [{**check, "name": name} for name, (check, _) in WRONG.items()]
    right = {"name": "right", "rule": "not_null", "columns": ["id"], "severity": "warn"}
    found = measured(spark, rows(*SOME), *declared, right)
    assert set(found.problems) == set(WRONG) and set(found.figures) == {"right"}
    for name, (_, text) in WRONG.items():
        assert text in found.problems[name], found.problems[name]
    judged_ones = results(found, *declared, right)
    assert all(one.problem and not one.passed for name, one in judged_ones.items() if name != "right")
    assert verdict_of(judged_ones.values()) is InstanceVerdict.INVALID
    assert verdict_of([judged_ones["right"]]) is InstanceVerdict.VALID  # only a warning


def test_rows_that_cannot_be_computed_fail_the_checks_that_need_them(spark: SparkSession) -> None:
    def frame(child: SparkSession) -> DataFrame:
        return child.range(3).selectExpr("id", "raise_error('on purpose') AS x")

    found = measured(spark, frame, {"rule": "not_null", "columns": ["x"]}, {"rule": "row_count", "min": 3})
    assert "on purpose" in found.problems["not_null_x"] and found.figures["row_count"]["rows"] == 3


def test_keys_of_another_feed(spark: SparkSession) -> None:
    def other(child: SparkSession, feed: str) -> DataFrame:
        assert feed == "items"
        return child.createDataFrame([(1, "a"), (2, "b"), (2, "b"), (None, "c")], "key int, item string")

    frame = rows((1, "a"), (1, "b"), (2, None), (4, "a"), (None, "z"), (2, "b"), ddl="id int, item string")
    one = {"rule": "referential", "feed": "items", "columns": ["id"], "keys": ["key"]}
    both = {"rule": "referential", "feed": "items", "columns": ["id", "item"], "keys": ["key", "item"]}
    where = {"rule": "referential", "feed": "items", "columns": ["id"], "keys": ["key"], "where": "item = 'b'"}
    for check, lost in ((one, 1), (both, 2), (where, 0)):
        assert [*violations(measured(spark, frame, check, other=other)).values()] == [lost]
    unknown = {"rule": "referential", "feed": "items", "columns": ["id"]}
    assert "there is no column 'id'" in measured(spark, frame, unknown, other=other).problems["referential_id"]


def of_three(data: DataFrame, instance: CheckedInstance) -> Any:
    assert (instance.feed, instance.nominal_time) == ("sales", NOMINAL)
    return data.where("id = 3")


def test_python_functions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("shop_checks")
    vars(module).update(
        frame=of_three, right=lambda data, instance: True, wrong=lambda *_: False, many=lambda *_: 7, exits=sys.exit
    )
    monkeypatch.setitem(sys.modules, "shop_checks", module)
    names = ("frame", "right", "wrong", "many")
    declared = [{"name": name, "rule": "python", "function": f"shop_checks:{name}"} for name in names]
    assert [*violations(measured(spark, rows(*SOME), *declared)).values()] == [1, 0, 1, 7]


ROW = st.tuples(
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.5, math.nan, math.inf, -math.inf]),
    st.none() | st.sampled_from(["", "a", "A", "ab", "it's", "ü\\", "a\nb"]),
)


def _brute(check: dict[str, Any], data: list[dict[str, Any]]) -> int:
    """The definition of each rule, row by row."""
    data = [row for row in data if "where" not in check or (row["i"] is not None and row["i"] > 1)]
    if check["rule"] == "not_null":
        return sum(any(row[name] is None for name in check["columns"]) for row in data)
    if check["rule"] == "unique":
        keys = [tuple(row[name] for name in check["columns"]) for row in data]
        whole = [
            tuple("nan" if value != value else value + 0.0 if isinstance(value, float) else value for value in key)
            for key in keys
            if None not in key
        ]
        return sum(number - 1 for number in Counter(whole).values())
    values = [row[check["column"]] for row in data if row[check["column"]] is not None]
    if check["rule"] == "in_range":
        low, high = check.get("min", -math.inf), check.get("max", math.inf)
        return sum(not low <= value <= high for value in values)
    if check["rule"] == "in_set":
        return sum(value not in check["values"] for value in values)
    return sum(re.search(check["pattern"], value) is None for value in values)


CHECK = st.one_of(
    st.fixed_dictionaries(
        {
            "rule": st.sampled_from(["not_null", "unique"]),
            "columns": st.lists(st.sampled_from(["i", "x", "s"]), min_size=1, max_size=3, unique=True),
        }
    ),
    st.tuples(st.sampled_from(["i", "x"]), st.integers(-1, 3), st.integers(0, 3)).map(
        lambda it: {"rule": "in_range", "column": it[0], "min": it[1], "max": it[1] + it[2]}
    ),
    st.lists(st.sampled_from(["", "a", "it's", "ü\\"]), min_size=1, unique=True).map(
        lambda values: {"rule": "in_set", "column": "s", "values": values}
    ),
    st.sampled_from(["^a", "b$", "^$", "[A-Z]", "\\\\", "'"]).map(
        lambda pattern: {"rule": "matching", "column": "s", "pattern": pattern}
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(ROW, max_size=12), checks=st.lists(st.tuples(CHECK, st.booleans()), min_size=1, max_size=6))
def test_what_spark_finds_is_what_each_row_says(
    spark: SparkSession, data: list[tuple[Any, ...]], checks: list[tuple[dict[str, Any], bool]]
) -> None:
    declared = [
        {**check, "name": f"check_{number}", **({"where": "i > 1"} if has_where else {})}
        for number, (check, has_where) in enumerate(checks)
    ]
    found = violations(measured(spark, rows(*data, ddl="i int, x double, s string"), *declared))
    named = [dict(zip(("i", "x", "s"), row, strict=True)) for row in data]
    assert found == {check["name"]: _brute(check, named) for check in declared}


def profile_of(spark: SparkSession, frame: Callable[[SparkSession], DataFrame]) -> dict[str, ColumnProfile]:
    with in_utc(), isolated(spark) as child:
        found = InstanceMeasuring(child, frame(child), INSTANCE, nobody).measure((), profile=True)
    assert found.records == frame(spark).count() and found.profile is not None
    return {one.name: one for one in found.profile}


def test_a_profile_is_what_arrow_and_pandas_find(spark: SparkSession, tmp_path: Path) -> None:
    import random

    chance = random.Random(7)
    size = 5000
    table = pa.table(
        {
            "id": pa.array(range(size), pa.int64()),
            "n": pa.array([chance.choice([None, chance.randint(-50, 50)]) for _ in range(size)], pa.int32()),
            "x": pa.array([chance.choice([None, math.nan, chance.gauss(10, 3)]) for _ in range(size)], pa.float64()),
            "d": pa.array([Decimal(chance.randint(0, 999)) / 100 for _ in range(size)], pa.decimal128(10, 2)),
            "s.t": pa.array([chance.choice([None, "ä", "b" * 200, "c"]) for _ in range(size)]),
            "t": pa.array([ZONED + timedelta(seconds=at) for at in range(size)], pa.timestamp("us", "UTC")),
            "b": pa.array([at % 4 == 0 for at in range(size)]),
            "deep": pa.array([{"v": at % 10} for at in range(size)]),
            "list": pa.array([[1]] * size),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    found = profile_of(spark, lambda session: session.read.parquet(str(tmp_path)))
    assert [*found] == ["id", "n", "x", "d", "s.t", "t", "b", "deep.v", "list"]
    assert {name: one.nulls for name, one in found.items() if name != "deep.v"} == {
        name: table[name].null_count for name in table.column_names if name != "deep"
    }
    numbers = table["x"].to_pandas().replace([math.nan], None).dropna().astype(float)
    assert found["x"].nans == pc.sum(pc.is_nan(table["x"])).as_py()
    assert (found["x"].min, found["x"].max) == (numbers.min(), numbers.max())
    assert found["x"].mean == pytest.approx(numbers.mean())
    for share, value in zip(QUANTILES, found["x"].quantiles or (), strict=True):
        assert abs((numbers <= value).mean() - share) < 0.01
    assert (found["n"].min, found["n"].max) == (pc.min(table["n"]).as_py(), pc.max(table["n"]).as_py())
    assert found["n"].mean == pytest.approx(pc.mean(table["n"]).as_py())
    for name in ("id", "n", "d", "s.t"):
        assert found[name].distinct == pytest.approx(pc.count_distinct(table[name]).as_py(), rel=0.15)
    assert (found["d"].min, found["d"].max) == (str(pc.min(table["d"]).as_py()), str(pc.max(table["d"]).as_py()))
    assert (found["s.t"].min, found["s.t"].max) == ("b" * 100, "ä")
    assert (found["t"].min, found["t"].max) == (
        ZONED.isoformat(),
        (ZONED + timedelta(seconds=size - 1)).isoformat(),
    )
    assert (found["b"].mean, found["b"].min, found["deep.v"].mean) == (0.25, False, 4.5)
    assert found["list"] == ColumnProfile("list", "array", 0)


def test_a_profile_of_nothing_and_of_what_is_not_finite(spark: SparkSession) -> None:
    found = profile_of(spark, rows())
    assert found["x.y"] == ColumnProfile("x.y", "double", 0, 0, distinct=0)
    some = profile_of(spark, rows(*SOME))
    assert (some["x.y"].max, some["x.y"].mean, some["x.y"].nans) == ("inf", "inf", 1)
    assert some["n"].max == "2013-01-02 23:30:00" and some["day"].min == "1600-01-01"
    assert StructType.fromDDL(DDL).names == [*some]


@pytest.mark.parametrize("schema", RIGHT)
def test_types_are_the_same_from_the_text_of_a_schema_and_from_spark(spark: SparkSession, schema: str) -> None:
    with isolated(spark) as child:
        assert row_type(schema) == spark_type(child.createDataFrame([], StructType.fromDDL(schema)).schema)


def test_data_that_cannot_be_read_is_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"PAR1 no parquet PAR1")

    def frame(child: SparkSession) -> DataFrame:
        return child.read.schema("id int").parquet(str(tmp_path))

    with in_utc(), isolated(spark) as child, pytest.raises(UnreadableDataError, match="the data cannot be read"):
        InstanceMeasuring(child, frame(child), INSTANCE, nobody).measure((), profile=True)
