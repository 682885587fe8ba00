"""Problems of declared checks that can be seen without the data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.compute.engines.computing.sql_mistakes import sql_mistakes
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.feed import Feed
from falcon_assets.model.quality_check import Path, QualityCheck
from falcon_assets.model.quality_rules import Matching, SqlQuery
from falcon_assets.model.spark_schema import SparkType, row_type
from falcon_assets.model.sql_columns import find_column
from falcon_assets.model.table_uri import TableUri

VIEW = "data"
_WHERE = "SELECT * FROM data WHERE "


def check_checks(definitions: Definitions) -> Iterator[Problem]:
    """Names that two checks have, columns that a declared schema does not have, bounds that do not fit, and feeds."""
    for feed in definitions.feeds.values():
        yield from _same_names(feed)
        yield from _holding(definitions, feed)
        row = declared_row(feed.entity)
        for number, check in enumerate(feed.entity.checks):
            wrong = list(_unknown_feeds(definitions, feed, check))
            if row is not None:
                wrong += _unknown_columns(check, row) or _misfits(check, row)
            for path, message in wrong:
                yield feed.problem(("checks", number, *path), message)


def _holding(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    if feed.entity.on_error != "hold":
        return
    if not any(one.severity == "error" for one in feed.entity.checks):
        yield feed.warning(("on_error",), "nothing is held, as no check has severity: error")
    elif all(
        one.feed != feed.entity.name for process in definitions.processes.values() for one in process.entity.outputs
    ) and not any(one.import_ and one.import_.source.path is None for one in feed.entity.clusters):
        yield feed.warning(("on_error",), "nothing is held, as no process writes it: what lands is checked afterwards")
    for process in definitions.processes.values():
        workflow = process.entity.workflow
        if workflow.spark == "none" and any(one.feed == feed.entity.name for one in process.entity.outputs):
            why = f"checks run on Spark: runs of process {process.entity.name!r} start it, which its engine "
            yield feed.warning(("on_error",), f"{why}{workflow.engine} does not need")


def declared_row(feed: Feed) -> SparkType | None:
    """The columns of its data by the declared schema, with its partitions; None: they are not known."""
    row = row_type(feed.schema_) if feed.schema_ is not None else None
    if row is None:
        return None
    known = {name.lower() for name, _ in row.fields}
    tables = [one for one in (feed.table, *(entry.table for entry in feed.clusters)) if one is not None]
    keys = [key for table in tables for key, _ in TableUri.parse(table.uri).keys]
    others = dict.fromkeys(name for name in (*feed.partitions, *keys) if name.lower() not in known)
    return SparkType("struct", (*row.fields, *((name, SparkType("string")) for name in others)))


def _same_names(feed: Declared[Feed]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, check in enumerate(feed.entity.checks):
        other = first.setdefault(check.title.lower(), number)
        if other != number:
            path: Path = ("checks", number, "name") if check.name else ("checks", number)
            message = f"checks[{other}] has the name {check.title!r}, too: give one of them another name"
            yield feed.problem(path, message)


def _unknown_feeds(definitions: Definitions, feed: Declared[Feed], check: QualityCheck) -> Iterator[tuple[Path, str]]:
    for path, name in check.feeds_read():
        other = definitions.feeds.get(name)
        if other is None:
            if not definitions.is_unparsed("feed", name):
                yield path, unknown_word("feed", name, tuple(definitions.feeds))
            continue
        lacking = [entry.name for entry in feed.entity.clusters if other.entity.on(entry.name) is None]
        if lacking:
            yield path, f"feed {name!r} is not on cluster {lacking[0]!r}, where this feed is"


def _unknown_columns(check: QualityCheck, row: SparkType) -> list[tuple[Path, str]]:
    found = []
    for path, name in check.columns_read():
        try:
            find_column(row, name)
        except ExpressionError as error:
            found.append((path, f"{error} in the schema"))
    return found


def _misfits(check: QualityCheck, row: SparkType) -> list[tuple[Path, str]]:
    try:
        check.aggregates(row)
    except ExpressionError as error:
        return [((), str(error))]
    return []


def check_sql(definitions: Definitions) -> Iterator[Problem]:
    """SQL and patterns that Spark may not understand; brackets and quotes are certain, all else is a warning."""
    for feed in definitions.feeds.values():
        for number, check in enumerate(feed.entity.checks):
            path = ("checks", number)
            if check.where is not None:
                yield from _mistakes(feed, (*path, "where"), _WHERE + check.where)
            if isinstance(check, SqlQuery):
                yield from _mistakes(feed, (*path, "query"), check.query)
            if isinstance(check, Matching):
                try:
                    re.compile(check.pattern)
                except re.error as error:
                    said = f"this may be no regular expression that Java understands: {error}"
                    yield replace(feed.warning((*path, "pattern"), said), is_doubt=True)


def _mistakes(feed: Declared[Feed], path: Path, sql: str) -> Iterator[Problem]:
    for one in sql_mistakes(sql, [VIEW], []):
        problem = feed.problem(path, one.message)
        yield replace(problem, is_warning=not one.is_certain, is_doubt=one.is_doubt)
