"""Checks of a Python workflow without importing it: its syntax, and whether it has the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from falcon_assets.model.workflow import Mistake

_FUNCTION = "run"
_DYNAMIC = frozenset({"exec", "eval", "globals", "setattr", "vars", "locals", "__getattr__"})
"""With these a module may define names that its source does not show."""


def python_mistakes(source: bytes, *, has_function: bool = True) -> Iterator[Mistake]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield Mistake(error.lineno or 1, f"not Python: {error.msg}", column=error.offset or 1)
        return
    except ValueError as error:  # NUL
        yield Mistake(1, f"not Python: {error}")
        return
    if has_function and not ({_FUNCTION, "*"} | _DYNAMIC) & set(_names(tree)):
        yield Mistake(1, f"there is no function {_FUNCTION}(spark, inputs, instance) in it")


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
