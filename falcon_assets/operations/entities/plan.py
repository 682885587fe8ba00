"""What a command changes in a tree of definitions."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TypeAlias

from falcon_assets.catalog.stored_tree import masked, text_of
from falcon_assets.catalog.yaml_files.documents import Document, shown_path
from falcon_assets.catalog.yaml_files.file_changes import AnyChange, WorkflowChange
from falcon_assets.errors import Problem
from falcon_assets.operations.entities.results import EntityChange
from falcon_assets.texts import hidden

Update: TypeAlias = tuple[Document, Document]
"""The definition of an entity before and after."""


@dataclass(frozen=True)
class Plan:
    """What a command changes.

    Attributes:
        entities: Each entity that it is about: clusters, feeds, processes.
        files: The files that change; none where everything is so already.
        warnings: What works and surprises in the new definitions.
        updates: The definitions that take the place of others.
    """

    entities: tuple[EntityChange, ...]
    files: tuple[AnyChange, ...] = ()
    warnings: tuple[Problem, ...] = ()
    updates: tuple[Update, ...] = ()

    def diff(self) -> str:
        """The change as a unified diff; values of storage options are stars in it."""
        return "".join(_diff(change) for change in self.files)


def _diff(change: AnyChange) -> str:
    if isinstance(change, WorkflowChange):
        return change.diff(shown_path(change.path))
    before, after = (
        hidden(masked(text_of(content))) if content is not None else "" for content in (change.before, change.after)
    )
    name = shown_path(change.path)
    sides = ("/dev/null" if change.before is None else name, "/dev/null" if change.after is None else name)
    lines = list(unified_diff(_lines(before), _lines(after), *sides, lineterm=""))
    if not lines:
        return f"--- {name}\n+++ {name}\n(hidden values change)\n"
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Its lines as editors and diff count them; YAML knows other line breaks, too."""
    return text.removesuffix("\n").split("\n") if text else []
