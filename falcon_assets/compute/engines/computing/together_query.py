"""Computes many instances of a ``spark-sql`` workflow by one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from falcon_assets.compute.engines.computing.sql import bound_values, source_of
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together import Example, compute_all, rows_of, table
from falcon_assets.compute.engines.computing.together_files import BatchRows
from falcon_assets.compute.engines.computing.together_joins import INSTANCES, KEY, AloneError, view_of
from falcon_assets.compute.engines.computing.together_sql import OrderTerm, Together, column_of, together
from falcon_assets.compute.spark.failures import explain


def compute_together(tasks: Sequence[WorkflowTask], file: str, example: Example) -> list[WorkflowResult]:
    """As :func:`.compute_all`."""
    query = together(source_of(tasks[0].entity_root / file))

    def rows_by(child: SparkSession) -> Mapping[str, BatchRows]:
        frame = _frame(child, tasks, query)
        return {tasks[0].outputs[0].name: BatchRows(frame, tuple(_term(one, frame.columns[1:]) for one in query.order))}

    return compute_all(tasks, example, rows_by)


def _frame(child: SparkSession, tasks: Sequence[WorkflowTask], query: Together) -> DataFrame:
    """The rows of all instances, behind the number of the instance."""
    own = {row["function"].rpartition(".")[2].lower() for row in child.sql("SHOW USER FUNCTIONS").collect()}
    if called := sorted(own & query.functions):
        raise AloneError(f"{called[0]} is a function of a user")
    values = [bound_values(task) for task in tasks]
    varying = [name for name, value in values[0].items() if any(one[name] != value for one in values)]
    for data in zip(*(task.inputs for task in tasks), strict=True):
        rows = rows_of(child, data, range(len(tasks)), "int")
        for name in dict.fromkeys((data[0].name, data[0].name.replace("-", "_"))):
            rows.createOrReplaceTempView(f"`{view_of(name)}`")
            if query.spoken:
                rows.drop(KEY).createOrReplaceTempView(f"`{name}`")
    _instances(child, values, varying).createOrReplaceTempView(INSTANCES)
    sql = query.query([one.name for one in tasks[0].inputs], varying)
    own_columns = query.of_instance(varying)
    fixed = {name: value for name, value in values[0].items() if f":{name}" in sql}
    try:
        _require_alike(child, query.spoken, values[0])
        frame = child.sql(sql, args=fixed) if fixed else child.sql(sql)
        names = frame.columns[1 + len(varying) :]
        if len(set(map(str.lower, frame.columns))) < len(frame.columns):
            raise AloneError("the names of its columns are not unique")
        results = [
            sf.expr(own_columns[at]).alias(name) if at in own_columns else sf.col(f"`{name}`")
            for at, name in enumerate(names)
        ]
        frame = frame.alias(INSTANCES).select(KEY, *results)
        frame.schema  # noqa: B018 - Connect looks at it only then
    except (AnalysisException, ParseException) as error:
        raise AloneError(f"Spark refuses it for many instances at once: {explain(error)}") from error
    return frame


def _require_alike(child: SparkSession, spoken: Sequence[str], values: Mapping[str, Any]) -> None:
    used = {name: value for name, value in values.items() if any(f":{name}" in one for one in spoken)}
    frames = [child.sql(one, args=used) if used else child.sql(one) for one in spoken]
    if any(not _is_same(one, frames[0]) or one.columns != frames[0].columns for one in frames[1:]):
        raise AloneError("it has SQL that only Spark understands, or WITH on Connect, beside outer joins or subqueries")


def _is_same(one: DataFrame, other: DataFrame) -> bool:
    """Whether two queries mean the same; where they have WITH, whose queries have numbers, Connect cannot know it."""
    if (is_same := one.sameSemantics(other)) or not isinstance(one, ClassicFrame):
        return is_same
    plans: list[Any] = [frame._jdf.queryExecution().optimizedPlan() for frame in (one, other)]
    return bool(plans[0].sameResult(plans[1]))


def _instances(child: SparkSession, values: Sequence[Mapping[str, Any]], varying: Sequence[str]) -> DataFrame:
    def said(value: Any) -> str:
        return value if isinstance(value, str) else value.isoformat()

    rows = [
        {KEY: number, **{column_of(name): said(one[name]) for name in varying}} for number, one in enumerate(values)
    ]
    types = {name: "string" if isinstance(values[0][name], str) else "timestamp" for name in varying}
    columns = "".join(f", {column_of(name)}: {kind}" for name, kind in types.items())
    return table(child, rows, f"{KEY}: int{columns}")


def _term(one: OrderTerm, columns: Sequence[str]) -> Column:
    known = {name.lower(): name for name in columns}
    if isinstance(one.column, int):
        found = columns[one.column] if 0 <= one.column < len(columns) else None
    else:
        found = known.get(one.column.lower())
    if found is None:
        raise AloneError("it orders by what is no column of its result")
    column = sf.col(f"`{found}`")
    if one.is_descending:
        return column.desc_nulls_first() if one.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if one.nulls_first else column.asc_nulls_last()
