"""One instance of a process or a replication: its state, and what it reads, writes and is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.model.instant import format_instant
from falcon_assets.operations.explain import Explanation, explain
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.listing import instance_status
from falcon_assets.operations.instances.query import InstanceInfo, InstanceQuery
from falcon_assets.operations.instances.replications import explain_replication


@dataclass(frozen=True)
class InstanceDetails:
    """An instance of a process or a replication and what there is to say about it."""

    instance: InstanceInfo
    explanation: Explanation

    def params(self) -> dict[str, Any]:
        """The instance with the variables that its workflow, or the copy, is told; secrets are hidden."""
        return {**self.instance.as_data(), "params": dict(sorted(self.explanation.properties.items()))}

    def dependencies(self) -> dict[str, Any]:
        """The instance with those of feeds that it reads, and those that it writes."""
        said = self.explanation
        inputs = [
            {
                "name": one.name,
                "feed": one.feed,
                "instance": format_instant(read.instance),
                "path": read.path,
                "available": read.available,
                "optional": one.optional,
            }
            for one in said.inputs
            for read in one.instances
        ]
        for one in said.inputs:
            if one.short:
                lacks = {"instance": one.short, "path": "", "available": False, "optional": one.optional}
                inputs.append({"name": one.name, "feed": one.feed, **lacks})
        outputs = [
            {"name": one.name, "feed": one.feed, "instance": format_instant(one.instance), "path": one.path}
            for one in said.outputs
        ]
        return {**self.instance.as_data(), "inputs": inputs, "outputs": outputs}


def instance_details(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None
) -> InstanceDetails:
    """What there is to say about the instance; the stores of its feeds are asked what is there.

    Args:
        installation: Where.
        name: Of the process, of the replication as lists call it, or of the feed that is replicated.
        instance: A nominal time; it may lie in the future.
        cluster: Where it runs; None: on the only cluster of the process, or to the only target.

    Raises:
        UnknownEntityError: there is nothing of that name, or it does not run there, or on several and none is named.
        UnknownInstanceError: it has no such instance.
        StorageError: a store cannot be used.
    """
    entities = installation.entities
    is_replication = name in entities.feeds or any(
        name == one.name for those in entities.replications.values() for one in those
    )
    how = explain_replication if is_replication and name not in entities.processes else explain
    explanation = how(installation, name, instance, cluster)
    query = InstanceQuery(explanation.process, start=explanation.instance, cluster=explanation.cluster)
    return InstanceDetails(instance_status(installation, query).items[0], explanation)
