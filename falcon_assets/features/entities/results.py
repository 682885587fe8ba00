"""What commands to entities are told, and what they answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from falcon_assets.errors import Problem

Action: TypeAlias = Literal["submitted", "updated", "deleted", "touched", "unchanged"]


@dataclass(frozen=True)
class EntityChange:
    """What becomes of an entity.

    Attributes:
        kind: Of what kind.
        name: Its name.
        action: What is done with it; ``unchanged``: it is so already.
        file: Where its definition is, or was; empty where there is none.
    """

    kind: str
    name: str
    action: Action
    file: str


@dataclass(frozen=True)
class EntityState:
    """Whether an entity runs by itself.

    Attributes:
        kind: ``feed`` or ``process``.
        name: Its name.
        status: SUBMITTED, RUNNING or SUSPENDED.
        since: When it came to that, on the falcon clock.
        commanded: Whether by a command; else by ``schedule:`` in the definition.
    """

    kind: str
    name: str
    status: str
    since: datetime
    commanded: bool


ANY_KIND = "entity"
"""Of what is not there, and was named without its kind."""


@dataclass(frozen=True)
class Request:
    """What a command to entities is told.

    Attributes:
        given: Files, folders or names of entities.
        kind: Of what kind those are that are named; None: the name says it.
        actor: Who asks.
        reason: Why, in the words of who asks.
        dry_run: Whether only to say what would change.
        definitions: Definitions in YAML, given besides.
        takes_files: Whether ``given`` may be files and folders. Not where others than the user of this process ask:
            what is wrong with a file would be told to them, with lines of it.
    """

    given: tuple[str, ...] = ()
    kind: str | None = None
    actor: str | None = None
    reason: str = ""
    dry_run: bool = False
    definitions: str = ""
    takes_files: bool = True


@dataclass(frozen=True, order=True)
class Touched:
    """What an update of a feed touches besides.

    Attributes:
        kind: ``process``, ``replication`` or ``retention``.
        name: Of the process, of the replication as lists call it, or of the feed that retention takes instances of.
        clusters: Where.
    """

    kind: Literal["process", "replication", "retention"]
    name: str
    clusters: tuple[str, ...]


@dataclass(frozen=True)
class OperationResult:
    """What came of a command to entities; fit to be recorded.

    Attributes:
        operation: Its name.
        actor: Who asked.
        reason: Why.
        at: When, on the falcon clock.
        dry_run: Whether nothing was done.
        entities: What became of each entity.
        diff: What changed in the files.
        warnings: What works and surprises in the new definitions.
        statuses: The status of each entity before and after, where that was to change.
        reload: Whether Dagster has taken up the change, in words; empty where there was none.
        touches: What the updates of feeds touch besides.
    """

    operation: str
    actor: str
    reason: str
    at: datetime
    dry_run: bool
    entities: tuple[EntityChange, ...] = ()
    diff: str = ""
    warnings: tuple[Problem, ...] = ()
    statuses: tuple[tuple[EntityState, EntityState], ...] = ()
    reload: str = ""
    touches: tuple[Touched, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything did, or would."""
        touched = any(one.action == "touched" for one in self.entities)
        return touched or bool(self.diff) or any(before != after for before, after in self.statuses)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "operation": self.operation,
            "actor": self.actor,
            "reason": self.reason,
            "at": self.at.isoformat(),
            "dry_run": self.dry_run,
            "changed": self.changed,
            "entities": [asdict(one) for one in self.entities],
            "diff": self.diff,
            "warnings": [str(one) for one in self.warnings],
            "statuses": [
                {"kind": after.kind, "name": after.name, "before": before.status, "status": after.status}
                for before, after in self.statuses
            ],
            "reload": self.reload,
            "touches": [{**asdict(one), "clusters": list(one.clusters)} for one in self.touches],
        }
