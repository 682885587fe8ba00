"""Falcon's expression language: its grammar. Its functions are in :mod:`.expression_functions`.

An expression is one function call; arguments are whole numbers, quoted texts, weekdays or further calls::

    now(-1,0)    currentWeek(SUN,0,0)    formatTime(dateOffset(instanceTime(), -1, 'DAY'), 'yyyy-MM-dd')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression_functions import FUNCTIONS, WEEKDAYS, Kind, LedgerFunction
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.text_value import TextValue

Argument: TypeAlias = "int | str | Call"


@dataclass(frozen=True)
class Call:
    """One function applied to arguments whose number and kinds are already checked."""

    name: str
    args: tuple[Argument, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of the result."""
        return FUNCTIONS[self.name].result

    def calls(self) -> Iterator[Call]:
        """This call and those among its arguments, outermost first."""
        yield self
        for arg in self.args:
            if isinstance(arg, Call):
                yield from arg.calls()


_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?[0-9]+)|(?P<name>[A-Za-z]\w*)|'(?P<text>[^']*)'|\"(?P<text2>[^\"]*)\"|(?P<sign>[(),]))"
)

_MOST_TOKENS = 200
"""Keeps calls within calls from exhausting the stack."""


@lru_cache(maxsize=4096)  # thousands of entities say the same few
def parse_expression(text: str) -> Call:
    """Reads one call.

    Raises:
        ExpressionError: bad syntax, an unknown function (names the nearest one), or arguments that do not fit;
            the text names the whole expression.
    """
    tokens = list(_tokenize(text))
    if len(tokens) > _MOST_TOKENS:
        raise ExpressionError(f"an expression of {len(tokens)} words is too long: {text[:40]!r}...")
    parser = _ExpressionParser(text, tokens)
    call = parser.argument()
    if not isinstance(call, Call) or parser.position != len(tokens):
        raise parser.error("one function call is expected, for example now(0,0)")
    return call


def _tokenize(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"{text!r} is not an expression: cannot read {stripped[at:]!r}")
        yield match.lastgroup.rstrip("2"), match[match.lastgroup]
        at = match.end()


class _ExpressionParser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, tokens: list[tuple[str, str]]) -> None:
        self.text, self.tokens, self.position = text, tokens, 0

    def error(self, why: str) -> ExpressionError:
        return ExpressionError(f"{self.text!r} is not a legal expression: {why}")

    def next(self) -> tuple[str, str]:
        if self.position >= len(self.tokens):
            raise self.error("it ends too early")
        self.position += 1
        return self.tokens[self.position - 1]

    def peek(self, sign: str) -> bool:
        return self.position < len(self.tokens) and self.tokens[self.position] == ("sign", sign)

    def argument(self) -> Argument:
        kind, value = self.next()
        if kind == "number":
            if len(value) > 9:
                raise self.error(f"{value} is too large a number")
            return int(value)
        if kind == "text":
            return value
        if kind == "name":
            return self.call(value) if self.peek("(") else self.weekday(value)
        raise self.error(f"{value!r} is not expected there")

    def weekday(self, name: str) -> str:
        if name.upper() not in WEEKDAYS:
            raise self.error(f"{name!r} is neither a weekday ({', '.join(WEEKDAYS)}) nor a call")
        return name.upper()

    def call(self, name: str) -> Call:
        if name not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise self.error(f"unknown function {name!r}{nearest(name, FUNCTIONS)}; known: {known}")
        self.next()
        args: list[Argument] = []
        while not self.peek(")"):
            if args and self.next() != ("sign", ","):
                raise self.error(f"the arguments of {name} are separated by commas")
            args.append(self.argument())
        self.next()
        self.check(name, args)
        return Call(name, tuple(args))

    def check(self, name: str, args: list[Argument]) -> None:
        wanted, optional = FUNCTIONS[name].arguments, FUNCTIONS[name].optional
        if not len(wanted) - optional <= len(args) <= len(wanted):
            least = f"{len(wanted) - optional} to " if optional else ""
            raise self.error(f"{name} takes {least}{len(wanted)} argument(s), not {len(args)}")
        for index, (arg, kind) in enumerate(zip(args, wanted, strict=False), start=1):
            if not _fits(arg, kind):
                raise self.error(f"argument {index} of {name} must be {kind.value}, not {_show(arg)}")
        why = FUNCTIONS[name].problem(tuple(args))
        if why is not None:
            raise self.error(why)


def _fits(arg: Argument, kind: Kind) -> bool:
    if kind is Kind.NUMBER:
        return isinstance(arg, int)
    if kind is Kind.WEEKDAY:
        return arg in WEEKDAYS
    if isinstance(arg, Call):
        return arg.kind is kind
    if kind is Kind.TIME:
        return isinstance(arg, str) and _is_instant(arg)
    return kind is Kind.TEXT and isinstance(arg, str)


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text)
    except ExpressionError:
        return False
    return True


def _show(arg: Argument) -> str:
    return f"{arg.name}(...)" if isinstance(arg, Call) else repr(arg)


def nearest(word: str, legal: Any) -> str:
    """`` (did you mean 'x'?)`` for the legal word that looks most like ``word``, or nothing."""
    close = get_close_matches(word, list(legal), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


@dataclass(frozen=True)
class InstanceExpression(TextValue):
    """A field that names feed instances: a time, ``latest(n)`` or ``future(n,limit)``."""

    text: str
    call: Call

    JSON_SCHEMA: ClassVar[dict[str, Any]] = {"examples": ["now(0,0)", "today(0,0)", "lastWeek(SUN,0,0)", "latest(0)"]}

    @classmethod
    def parse(cls, text: str) -> InstanceExpression:
        """Reads the expression.

        Raises:
            ExpressionError: not legal, its result is a text, or it depends on the ledger.
        """
        call = parse_expression(text)
        for one in call.calls():
            if isinstance(FUNCTIONS[one.name], LedgerFunction):
                raise ExpressionError(
                    f"{text!r}: {one.name}(...) is known only when an instance runs, and which instances it reads and "
                    "writes is known before: use it in properties"
                )
        if call.kind is Kind.TEXT:
            raise ExpressionError(f"{text!r} gives a text; a time is expected, for example now(0,0)")
        return cls(text.strip(), call)

    def __str__(self) -> str:
        return self.text
