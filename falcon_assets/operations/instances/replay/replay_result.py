"""What a replay came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.runs.recorded_entities import OldEntity
from falcon_assets.orchestration.runs.replay import ReplayedOutput
from falcon_assets.planning.lineage.graph import Version


@dataclass(frozen=True)
class ReplayResult:
    """What came of a replay.

    Attributes:
        actor: Who asked.
        reason: Why.
        at: When, on the falcon clock.
        process: The process.
        cluster: Where it runs.
        instance: Its nominal time.
        definition: The version of its definition that made what is recorded; None: not recorded.
        recorded: The versions that were to be reproduced, by feed.
        environment: By name, which versions of Python and packages differ: those recorded, and those of now.
        old: Which definitions of then, or of now for want of them, were used that are not the same.
        impossible: Why it cannot be computed any more; empty: it was.
        outputs: How each output compares.
        folder: Where the outputs lie that are different; empty: nowhere.
        published: Whether they were published instead.
    """

    actor: str
    reason: str
    at: datetime
    process: str
    cluster: str
    instance: datetime
    definition: int | None
    recorded: dict[str, Version]
    environment: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    old: tuple[OldEntity, ...] = ()
    impossible: str = ""
    outputs: tuple[ReplayedOutput, ...] = ()
    folder: str = ""
    published: bool = False

    @property
    def outcome(self) -> str:
        """``reproduced``, ``different`` or ``impossible``."""
        if self.impossible:
            return "impossible"
        return "reproduced" if all(map(self.is_reproduced, self.outputs)) else "different"

    def is_reproduced(self, output: ReplayedOutput) -> bool:
        """Whether an output is as it was, as far as that can be told: where its data is gone, by its records."""
        if output.comparison is not None:
            return output.comparison.is_same
        recorded = self.recorded.get(output.feed)
        return recorded is not None and recorded.records == output.records

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "operation": "replay",
            "actor": self.actor,
            "reason": self.reason,
            "at": self.at.isoformat(),
            "process": self.process,
            "cluster": self.cluster,
            "instance": format_instant(self.instance),
            "definition": self.definition,
            "definitions": [asdict(one) for one in self.old],
            "environment": {name: {"recorded": was, "now": now} for name, (was, now) in self.environment.items()},
            "outcome": self.outcome,
            "impossible": self.impossible or None,
            "outputs": [self._output(one) for one in self.outputs],
            "folder": self.folder or None,
            "published": self.published,
        }

    def _output(self, one: ReplayedOutput) -> dict[str, Any]:
        recorded = self.recorded.get(one.feed)
        return {
            "feed": one.feed,
            "instance": format_instant(one.instance),
            "version": recorded and recorded.version,
            "reproduced": self.is_reproduced(one),
            "records": {"recorded": recorded and recorded.records, "replayed": one.records},
            "comparison": one.comparison and asdict(one.comparison),
        }
