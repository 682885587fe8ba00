"""Requests and results of commands on entities."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from falcon_assets.errors import Problem
from falcon_assets.operations.operation import Result

Action: TypeAlias = Literal["submitted", "updated", "deleted", "touched", "unchanged"]


@dataclass(frozen=True)
class EntityChange:
    """The outcome for one entity; ``file`` is empty where it has no definition."""

    kind: str
    name: str
    action: Action
    file: str


@dataclass(frozen=True)
class EntityState:
    """The status of a feed or process: SUBMITTED, RUNNING or SUSPENDED.

    Attributes:
        since: On the falcon clock.
        commanded: Whether a command set it, not ``schedule:`` in the definition.
    """

    kind: str
    name: str
    status: str
    since: datetime
    commanded: bool


ANY_KIND = "entity"
"""The kind of an entity that does not exist and was named without one."""


@dataclass(frozen=True)
class Request:
    """The arguments of a command on entities.

    Attributes:
        given: Files, folders or names of entities.
        kind: Of the named entities; None: the name is unique.
        definitions: More definitions, as YAML.
        takes_files: Whether ``given`` may be files and folders. False where the caller is not the user of this process:
            error messages would show lines of a file.
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
    """A workload that an update of a feed touches; of retention, ``name`` is the feed."""

    kind: Literal["process", "replication", "retention"]
    name: str
    clusters: tuple[str, ...]


ColoOutcome: TypeAlias = Literal["done", "unchanged", "absent", "refused", "away", "unanswered"]


@dataclass(frozen=True)
class ColoAnswer(Result):
    """What a colo answered to a change.

    Attributes:
        outcome: ``absent``: what is changed is not there, so there is nothing to do. ``away``: nothing was done.
            ``unanswered``: it may have been done, or be done yet.
        message: A sentence, without the name of the colo; it says whether what is missing is made up for.
    """

    colo: str
    outcome: ColoOutcome
    message: str

    @property
    def is_missing(self) -> bool:
        return self.outcome in ("refused", "away", "unanswered")


@dataclass(frozen=True)
class OperationResult(Result):
    """The result of a command on entities; fit to be recorded.

    Attributes:
        at: On the falcon clock.
        warnings: Of new definitions that are valid, but surprising.
        statuses: Before and after.
        reload: Whether Dagster has loaded the change, in words; empty without a change.
        touches: Other workloads that updates of feeds touch.
        colos: What each colo answered, where a front of several was asked.
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
    colos: tuple[ColoAnswer, ...] = ()
    keys = (
        *("operation", "actor", "reason", "at", "dry_run", "changed", "entities", "diff"),
        *("warnings", "statuses", "reload", "touches"),
    )

    @property
    def changed(self) -> bool:
        touched = any(one.action == "touched" for one in self.entities)
        return touched or bool(self.diff) or any(before != after for before, after in self.statuses)

    @property
    def partial(self) -> bool:
        """Whether it is not done everywhere yet."""
        return any(one.is_missing for one in self.colos)

    @property
    def failed(self) -> bool:
        return self.partial

    def as_data(self) -> dict[str, Any]:
        colos = [one.as_data() for one in self.colos]
        more = {"status": "PARTIAL" if self.partial else "SUCCEEDED", "colos": colos} if colos else {}
        statuses = [
            {"kind": after.kind, "name": after.name, "before": before.status, "status": after.status}
            for before, after in self.statuses
        ]
        own = {**super().as_data(), "warnings": [str(one) for one in self.warnings], "statuses": statuses}
        return {**own, **more}
