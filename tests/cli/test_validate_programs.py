"""``falcon validate`` finds what is wrong with the programs of workflows."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from falcon_assets.surface.cli.validate import validate

DEFINITIONS = """
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "local[1]"}}}}
properties: {{of_cluster: "1"}}
---
kind: process
name: p
frequency: hours(1)
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
workflow: {workflow}
properties: {{threshold: "15", a.b: "1"}}
"""


def said(folder: Path, workflow: str, file: str, text: str, *options: str) -> tuple[int, list[str]]:
    (folder / "a.yaml").write_text(DEFINITIONS.format(workflow=workflow))
    (folder / file).write_text(text)
    done = CliRunner().invoke(validate, [str(folder), *options])
    return done.exit_code, done.output.replace(f"{folder}/", "").splitlines()


def test_sql(tmp_path: Path) -> None:
    workflow = "{engine: spark-sql, path: w.sql}"
    sql = "SELECT :threshold, :of_cluster, :nominal_time"
    assert said(tmp_path, workflow, "w.sql", sql) == (0, ["1 cluster, 0 feeds, 1 process: no problems"])
    assert said(tmp_path, workflow, "w.sql", "SELECT 1\n + :tresh") == (
        1,
        [
            "w.sql:2: there is no parameter :tresh (did you mean threshold?); the parameters are :nominalTime, "
            ":nominal_time, :of_cluster, :threshold",
            "     + :tresh",
            "       ^",
            "1 problem in the entity definitions",
        ],
    )
    warned = ["w.sql:1: warning: there is no input and no view 'x'; the inputs are none", "    SELECT * FROM x"]
    assert said(tmp_path, workflow, "w.sql", "SELECT * FROM x")[0] == 0
    assert said(tmp_path, workflow, "w.sql", "SELECT * FROM x")[1][:2] == warned
    assert said(tmp_path, workflow, "w.sql", "SELECT * FROM x", "--strict")[0] == 1


def test_python(tmp_path: Path) -> None:
    code, lines = said(tmp_path, "{engine: pyspark, path: w.py}", "w.py", "def compute(): pass\n")
    assert (code, lines[0]) == (1, "w.py:1: there is no function run(spark, inputs, instance) in it")
    code, lines = said(tmp_path, "{engine: spark-submit, path: w.py}", "w.py", "x = 1\ny = (\n")
    assert (code, lines[0]) == (1, "w.py:2: not Python: '(' was never closed")


def test_what_only_the_parser_does_not_understand_is_no_problem_with_strict(tmp_path: Path) -> None:
    workflow = "{engine: spark-sql, path: w.sql}"
    code, lines = said(tmp_path, workflow, "w.sql", "SELECT a b c FROM VALUES (1) AS t(a)", "--strict")
    assert (code, lines[-1]) == (0, "1 cluster, 0 feeds, 1 process: no problems, 1 warning")
    assert lines[0].startswith("w.sql:1: warning: this may be no SQL that Spark understands near 'c'")


def test_schemas(tmp_path: Path) -> None:
    feed = """---
kind: feed
name: raw
frequency: hours(1)
format: json
schema: "year int, month itn"
locations: {data: "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""
    (tmp_path / "feeds.yaml").write_text(feed)
    code, lines = said(tmp_path, "{engine: spark-sql, path: w.sql}", "w.sql", "SELECT 1")
    assert (code, lines[0]) == (
        1,
        "feeds.yaml:6: schema: not a Spark schema: month has the type 'itn', which Spark does not know "
        "(did you mean int?)",
    )
