"""Checks of a SQL workflow without Spark: only brackets, quotes, first words and parameters are certain.

sqlglot parses nearly all of Spark's SQL, but not all: unknown views are warnings, and what it cannot parse remains a
warning even in strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

from falcon_assets.compute.engines.computing.statements import Statement, split_statements
from falcon_assets.model.workflow import Mistake

_LEXER = re.compile(
    r"""
    --[^\n]* | (?<!\w)[rR](?:'[^']*'|"[^"]*") | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*`
  | (?P<comment>/\*) | (?P<quote>['"`]) | (?P<open>[(\[]) | (?P<close>[)\]])
  | (?<![\w)\]`:'"]):(?P<parameter>[A-Za-z_]\w*) | (?P<word>[A-Za-z_]\w*) | .
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_PAIRS = {"(": ")", "[": "]"}
_FIRST_WORDS = """
    add alter analyze begin cache call clear close comment commit create declare delete desc describe dfs drop execute
    explain export fetch for from get grant if import insert iterate leave list load lock loop map merge msck open
    optimize reduce refresh repair repeat replace reset resignal restore revoke rollback select set show signal start
    table truncate uncache unlock unset update use vacuum values while with
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def sql_mistakes(sql: str, views: Collection[str], parameters: Collection[str]) -> Iterator[Mistake]:
    """Yields the mistakes in a file; ``views`` are names of inputs, ``parameters`` the names of ``:name``."""
    found = list(_lexical(sql, parameters))
    yield from found
    if any(one.is_certain for one in found) or "$$" in sql:
        return
    statements = split_statements(sql)
    if not statements:
        yield Mistake(1, "there is no SQL statement in it")
        return
    wrong = [one for statement in statements if (one := _first_word(sql, statement))]
    yield from wrong
    if not wrong:
        yield from _parsed(sql, statements, views)


def _lexical(sql: str, parameters: Collection[str]) -> Iterator[Mistake]:
    opened: list[tuple[str, int]] = []
    at = 0
    while token := _LEXER.match(sql, at):
        start, at = at, token.end()
        if token["comment"]:
            end = _end_of_comment(sql, at)
            if end is None:
                yield _mistake(sql, start, "the comment does not end: write */")
                return
            at = end
        elif quote := token["quote"]:
            yield _mistake(sql, start, f"what is quoted here does not end: there is no second {quote}")
            return
        elif token["open"]:
            opened.append((token[0], start))
        elif token["close"]:
            if not opened or _PAIRS[opened[-1][0]] != token[0]:
                yield _mistake(sql, start, f"there is no bracket that {token[0]} closes")
                return
            opened.pop()
        elif (name := token["parameter"]) and name not in parameters:
            known = ", ".join(f":{one}" for one in sorted(parameters))
            said = f"there is no parameter :{name}{_nearest(name, parameters)}; the parameters are {known}"
            yield _mistake(sql, start, said)
    for bracket, start in opened[-1:]:
        yield _mistake(sql, start, f"the bracket {bracket} is not closed")


def _end_of_comment(sql: str, at: int) -> int | None:
    depth = 1
    for bracket in _BRACKETS.finditer(sql, at):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return None


def _first_word(sql: str, statement: Statement) -> Mistake | None:
    at = 0
    while token := _LEXER.match(statement.text, at):
        at = token.end()
        if token["comment"]:
            at = _end_of_comment(statement.text, at) or len(statement.text)
        elif word := token["word"]:
            if word.lower() in _FIRST_WORDS.split() or statement.text[at:].lstrip()[:1] == ":":  # the label of a script
                return None
            near = _nearest(word.upper(), _FIRST_WORDS.upper().split())
            at = statement.offset + token.start()
            # Extensions may know more words; hardly one that is nearly another.
            return Mistake(_line(sql, at), f"no statement begins with {word}{near}", bool(near), _column(sql, at))
        elif not token[0].isspace() and not token[0].startswith("--"):
            return None
    return None


def _parsed(sql: str, statements: tuple[Statement, ...], views: Collection[str]) -> Iterator[Mistake]:
    import sqlglot
    from sqlglot import exp

    trees: list[tuple[Statement, Any]] = []
    for statement in statements:
        if re.match(r"(?i)begin\b", statement.text):  # a script is many
            return
        try:
            trees.append((statement, sqlglot.parse_one(statement.text, read="spark")))
        except sqlglot.errors.SqlglotError as error:
            first = error.errors[0] if isinstance(error, sqlglot.errors.ParseError) and error.errors else {}
            line = _line(sql, statement.offset) + int(first.get("line") or 1) - 1
            said = _ESCAPES.sub("", str(first.get("description") or error)).splitlines()[0].rstrip(".")
            near = f" near {str(first['highlight'])!r}" if first.get("highlight") else ""
            yield Mistake(
                line, f"this may be no SQL that Spark understands{near}: {said}", is_certain=False, is_doubt=True
            )
            return
    if any(tree is None or tree.find(exp.Command) for _, tree in trees):
        return  # it may make views that nobody sees
    known = {name.lower() for view in views for name in (view, view.replace("-", "_"))}
    for _, tree in trees:
        known |= {one.alias_or_name.lower() for one in tree.find_all(exp.CTE, exp.TableAlias, exp.Lateral)}
        made = (one.this for one in tree.find_all(exp.Create, exp.Cache))
        known |= {one.name.lower() for target in made for one in target.find_all(exp.Table)}
    reported: set[str] = set()
    for statement, tree in trees:
        for table in tree.find_all(exp.Table):
            name = table.name
            is_plain = isinstance(table.this, exp.Identifier) and not table.db and not table.catalog
            if not is_plain or name.lower() in known | reported or name.startswith("__"):
                continue
            reported.add(name.lower())
            place = re.search(rf"(?i)(?<![\w.]){re.escape(name)}(?!\w)", statement.text)
            inputs = ", ".join(sorted(views)) or "none"
            said = f"there is no input and no view {name!r}{_nearest(name, views)}; the inputs are {inputs}"
            at = statement.offset + (place.start() if place else 0)
            yield Mistake(_line(sql, at), said, is_certain=False, column=_column(sql, at))


def _nearest(word: str, known: Collection[str]) -> str:
    close = get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def _mistake(sql: str, at: int, message: str) -> Mistake:
    return Mistake(_line(sql, at), message, column=_column(sql, at))


def _line(sql: str, at: int) -> int:
    return sql.count("\n", 0, at) + 1


def _column(sql: str, at: int) -> int:
    return at - (sql.rfind("\n", 0, at) + 1) + 1
