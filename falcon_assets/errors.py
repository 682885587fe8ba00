"""Errors with messages that say how to fix them.

Every exception that this package raises on purpose derives from :class:`FalconError`; its text is
one or more plain sentences and never needs a traceback to be understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.base.texts import hidden, visible


class FalconError(Exception):
    """Root of the package's exceptions: ``str(error)`` is fit to be shown to a user, and to be stored, as it is."""

    def __str__(self) -> str:
        # Names of files need not be UTF-8, but databases and terminals want nothing else.
        return visible(hidden(super().__str__()))


class SettingsError(FalconError):
    """An environment variable or the machine is not as it must be (Java, disk space, a bad clock)."""


class NotSetError(SettingsError):
    """What is asked for needs a setting that this installation does not have."""


class ReadOnlyError(FalconError):
    """The database can only be read now, as a standby or a full one: changes are refused, and the rest goes on."""


class LockedError(FalconError):
    """Another process holds a lock for longer than anybody should wait."""


class ExpressionError(FalconError, ValueError):
    """A text of one of the entity languages (instant, frequency, expression, path template) is not legal.

    Also a ``ValueError``, so that pydantic turns it into a validation error of its field.
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
    """Something that is wrong with the definitions, or that works and surprises.

    Attributes:
        position: Where; a missing key points at its parent.
        key_path: Which key, dotted, list items by index (``clusters[0].retention.limit``); "" = the document.
        message: The rule that is broken, with the offending value, and the nearest legal value if there is any.
        snippet: The source line at ``position``, without its line break.
        is_warning: The definitions work as they are: they load, and only those who ask see it.
        is_doubt: Of a warning: nobody knows whether it is right, so it is never made a problem.
    """

    position: Position
    key_path: str
    message: str
    snippet: str = ""
    is_warning: bool = False
    is_doubt: bool = False

    def __str__(self) -> str:
        said = ("warning: " if self.is_warning else "") + (f"{self.key_path}: " if self.key_path else "")
        return f"{self.position}: {printable(said + self.message)}"

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


def printable(text: str) -> str:
    """The text on one line, with everything escaped that a terminal would act on or could not show."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def sorted_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each of them once, by file and line."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.position, problem.key_path)))


def listed_problems(problems: Iterable[Problem]) -> list[str]:
    """Their lines, each with its source line."""
    return [line for problem in problems for line in (str(problem), problem.excerpt) if line]


class InvalidDefinitionsError(FalconError):
    """The entity definitions have problems; all of them, not only the first.

    Attributes:
        problems: Sorted by file and line, warnings among them.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted_problems(problems)
        warnings = sum(problem.is_warning for problem in self.problems)
        found = count_of(len(self.problems) - warnings, "problem")
        if warnings:
            found += f" and {count_of(warnings, 'warning')}"
        super().__init__("\n".join([*listed_problems(self.problems), f"{found} in the entity definitions"]))


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """``1 problem``, ``2 problems``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


class MissingDefinitionsError(FalconError):
    """There is no folder of entity definitions, or nothing in it."""


class DefinitionStoreError(FalconError):
    """The folder of the entity definitions cannot be changed as asked."""


class UnwritableDefinitionsError(DefinitionStoreError):
    """The folder cannot be written now, as its disk is full or read-only: it may be tried again."""


class EntityInUseError(FalconError):
    """An entity cannot go, because others need it."""


class UnknownEntityError(FalconError):
    """An entity of that kind and name is not defined, or not on the cluster that was asked for."""


class UnknownInstanceError(FalconError):
    """A nominal time is not an instance of the entity: outside its validity or between two steps."""


class QueryError(FalconError):
    """A query of a list names a field that it does not have."""


class UsageError(FalconError):
    """A request lacks what it needs, or has what it does not take."""


class DeniedError(FalconError):
    """The user may not do that."""


class RefusedElsewhereError(FalconError):
    """Another server has refused.

    Attributes:
        status: Of HTTP; 0: it did not answer.
        kind: Of the problem, as a URI; empty: it said none.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        self.status, self.kind = status, kind
        super().__init__(message)


class EntityStatusError(FalconError):
    """A command does not fit the status of the entity: what is only submitted cannot be suspended."""


class MissingInputsError(FalconError):
    """Required input instances are not available.

    Attributes:
        missing: One line each, with feed, instance and path; those that were evicted first, and when they were.
        lacking: Feed and instance of those that may come, where they are known by name and none was evicted.
        may_come: Whether all of it may still come: none was evicted.
    """

    def __init__(
        self,
        subject: str,
        missing: Sequence[str],
        evicted: Sequence[str] = (),
        lacking: Sequence[tuple[str, datetime]] = (),
    ) -> None:
        self.missing = (*evicted, *missing)
        self.may_come = not evicted
        self.lacking = tuple(lacking) if self.may_come else ()
        what = "cannot run without" if evicted else "waits for"
        super().__init__("\n".join([f"{subject} {what} {len(self.missing)} input instance(s):", *self.missing]))


class StorageError(FalconError):
    """A cluster's file system cannot do what is asked: unreachable, outside its root, busy or full."""


class UnreachableError(StorageError):
    """A store does not answer, or not in a way that says anything about what was asked for."""


class SecretError(StorageError):
    """An encrypted value cannot be decrypted: with the keys that are given, or at all."""


class RootAwayError(UnreachableError):
    """The root of a store is not there, or is another one than before: nobody knows what is in it."""


class BeingWrittenError(StorageError):
    """Another run writes the same place just now, or has taken it over: whoever meets it waits."""


class DatasourceError(FalconError):
    """A datasource cannot do what is asked: unreachable, refusing the login, or with other data than declared."""


class OldDefinitionError(FalconError):
    """An instance cannot run with the version of the definition that it has."""


class HeldOutputError(FalconError):
    """What was computed is kept aside, unpublished: a feature found it wrong. The same again would be as wrong."""


class WorkflowError(FalconError):
    """A user's workflow is missing, malformed, or failed while it ran."""
