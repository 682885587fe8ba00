"""What commands to instances are told, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.operations.instances.query import InstanceInfo, InstanceQuery


@dataclass(frozen=True)
class InstanceRequest:
    """What a command to instances is told.

    Attributes:
        query: Which instances; the part that it asks for (``after``, ``limit``) does not matter.
        actor: Who asks; None: the user of the operating system.
        reason: Why, in the words of who asks.
        dry_run: Whether only to say what would change.
    """

    query: InstanceQuery
    actor: str | None = None
    reason: str = ""
    dry_run: bool = False


@dataclass(frozen=True)
class Outcome:
    """An instance after a command, and whether that changed it."""

    instance: InstanceInfo
    changed: bool


@dataclass(frozen=True)
class CommandResult:
    """What came of a command to instances; fit to be recorded.

    Attributes:
        operation: Its name.
        actor: Who asked.
        reason: Why.
        at: When, on the falcon clock.
        dry_run: Whether nothing was done.
        items: The instances after it, by entity, cluster and time.
        notes: What who asked should know besides.
    """

    operation: str
    actor: str
    reason: str
    at: datetime
    dry_run: bool
    items: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """How many instances it changed, or would."""
        return sum(one.changed for one in self.items)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "operation": self.operation,
            "actor": self.actor,
            "reason": self.reason,
            "at": self.at.isoformat(),
            "dry_run": self.dry_run,
            "changed": self.changed,
            "items": [{**one.instance.as_data(), "changed": one.changed} for one in self.items],
            "total": len(self.items),
            "next": None,
            "notes": list(self.notes),
        }
