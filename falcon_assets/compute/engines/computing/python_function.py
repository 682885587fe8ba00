"""A Python function as the keys of an engine, and mistakes in its file that are seen without importing it."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, model_validator

from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.workflow import Mistake

_FUNCTION = "run"
_ABOUT = {"instance": "one instance", "instances": "all instances of a batch (batch: true)"}
_DYNAMIC = frozenset({"exec", "eval", "globals", "setattr", "vars", "locals", "__getattr__"})
"""With these a module may define names that its source does not show."""


def python_mistakes(source: bytes, parameters: str | None = None) -> Iterator[Mistake]:
    """Yields mistakes; ``parameters`` are those of the function that has to be in it, None: it needs none."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield Mistake(error.lineno or 1, f"not Python: {error.msg}", column=error.offset or 1)
        return
    except ValueError as error:  # NUL
        yield Mistake(1, f"not Python: {error}")
        return
    if parameters is not None and not ({_FUNCTION, "*"} | _DYNAMIC) & set(_names(tree)):
        yield Mistake(1, f"there is no function {_FUNCTION}({parameters}) in it")
    for node in tree.body if parameters is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION and node.args.args:
            last, wanted = node.args.args[-1].arg, (parameters or "").rpartition(" ")[2]
            if last in _ABOUT and last != wanted:
                said = f"its last parameter is called {last}, but it gets {_ABOUT[wanted]}"
                yield Mistake(node.lineno, f"{said}: {_FUNCTION}({parameters})", is_certain=False)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


class FunctionKeys(Declaration):
    """The keys of engines that call a Python function; their own classes come before :class:`Workflow`."""

    path: NonEmpty | None = None
    """A ``.py`` file with a function ``run``, relative to the folder of the entity definitions."""
    function: Annotated[str, StringConstraints(pattern=r"^[\w.]+:\w+$")] | None = None
    """``package.module:name`` instead of ``path``."""

    @model_validator(mode="after")
    def _one_of_both(self) -> FunctionKeys:
        if (self.path is None) == (self.function is None):
            raise ValueError("exactly one of path and function is required")
        return self

    @property
    @abstractmethod
    def parameters(self) -> str:
        """The names of the function's parameters, as people read them."""

    @property
    def program(self) -> str:
        """The file, or the name of the function."""
        return self.path or self.function or ""

    def files(self) -> dict[str, str]:
        """The file, if it is one."""
        return {} if self.path is None else {"path": self.path}

    def mistakes(
        self, root: Path, views: Collection[str], parameters: Collection[str]
    ) -> Iterator[tuple[str, Mistake]]:
        """Yields mistakes in the file; raises OSError."""
        if self.path is not None:
            for one in python_mistakes((root / self.path).read_bytes(), self.parameters):
                yield self.path, one
