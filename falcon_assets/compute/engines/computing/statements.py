"""Splits a SQL file into its statements, as Spark's own command line does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    --[^\n]*                        # a comment to the end of the line
  | (?P<open>/\*)                   # a bracketed comment; they nest
  | (?<!\w)[rR](?:'[^']*'|"[^"]*")  # a raw string has no escapes
  | '(?:\\.|[^'\\])*'
  | "(?:\\.|[^"\\])*"
  | `[^`]*`
  | (?P<end>;)
  | (?P<text>[^\s;])
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_SCRIPT = re.compile(r"BEGIN\b(?!\s+TRANSACTION)", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    text: str
    offset: int


def split_statements(sql: str) -> tuple[Statement, ...]:
    """Returns the statements in order, without empty statements and lone comments.

    Semicolons in strings, quoted names and comments do not count. A SQL script (``BEGIN ... END``) is one statement.
    """
    return tuple(_statements(sql))


def _statements(sql: str) -> Iterator[Statement]:
    start = at = 0
    filled = False
    while token := _TOKEN.search(sql, at):
        at = token.end()
        if token["open"]:
            at = _end_of_comment(sql, at)
        elif token["end"]:
            if filled:
                yield _statement(sql, start, token.start())
            start, filled = at, False
        elif not token[0].startswith("--"):
            if not filled and _SCRIPT.match(sql, token.start()):
                yield _statement(sql, start, len(sql))
                return
            filled = True
    if filled:
        yield _statement(sql, start, len(sql))


def _statement(sql: str, start: int, end: int) -> Statement:
    text = sql[start:end]
    return Statement(text.strip(), start + len(text) - len(text.lstrip()))


def _end_of_comment(sql: str, at: int) -> int:
    depth = 1
    for bracket in _BRACKETS.finditer(sql, at):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return len(sql)
