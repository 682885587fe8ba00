"""What works and surprises: the definitions load, and those who ask are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import InvalidDefinitionsError
from tests.catalog.definition_files import FILES, load, problems, write

SLA = ("feeds.yaml", "name: raw\n", "name: raw\nsla: {low: hours(2), high: days(91)}\n")
SLA_WARNING = (
    "feeds.yaml:3: warning: sla.high: days(91) is longer than retention.limit on cluster 'primary', days(90): an "
    "instance is evicted before"
)
START = (
    "processes.yaml",
    "name: hourly\n",
    "name: hourly\nsla: {should_start_in: hours(7), should_end_in: hours(8)}\n",
)
START_WARNING = (
    "processes.yaml:3: warning: sla.should_start_in: hours(7) is longer than the timeout, 6 x hours(1): an instance "
    "times out before"
)


def with_changes(*changes: tuple[str, str, str]) -> dict[str, str]:
    files = dict(FILES)
    for file, old, new in changes:
        assert files[file].count(old) == 1
        files[file] = files[file].replace(old, new)
    return files


def warnings(root: Path, store: EntityStore) -> list[str]:
    return [str(warning).replace(f"{root}/", "") for warning in store.warnings]


SHORT = (
    "feeds.yaml",
    """  data: /delays/${YEAR}/${MONTH}/${DAY}/${HOUR}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
""",
)
SHORT_WARNING = (
    "processes.yaml:10: warning: outputs[0].instance: instances %s do not run on cluster 'primary': output 'out' lies "
    "outside the validity of feed 'delays' there, %s"
)


def delays_live(start: str, end: str) -> tuple[str, str, str]:
    life = f"validity: {{start: {start}, end: {end}}}"
    return *SHORT, SHORT[1].replace("validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}", life)


CASES = {
    "none": ([], []),
    "sla_beyond_retention": ([SLA], [SLA_WARNING]),
    "sla_of_a_cluster_beyond_retention": (
        [
            SLA,
            (
                "feeds.yaml",
                "    retention: {limit: days(90)}\n",
                "    retention: {limit: days(90)}\n    sla: {low: days(1), high: days(92)}\n",
            ),
        ],
        [SLA_WARNING.replace("yaml:3", "yaml:14").replace("sla.high", "clusters[0].sla.high").replace("91", "92")],
    ),
    "sla_equal_to_retention": ([(*SLA[:2], SLA[2].replace("days(91)", "days(90)"))], []),
    "start_beyond_the_timeout": ([START], [START_WARNING]),
    "start_beyond_a_declared_timeout": (
        [START, ("processes.yaml", "workflow:", "timeout: hours(3)\nworkflow:")],
        [START_WARNING.replace("6 x hours(1)", "hours(3)")],
    ),
    "start_equal_to_the_timeout": ([START, ("processes.yaml", "workflow:", "timeout: hours(7)\nworkflow:")], []),
    "outputs_that_start_later": (
        [delays_live("2013-02-01T00:30Z", "2014-01-01T00:00Z")],
        [SHORT_WARNING % ("before 2013-02-01T01:00Z", "2013-02-01T00:30Z to 2014-01-01T00:00Z")],
    ),
    "outputs_that_start_later_and_end_earlier": (
        [delays_live("2013-02-01T00:00Z", "2013-12-01T00:00Z")],
        [
            SHORT_WARNING
            % (
                "before 2013-02-01T00:00Z and from 2013-12-01T00:00Z on",
                "2013-02-01T00:00Z to 2013-12-01T00:00Z",
            )
        ],
    ),
    "outputs_that_live_longer": ([delays_live("2012-02-01T00:00Z", "2024-12-01T00:00Z")], []),
    "by_file_and_line": ([START, SLA], [SLA_WARNING, START_WARNING]),
}


BATCH = ("processes.yaml", "{engine: spark-sql, path: hourly.sql}", "{engine: pyspark, path: hourly.sql, batch: true}")
SCHEMA = ("feeds.yaml", "name: raw\n", "name: raw\nschema: a int\n")
PARQUET = ("feeds.yaml", "name: delays\n", "name: delays\nformat: parquet\n")
ALONE = "processes.yaml:11: warning: workflow.batch: instances are computed one by one: "
CASES |= {
    "a_batch_without_schema": (
        [BATCH, PARQUET],
        [f"{ALONE}its input raw declares no schema, so each instance may have other columns"],
    ),
    "a_batch_into_text": (
        [BATCH, SCHEMA, (PARQUET[0], PARQUET[1], PARQUET[2].replace("parquet", "csv"))],
        [f"{ALONE}its output delays is neither in Parquet nor in ORC"],
    ),
    "a_batch_of_one": ([BATCH, SCHEMA, PARQUET], [f"{ALONE}only one of them may run at once (parallel)"]),
    "a_batch": ([BATCH, SCHEMA, PARQUET, ("processes.yaml", "workflow:", "parallel: 8\nworkflow:")], []),
}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_warnings(tmp_path: Path, changes: list[tuple[str, str, str]], expected: list[str]) -> None:
    assert warnings(tmp_path, load(tmp_path, with_changes(*changes))) == expected


def test_a_colo_keeps_them(tmp_path: Path) -> None:
    assert warnings(tmp_path, load(tmp_path, with_changes(SLA)).in_colo("west")) == [SLA_WARNING]


def test_strict_makes_them_problems(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinitionsError) as caught:
        load_entities(write(tmp_path, with_changes(SLA, START)), strict=True)
    assert str(caught.value).splitlines()[-1] == "2 problems in the entity definitions"
    assert str(caught.value.problems[0]).endswith(SLA_WARNING.replace("warning: ", ""))


def test_beside_problems(tmp_path: Path) -> None:
    files = with_changes(SLA, START, ("feeds.yaml", "type: source", "type: sauce"))
    files["other.yaml"] = FILES["clusters.yaml"].partition("---")[0].replace("primary", "p2", 1).replace("east", "1.5")
    assert problems(tmp_path, files) == [
        "feeds.yaml:11: clusters[0].type: 'sauce' is not legal (did you mean 'source'?); legal: source, target",
        'other.yaml:3: colo: 1.5 is not a text: write "1.5" in quotes',
        START_WARNING,
    ]
    with pytest.raises(InvalidDefinitionsError, match=r"\n2 problems and 1 warning in the entity definitions$"):
        load_entities(tmp_path)
