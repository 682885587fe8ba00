"""Spark's DDL of schemas, as far as it can be read without Spark: names of columns, types, brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`(?:[^`]|``)*`|[^\W\d]\w*|\d\w*)|(?P<text>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")|(?P<mark>\S))",
    re.DOTALL,
)
_PLAIN = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("date", "timestamp", "timestamp_ltz", "timestamp_ntz", "string", "binary", "void", "interval", "variant", "time"),
    *("char", "character", "varchar", "decimal", "dec", "numeric", "geometry", "geography"),
)
_NESTED = ("array", "map", "struct")
_NEEDS_LENGTH = ("char", "character", "varchar")
_AFTER_TYPE = (
    "not",
    "null",
    "comment",
    "default",
    "collate",
    "generated",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "with",
    "without",
)
"""Words that may follow a type: Spark reads them, and nothing here has to."""


_SHORT = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"},
    **{"dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp"},
    **dict.fromkeys(("char", "character", "varchar"), "string"),
}


@dataclass(frozen=True)
class SparkType:
    """``kind`` as in Spark's short names, without length or precision; ``fields`` are those of a struct, in order."""

    kind: str
    fields: tuple[tuple[str, SparkType], ...] = ()


def schema_mistake(text: str) -> str | None:
    """Returns the mistake in a schema as a sentence; None: nothing that can be seen without Spark."""
    try:
        _read(text)
    except _MistakeError as mistake:
        return str(mistake)
    return None


def row_type(text: str) -> SparkType | None:
    """Returns the struct that a schema declares; None: it has a mistake."""
    try:
        return _read(text)
    except _MistakeError:
        return None


def _read(text: str) -> SparkType:
    reading = _Reading(text)
    if re.match(r"\s*struct\s*<", text, re.IGNORECASE):  # Spark takes the type of a row, too
        return reading.type("a row")
    return SparkType("struct", reading.columns(None))


class _MistakeError(Exception):
    """Ends the reading, and says why."""


class _Reading:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def columns(self, closed_by: str | None) -> tuple[tuple[str, SparkType], ...]:
        """Columns, or the fields of a struct, up to the bracket that closes it."""
        found = []
        while True:
            name = self._name("the name of a column" if closed_by is None else "the name of a field")
            self._accept(":")
            found.append((_unquoted(name), self.type(name)))
            self._rest(name)
            if self._accept(","):
                continue
            if closed_by is None and self._peek() is not None:
                raise _MistakeError(f"column {name} is followed by {self._peek()!r}: write a comma between columns")
            if closed_by is not None:
                self._close(closed_by, "struct")
            return tuple(found)

    def type(self, of: str) -> SparkType:
        """A type, with what it is made of."""
        name = self._name(f"the type of {of}")
        kind = name.lower()
        if kind not in (*_PLAIN, *_NESTED):
            close = get_close_matches(kind, (*_PLAIN, *_NESTED), 1)
            nearest = f" (did you mean {close[0]}?)" if close else ""
            raise _MistakeError(f"{of} has the type {name!r}, which Spark does not know{nearest}")
        if kind in _NESTED:
            if kind == "struct" and self._accept("<>"):
                return SparkType(kind)
            self._open(kind)
            if kind == "struct":
                return SparkType(kind, () if self._accept(">") else self.columns(">"))
            self.type(of)
            if kind == "map":
                if not self._accept(","):
                    raise _MistakeError(f"{of} is a map of one type: write map<key, value>")
                self.type(of)
            self._close(">", kind)
        elif self._accept("("):
            while (token := self._next()) != ")":
                if token is None:
                    raise _MistakeError(f"the bracket ( of the type {name} of {of} is not closed")
        elif kind in _NEEDS_LENGTH:
            raise _MistakeError(f"{of} has the type {name} without a length: write {name}(n), or string")
        return SparkType(self._full_name(_SHORT.get(kind, kind)))

    def _full_name(self, kind: str) -> str:
        """Looks ahead for ``without time zone``, which makes another type."""
        if kind != "timestamp":
            return kind
        ahead = " ".join(self._tokens[self._at : self._at + 3]).lower()
        return "timestamp_ntz" if ahead == "without time zone" else kind

    def _rest(self, of: str) -> None:
        """Parses the words that follow a type."""
        word = self._peek()
        if word is None or word in (",", ">"):
            return
        if word.lower() not in _AFTER_TYPE:
            raise _MistakeError(f"{of} is followed by {word!r}: write a comma between columns")
        depth = 0
        while (word := self._peek()) is not None and (depth or word not in (",", ">")):
            depth += (word == "(") - (word == ")")
            self._at += 1

    def _name(self, what: str) -> str:
        token = self._next()
        if token is None:
            raise _MistakeError(f"it ends where {what} should stand")
        if not (token[0] == "`" or token[0].isalnum() or token[0] == "_"):
            raise _MistakeError(f"{token!r} stands where {what} should")
        return token

    def _open(self, kind: str) -> None:
        if not self._accept("<"):
            raise _MistakeError(f"{kind} says nothing of what is in it: write {kind}<...>")

    def _close(self, bracket: str, kind: str) -> None:
        if not self._accept(bracket):
            raise _MistakeError(f"the bracket < of {kind} is not closed")

    def _accept(self, mark: str) -> bool:
        for number, one in enumerate(mark):
            if self._at + number >= len(self._tokens) or self._tokens[self._at + number] != one:
                return False
        self._at += len(mark)
        return True

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> str | None:
        token = self._peek()
        self._at += 1
        return token


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[:1] == "`" else name


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        yield token[0].strip()


def column_types(text: str) -> list[tuple[str, str]]:
    """Returns the columns of a legal schema, with the first word of their types, in lower case."""
    words = [one for one in _tokens(text) if one != ":"]
    found, depth, starts = list[tuple[str, str]](), 0, True
    for word, following in pairwise(words):
        if starts:
            found.append((word[1:-1].replace("``", "`") if word.startswith("`") else word, following.lower()))
        depth += (word in "<(") - (word in ">)")
        starts = word == "," and not depth
    return found


def column_definitions(text: str) -> list[tuple[str, str]]:
    """Returns the columns of a legal schema, with their whole types: ``decimal(10,2)``, ``array<string>``."""
    found, depth, name, words, is_type = list[tuple[str, str]](), 0, "", list[str](), False
    for word in [*_tokens(text), ","]:
        if word == "," and not depth:
            found.append((name[1:-1].replace("``", "`") if name.startswith("`") else name, "".join(words)))
            name, words = "", []
            continue
        if not name:
            name, is_type = word, True
            continue
        is_type = is_type and (depth > 0 or not words or word.lower() not in _OPTIONS_OF_COLUMNS)
        if is_type and not (word == ":" and not words):
            are_apart = words and words[-1][-1].isalnum() and word[0].isalnum()
            words.append(f" {word}" if are_apart else word)
        depth += (word in "<(") - (word in ">)")
    return found


_OPTIONS_OF_COLUMNS = frozenset({"not", "null", "comment", "default", "collate", "generated"})
