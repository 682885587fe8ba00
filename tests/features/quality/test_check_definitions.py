"""Declared checks: what is refused, where, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from tests.catalog.definition_files import FILES, load, problems, write

SCHEMA = 'schema: "id bigint, item string, n int, at timestamp, `odd.name ü` double, address struct<city: string>"\n'
DELAYS = "name: delays\n"


def with_checks(checks: str, schema: str = SCHEMA) -> dict[str, str]:
    feeds = FILES["feeds.yaml"].replace(DELAYS, f"{DELAYS}{schema}checks:\n{checks}")
    return {**FILES, "feeds.yaml": feeds}


RIGHT = """\
- {name: enough, rule: row_count, min: 100, severity: error}
- {rule: row_count, last: 7, z_score: 3, severity: warn}
- {rule: not_null, columns: [item], max_share: 0.01}
- {rule: unique, columns: [id, "odd.name ü"]}
- {rule: in_range, column: n, min: 0}
- {rule: in_range, column: at, min: 2013-01-01T00:00Z, max: "2014-01-01"}
- {rule: in_set, column: item, values: [a, "1"]}
- {rule: matching, column: address.city, pattern: "^[A-Z]"}
- {rule: freshness, column: at, within: hours(2)}
- {rule: referential, columns: [id], feed: raw}
- {rule: drift, column: n, max_distance: 0.2}
- {rule: sql, query: "SELECT * FROM data WHERE n < id"}
- {rule: python, function: "package.module:name", suite: full}
- {name: weekend, rule: in_range, column: n, max: 9, where: "weekday(at) > 4"}
"""


def test_right_checks_have_no_problem(tmp_path: Path) -> None:
    checks = RIGHT.replace("row_count, last", "row_count, name: usual, last").replace(
        "column: at, min", "column: at, name: year, min"
    )
    loaded = load(tmp_path, with_checks(checks)).feeds["delays"].checks
    assert [one.title for one in loaded] == [
        *("enough", "usual", "not_null_item", "unique_id_odd_name__", "in_range_n", "year", "in_set_item"),
        *("matching_address_city", "freshness_at", "referential_id", "drift_n", "sql", "python", "weekend"),
    ]
    load_entities(write(tmp_path, with_checks(checks)), programs=True, strict=True)


CASES = {
    "unknown_rule": (
        "- {rule: not_nul, columns: [item]}",
        "checks[0].rule: unknown rule 'not_nul' (did you mean 'not_null'?); legal: in_range, in_set, matching, "
        "freshness, drift, not_null, unique, referential, row_count, sql, python",
    ),
    "unknown_key": (
        "- {rule: not_null, column: [item]}",
        "checks[0].column: unknown key 'column' (did you mean 'columns'?)",
    ),
    "no_columns": ("- {rule: unique, columns: []}", "checks[0].columns: must not be empty"),
    "no_bounds": ("- {rule: in_range, column: n}", "checks[0]: in_range needs min, max or both"),
    "bounds_in_the_wrong_order": (
        "- {rule: in_range, column: n, min: 5, max: 4}",
        "checks[0]: min 5 must not be larger than max 4",
    ),
    "row_count_without_anything": ("- {rule: row_count}", "checks[0]: row_count needs min, max or last"),
    "row_count_below_zero": ("- {rule: row_count, min: -1}", "checks[0].min: -1 is not legal: 0 or more"),
    "last_without_a_measure": (
        "- {rule: row_count, last: 3}",
        "checks[0]: last needs percent or z_score, and these need last",
    ),
    "share_above_one": (
        "- {rule: not_null, columns: [n], max_share: 1.5}",
        "checks[0].max_share: 1.5 is not legal: 1 at most",
    ),
    "bound_that_is_a_list": (
        "- {rule: in_range, column: n, min: [1]}",
        "checks[0].min: must be a number, a text or a time",
    ),
    "bound_without_end": ("- {rule: in_range, column: n, min: .inf}", "inf is not comparable: write a finite number"),
    "null_among_the_values": ("- {rule: in_set, column: n, values: [null]}", "what is null passes in any case"),
    "illegal_name": (
        "- {name: a-b, rule: row_count, min: 1}",
        "checks[0].name: 'a-b' is not legal: write a letter, then letters, digits or '_', 100 characters at most",
    ),
    "the_name_of_another_check": (
        "- {name: sla, rule: row_count, min: 1}",
        "checks[0].name: 'sla' is the name of the check of SLAs: choose another",
    ),
    "two_with_one_name": (
        "- {rule: in_range, column: n, min: 1}\n- {rule: in_range, column: N, max: 1}",
        "checks[1]: checks[0] has the name 'in_range_N', too: give one of them another name",
    ),
    "unknown_column": (
        "- {rule: not_null, columns: [id, itm]}",
        "checks[0].columns[1]: there is no column 'itm' (did you mean 'item'?) in the schema",
    ),
    "unknown_field": (
        "- {rule: matching, column: address.cty, pattern: x}",
        "checks[0].column: there is no column 'address.cty' (did you mean 'city'?) in the schema",
    ),
    "bound_of_another_type": (
        "- {rule: in_range, column: n, min: abc}",
        "checks[0]: 'abc' is not comparable with n, which is of type int",
    ),
    "number_for_a_time": (
        "- {rule: in_range, column: at, min: 3}",
        "checks[0]: 3 is not comparable with at, which is of type timestamp",
    ),
    "rule_of_another_type": (
        "- {rule: freshness, column: n, within: hours(1)}",
        "checks[0]: n is of type int: freshness is for columns of timestamp, timestamp_ntz, date",
    ),
    "unknown_feed": (
        "- {rule: referential, columns: [id], feed: rwa}",
        "checks[0].feed: unknown feed 'rwa' (did you mean 'raw'?)",
    ),
    "keys_of_another_number": (
        "- {rule: referential, columns: [id], keys: [a, b], feed: raw}",
        "checks[0]: keys must have as many names as columns",
    ),
    "where_beside_a_query": (
        '- {rule: sql, query: "SELECT 1", where: "true"}',
        "checks[0]: the query has a WHERE of its own: remove where",
    ),
    "function_that_is_none": (
        "- {rule: python, function: module}",
        "checks[0].function: 'module' is not legal: write package.module:name",
    ),
}


@pytest.mark.parametrize(("checks", "message"), CASES.values(), ids=list(CASES))
def test_wrong_checks_are_named_with_their_line(tmp_path: Path, checks: str, message: str) -> None:
    (found,) = problems(tmp_path, with_checks(checks + "\n"))
    line = 22 if message.startswith("checks[1]") else 21
    assert found.startswith(f"feeds.yaml:{line}: ") and message in found


def test_columns_of_partitions_are_known_and_without_a_schema_nobody_knows(tmp_path: Path) -> None:
    check = "- {rule: not_null, columns: [carrier, nobody]}\n"
    declared = with_checks(check, f"{SCHEMA}partitions: [carrier]\n")
    assert problems(tmp_path, declared) == [
        "feeds.yaml:22: checks[0].columns[1]: there is no column 'nobody'; there is: id, item, n, at, odd.name ü, "
        "address, carrier in the schema"
    ]
    assert load(tmp_path, with_checks(check, "")).feeds["delays"].checks


SQL = {
    "bracket": ('- {rule: row_count, min: 1, where: "n > (1"}', False, "the bracket ( is not closed"),
    "quote": ('- {rule: sql, query: "SELECT \'x"}', False, "there is no second '"),
    "doubt": ('- {rule: row_count, min: 1, where: "n not 3"}', True, "this may be no SQL that Spark understands"),
    "view": ('- {rule: sql, query: "SELECT * FROM dat"}', True, "no input and no view 'dat' (did you mean data?)"),
    "pattern": ('- {rule: matching, column: item, pattern: "(a"}', True, "no regular expression that Java understands"),
}


@pytest.mark.parametrize(("check", "is_warning", "message"), SQL.values(), ids=list(SQL))
def test_sql_is_parsed_on_request(tmp_path: Path, check: str, is_warning: bool, message: str) -> None:
    root = write(tmp_path, with_checks(check + "\n"))
    assert load_entities(root).warnings == ()
    try:
        (found,) = load_entities(root, programs=True).warnings
    except InvalidDefinitionsError as error:
        (found,) = error.problems
    assert (found.is_warning, found.position.line, message in found.message) == (is_warning, 21, True), found.message
