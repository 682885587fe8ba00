"""Asks that everything that was made from a version and is there runs again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.operations.auditing import PlainRequest
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.commands import CommandResult, InstanceRequest
from falcon_assets.operations.instances.query import InstanceQuery
from falcon_assets.operations.instances.rerunning import RerunOptions, rerun_instances
from falcon_assets.operations.lineage.asking import Impact


@dataclass(frozen=True)
class Recomputed:
    """What came of it.

    Attributes:
        results: Of each instance that was asked for, in the order in which they were made.
        left: Why others cannot run again.
    """

    results: tuple[CommandResult, ...]
    left: tuple[str, ...]

    @property
    def changed(self) -> int:
        """How many instances are asked to run again, or would be."""
        return sum(one.changed for one in self.results)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"changed": self.changed, "results": [one.as_data() for one in self.results], "left": list(self.left)}


def rerun_impact(installation: Installation, impact: Impact, request: PlainRequest) -> Recomputed:
    """Asks for reruns of all instances that made what is there of an impact; each waits until what it reads is there.

    One after the other, as :func:`.rerun_instances` does: where it is killed, some are asked for, and the same again
    asks for the others.

    Args:
        installation: Where.
        impact: What was made from a version.
        request: Who asks, and why.

    Raises:
        DeniedError: who asks may not command one of them; those before it are asked for.
    """
    results, left = [], []
    for entity, cluster, nominal in impact.recompute:
        query = InstanceQuery(entity, start=nominal, cluster=cluster)
        asked = InstanceRequest(query, request.actor, request.reason, request.dry_run)
        try:
            results.append(rerun_instances(installation, asked, RerunOptions(force=True)))
        except (UnknownEntityError, UnknownInstanceError) as error:
            left.append(str(error))
    return Recomputed(tuple(results), tuple(left))
