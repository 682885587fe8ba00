"""Computation of the engine ``spark-sql``: a file of SQL statements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.engines.computing.statements import Statement, split_statements
from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain
from falcon_assets.errors import WorkflowError

_PARAMETER = re.compile(r":([A-Za-z_]\w*)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LINE = re.compile(r"\(?\bline (\d+),? pos(?:ition)? \d+")


def compute_sql(
    spark: SparkSession, inputs: Mapping[str, DataFrame], task: WorkflowTask, file: str
) -> dict[str, DataFrame]:
    """Runs the statements of the file in order.

    Inputs are temporary views named like the inputs; an input with ``-`` in its name also has a view with ``_``
    (```raw-flights``` and ``raw_flights``). ``:nominal_time`` (a TIMESTAMP) and ``:property`` (a STRING), for every
    property whose name is an identifier, are bound parameters: Spark never takes their value for SQL text.
    With one output, the last statement is its query. With several, the statements create a temporary view for each,
    named like the output, with ``-`` or ``_``. Without outputs, queries are computed for their effect.

    Raises:
        WorkflowError: names the file, and the line if Spark reports it.
    """
    path = task.entity_root / file
    sql = source_of(path)
    statements = split_statements(sql)
    if not statements:
        raise WorkflowError(f"{path}: there is no SQL statement in it")
    for name in (name.replace("-", "_") for name in inputs if "-" in name):
        if name not in inputs:
            inputs[next(own for own in inputs if own.replace("-", "_") == name)].createOrReplaceTempView(name)
    for name, frame in inputs.items():
        frame.createOrReplaceTempView(f"`{name}`")
    values = bound_values(task)
    is_effect = not task.outputs
    frame = [_execute(spark, statement, values, path, sql, to_the_end=is_effect) for statement in statements][-1]
    if is_effect:
        return {}
    if len(task.outputs) > 1:
        return {data.name: _view(spark, data.name, path) for data in task.outputs}
    if not frame.columns:
        last = _line_of(sql, statements[-1].offset)
        raise WorkflowError(f"{path}:{last}: the last statement must be a query; its rows are the output")
    return {task.outputs[0].name: frame}


def bound_values(task: WorkflowTask) -> dict[str, str | datetime]:
    """The values of the parameters by name."""
    found: dict[str, str | datetime] = {
        name: value for name, value in task.properties.items() if _IDENTIFIER.fullmatch(name)
    }
    return {**found, "nominal_time": task.nominal}


def source_of(path: Path) -> str:
    """The text of a workflow's file; raises WorkflowError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkflowError(f"{path}: the workflow's file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WorkflowError(f"{path}: the workflow's file is not UTF-8 text") from error


def _execute(
    spark: SparkSession,
    statement: Statement,
    values: Mapping[str, str | datetime],
    path: Path,
    sql: str,
    *,
    to_the_end: bool,
) -> DataFrame:
    used = {name: values[name] for name in _PARAMETER.findall(statement.text) if name in values}
    try:
        frame = spark.sql(statement.text, args=used) if used else spark.sql(statement.text)
        if to_the_end and frame.columns:  # Spark runs a command at once, and a query when somebody wants its rows
            frame.write.format("noop").mode("overwrite").save()
        return frame
    except SPARK_ERRORS as error:
        line = _line_of(sql, statement.offset) + _line_within(error) - 1
        raise WorkflowError(f"{path}:{line}: {_explain(error, values)}") from error


def _explain(error: Exception, values: Mapping[str, object]) -> str:
    if isinstance(error, PySparkException) and condition_of(error) == "UNBOUND_SQL_PARAMETER":
        name = (error.getMessageParameters() or {}).get("name", "")
        known = ", ".join(f":{key}" for key in sorted(values))
        return f"there is no parameter :{name.strip('`')}; the parameters are {known}"
    return explain(error)


def _line_within(error: Exception) -> int:
    match = _LINE.search(str(error))
    return int(match[1]) if match else 1


def _line_of(sql: str, offset: int) -> int:
    return sql.count("\n", 0, offset) + 1


def _view(spark: SparkSession, name: str, path: Path) -> DataFrame:
    for candidate in dict.fromkeys((name, name.replace("-", "_"))):
        try:
            frame = spark.table(f"`{candidate}`")
            frame.schema  # noqa: B018 - Connect looks the view up only when it must
        except PySparkException as error:
            if condition_of(error) != "TABLE_OR_VIEW_NOT_FOUND":
                raise WorkflowError(f"{path}: output {name!r}: {explain(error)}") from error
        else:
            return frame
    raise WorkflowError(
        f"{path}: with several outputs it must create a temporary view for each, and there is none for {name!r}: "
        f"write CREATE TEMPORARY VIEW `{name}` AS SELECT ..."
    )
