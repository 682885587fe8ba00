"""What can be wrong, said so that a person can mend it.

Every exception that this package raises on purpose derives from :class:`FalconError`; its text is
one or more plain sentences and never needs a traceback to be understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class FalconError(Exception):
    """Root of the package's exceptions: ``str(error)`` is fit to be shown to a user as it is."""


class SettingsError(FalconError):
    """An environment variable or the machine is not as it must be (Java, disk space, a bad clock)."""


class ExpressionError(FalconError, ValueError):
    """A text of one of the entity languages (instant, frequency, expression, path template) is not legal.

    Also a ``ValueError``, so that pydantic turns it into a validation error of the field that holds it.
    """


@dataclass(frozen=True, order=True)
class Position:
    """A place in a definition file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


_EXCERPT_WIDTH = 110


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the definitions.

    Attributes:
        position: Where; a missing key points at its parent.
        key_path: Which key, dotted, list items by index (``clusters[0].retention.limit``); "" = the document.
        message: The rule that is broken, with the offending value, and the nearest legal one if there is one.
        snippet: The source line at ``position``, without its line break.
    """

    position: Position
    key_path: str
    message: str
    snippet: str = ""

    def __str__(self) -> str:
        where = f"{self.position}: {self.key_path}: " if self.key_path else f"{self.position}: "
        return where + self.message

    @property
    def excerpt(self) -> str:
        """The source line, cut around the place, and a caret below it; "" where there is no line to show."""
        if not self.snippet.strip():
            return ""
        at = min(self.position.column - 1, len(self.snippet))
        first = max(0, at - _EXCERPT_WIDTH // 2) if len(self.snippet) > _EXCERPT_WIDTH else 0
        line = self.snippet[first : first + _EXCERPT_WIDTH].replace("\t", " ")
        shown = "".join(char if char.isprintable() else "?" for char in line)
        return f"    {shown.rstrip()}\n    {' ' * (at - first)}^"


class InvalidDefinitionsError(FalconError):
    """The entity definitions have problems; all of them, not the first one.

    Attributes:
        problems: Sorted by file and line.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.position, problem.key_path)))
        count = len(self.problems)
        lines = [line for problem in self.problems for line in (str(problem), problem.excerpt) if line]
        super().__init__("\n".join([*lines, f"{count} problem{'s' if count != 1 else ''} in the entity definitions"]))


class MissingDefinitionsError(FalconError):
    """There is no folder of entity definitions, or nothing in it."""


class UnknownEntityError(FalconError):
    """An entity of that kind and name is not defined, or not on the cluster that was asked for."""


class UnknownInstanceError(FalconError):
    """A nominal time is not an instance of the entity: outside its validity or between two steps."""


class EntityStatusError(FalconError):
    """A command does not fit the status of the entity: what is only submitted cannot be suspended."""


class MissingInputsError(FalconError):
    """Required input instances are not available.

    Attributes:
        missing: One line each, with feed, instance and path; those that were evicted first, and when they were.
    """

    def __init__(self, subject: str, missing: Sequence[str], evicted: Sequence[str] = ()) -> None:
        self.missing = (*evicted, *missing)
        what = "cannot run without" if evicted else "waits for"
        super().__init__("\n".join([f"{subject} {what} {len(self.missing)} input instance(s):", *self.missing]))


class StorageError(FalconError):
    """A cluster's file system cannot do what is asked: unreachable, outside its root, busy or full."""


class WorkflowError(FalconError):
    """A user's workflow is missing, malformed, or failed while it ran."""
