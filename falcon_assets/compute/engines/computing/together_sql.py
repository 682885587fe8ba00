"""Decides whether the SQL of a workflow can be computed for many instances by one query, and writes that query.

Each row of an input knows the instances that it belongs to. A lateral join applies the SQL to each row of a table of
instances; in it every input is a common table expression with the rows of that instance. Nothing here needs Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from falcon_assets.compute.engines.computing.statements import split_statements
from falcon_assets.compute.engines.computing.together_joins import (
    INSTANCES,
    KEY,
    AloneError,
    is_joined,
    joined,
    view_of,
)
from falcon_assets.model.feed import Feed

_OTHER_EACH_TIME = """
    current_date current_time current_timestamp curdate input_file_block_length input_file_block_start input_file_name
    java_method localtimestamp monotonically_increasing_id now rand randn random randstr reflect shuffle
    spark_partition_id try_reflect uniform uuid
"""
_BY_ORDER_OF_ROWS = """
    any_value approx_percentile approx_top_k array_agg collect_list collect_set first first_value last last_value
    listagg max_by min_by mode percentile_approx string_agg
"""
_WITHOUT_BRACKETS = {"current_date", "current_time", "current_timestamp", "localtimestamp"}


_FORMATS = ("parquet", "orc")
"""Files whose columns and number of rows can be read without Spark."""


_OPENING, _CLOSING = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")
_LAYOUTS = ("basepath", "recursivefilelookup")


@dataclass(frozen=True)
class OrderTerm:
    """A term of the query's ORDER BY: the position (from 0) or the name of a column of its result."""

    column: int | str
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Together:
    """A query that can be computed for many instances.

    Attributes:
        sql: The query of one instance.
        order: Its ORDER BY.
        functions: The names of the functions that it calls.
        results: Where in it the columns of its result are, if each is known to be one.
        spoken: The query as it was written, and as a parser of SQL writes it, which has to mean the same: ``sql`` was
            made of that. Empty: ``sql`` is as it was written.
    """

    sql: str
    order: tuple[OrderTerm, ...]
    functions: frozenset[str]
    results: tuple[tuple[int, int], ...] = ()
    spoken: tuple[str, ...] = ()

    def of_instance(self, varying: Collection[str]) -> dict[int, str]:
        """The columns of the result that depend on nothing but varying parameters, by position, as SQL.

        Spark does not accept these parameters in the result of an aggregate.
        """
        texts = [self.sql[start:end].strip() for start, end in self.results]
        return {at: _with_columns(one, varying) for at, one in enumerate(texts) if _is_of_instance(one, varying)}

    def query(self, inputs: Collection[str], varying: Collection[str]) -> str:
        """Returns the query for all instances, whose first columns are those of :data:`INSTANCES`.

        Of each input there has to be a view :func:`view_of` with a column :data:`KEY`, and of :data:`INSTANCES` with
        the same, and with a column :func:`column_of` for each of the ``varying`` parameters. Columns that
        :meth:`of_instance` has are computed with the parameters as they are.
        """
        names = dict.fromkeys(name for one in inputs for name in (one, one.replace("-", "_")))
        rows = [
            f"`{name}` AS (SELECT * EXCEPT (`{KEY}`) FROM `{view_of(_own(name, inputs))}` "  # noqa: S608 - names of inputs
            f"WHERE `{KEY}` = {INSTANCES}.`{KEY}`)"
            for name in names
        ]
        sql = _with_columns(self.sql, varying, [self.results[at] for at in self.of_instance(varying)])
        inner = f"WITH {', '.join(rows)} (\n{sql}\n)" if rows else sql
        each = f"LATERAL (\n{inner}\n) AS falcon_result"
        return f"SELECT {INSTANCES}.*, falcon_result.* FROM {INSTANCES}, {each}"  # noqa: S608 - the user's SQL


def column_of(parameter: str) -> str:
    return f"falcon_parameter_{parameter}"


def together(sql: str) -> Together:
    """Returns the query of a file; raises AloneError."""
    from sqlglot import exp

    statements = split_statements(sql)
    if len(statements) != 1:
        raise AloneError("it has several statements")
    text = statements[0].text
    tree = _parsed(text)
    functions = frozenset(_functions(text))
    if unsteady := sorted(functions & {*_OTHER_EACH_TIME.split()}):
        raise AloneError(f"{unsteady[0]} is no function of the inputs alone")
    if unsteady := sorted(functions & {*_BY_ORDER_OF_ROWS.split()}):
        raise AloneError(f"the result of {unsteady[0]} depends on the order of rows")
    for one in tree.walk():
        if why := _refused(one):
            raise AloneError(why)
        if isinstance(one, exp.Limit | exp.Offset | exp.Fetch) and one.parent and not one.parent.args.get("order"):
            raise AloneError("LIMIT without ORDER BY takes any rows")
    order = tuple(_order(tree))
    if not is_joined(tree):
        return Together(text, order, functions, tuple(_results(text, tree)))
    made = joined(tree)
    sql = made.sql(dialect="spark")
    return Together(sql, order, functions, tuple(_results(sql, made)), (text, tree.sql(dialect="spark")))


def why_alone(file: Path, cluster: str, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
    """As :meth:`.Workflow.why_alone`."""
    try:
        together(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return f"{file} cannot be read"
    except AloneError as error:
        return str(error)
    if len(outputs) > 1:
        return "it has several outputs"
    return why_of_feeds(cluster, inputs, outputs)


def why_of_feeds(cluster: str, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
    """As :meth:`.Workflow.why_alone`, as far as feeds are concerned."""
    why = [_why_output(one, cluster) for one in outputs] or ["it has no output"]
    return next(filter(None, (*why, *(_why_input(one, cluster) for one in inputs))), "")


def _why_output(feed: Feed, cluster: str) -> str:
    if feed.table_on(cluster) is not None:
        return f"its output {feed.name} is a table"
    return "" if feed.format in _FORMATS else f"its output {feed.name} is neither in Parquet nor in ORC"


def _why_input(feed: Feed, cluster: str) -> str:
    if feed.table_on(cluster) is not None:
        return f"its input {feed.name} is a table"
    if feed.rollup is not None:
        return f"its input {feed.name} is a roll-up"
    if feed.schema_ is None:
        return f"its input {feed.name} declares no schema, so each instance may have other columns"
    if any(name.lower() in _LAYOUTS for name in feed.options):
        return f"its input {feed.name} says by its options how folders are read"
    return ""


def _own(name: str, inputs: Collection[str]) -> str:
    return name if name in inputs else next(one for one in inputs if one.replace("-", "_") == name)


def _parsed(text: str) -> Any:
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(text, read="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise AloneError("it is SQL that only Spark understands") from None
    if not isinstance(tree, exp.Query):
        raise AloneError("it is no query")
    return tree


def _tokens(text: str) -> Sequence[Any]:
    import sqlglot

    return sqlglot.tokenize(text, read="spark")


def _functions(text: str) -> Iterator[str]:
    """The names that brackets follow, and those that need none; keywords are among them."""
    tokens = _tokens(text)
    for token, following, before in zip(tokens, [*tokens[1:], None], [None, *tokens[:-1]], strict=True):
        name = token.text.lower()
        is_called = following is not None and following.token_type.name == "L_PAREN"
        if is_called and before is not None and before.token_type.name == "DOT":
            raise AloneError(f"{name} may be a function of a user")
        if is_called or name in _WITHOUT_BRACKETS:
            yield name


def _refused(node: Any) -> str:
    """Why Spark would refuse a part of the query in a lateral join, or the order of rows would not be its own."""
    from sqlglot import exp

    why = {
        "it groups in several ways": isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets),
        "it has an UNPIVOT": isinstance(node, exp.Pivot) and bool(node.args.get("unpivot")),
        "it is recursive": isinstance(node, exp.With) and node.recursive,
        "a sample takes any rows": isinstance(node, exp.TableSample),
        "it says itself how rows are distributed": isinstance(node, exp.Sort | exp.Cluster | exp.Distribute),
        "it calls a program": isinstance(node, exp.QueryTransform),
    }
    return next((said for said, is_so in why.items() if is_so), "")


def _order(tree: Any) -> Iterator[OrderTerm]:
    from sqlglot import exp

    while isinstance(tree, exp.Subquery) and not tree.args.get("order"):
        tree = tree.this
    order = tree.args.get("order")
    for one in order.expressions if order else ():
        key = one.this if isinstance(one, exp.Ordered) else one
        is_descending = bool(one.args.get("desc"))
        yield OrderTerm(_column(key, tree), is_descending, bool(one.args.get("nulls_first")))


def _column(key: Any, tree: Any) -> int | str:
    from sqlglot import exp

    if isinstance(key, exp.Literal) and key.is_int:
        return int(key.name) - 1
    results = tree.expressions if isinstance(tree, exp.Select) else []
    for at, one in enumerate(results):
        if one.is_star:  # from here on the positions are not known
            break
        if one.unalias() == key and not (isinstance(key, exp.Column) and not key.table and one.alias):
            return at
    if isinstance(key, exp.Column) and not key.table and key.name.lower() != "all":
        return str(key.name)
    raise AloneError("it orders by what is no column of its result")


def _results(text: str, tree: Any) -> Sequence[tuple[int, int]]:
    """Where the columns of a result are; empty: it is no plain SELECT, or has a ``*``."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or any(one.is_star for one in tree.expressions):
        return ()
    found, depth, start = list[tuple[int, int]](), 0, -1
    for token in _tokens(text):
        kind = token.token_type.name
        if depth == 0 and kind == "SELECT":
            start = token.end + 1
        elif depth == 0 and start >= 0 and kind in ("COMMA", "FROM"):
            found.append((start, token.start))
            start = token.end + 1
            if kind == "FROM":
                start = -1
                break
        depth += (kind in _OPENING) - (kind in _CLOSING)
    if start >= 0:
        found.append((start, len(text)))
    return found if len(found) == len(tree.expressions) else ()


def _is_of_instance(text: str, varying: Collection[str]) -> bool:
    """Whether an expression has varying parameters, and no columns, aggregates and subqueries."""
    import sqlglot
    from sqlglot import exp

    if _with_columns(text, varying) == text:
        return False
    tree = sqlglot.parse_one(f"SELECT {text}", read="spark")
    return not any(tree.find_all(exp.Column, exp.AggFunc, exp.Window, exp.Subquery, exp.Anonymous, exp.Distinct))


def _with_columns(text: str, varying: Collection[str], apart: Collection[tuple[int, int]] = ()) -> str:
    """Replaces ``:name`` by a column of the table of instances, outside of some expressions."""
    tokens = _tokens(text)
    found, at = list[str](), 0
    for colon, name in pairwise(tokens):
        is_parameter = colon.token_type.name == "COLON" and name.start == colon.end + 1 and name.text in varying
        is_apart = any(start <= colon.start < end for start, end in apart)
        if is_parameter and not is_apart and not _follows_a_value(text[: colon.start]):
            found += [text[at : colon.start], f"{INSTANCES}.`{column_of(name.text)}`"]
            at = name.end + 1
    return "".join([*found, text[at:]])


def _follows_a_value(before: str) -> bool:
    """Whether a colon is an operator: ``value:field``, ``value::type``."""
    last = before[-1:]
    return last.isalnum() or last in tuple("_)]`:'\"")
