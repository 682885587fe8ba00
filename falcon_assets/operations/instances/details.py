"""One process instance: its state, and what it reads, writes and is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.model.instant import format_instant
from falcon_assets.operations.explain import Explanation, explain
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.listing import instance_status
from falcon_assets.operations.instances.query import InstanceInfo, InstanceQuery


@dataclass(frozen=True)
class InstanceDetails:
    """A process instance and what there is to say about it."""

    instance: InstanceInfo
    explanation: Explanation

    def params(self) -> dict[str, Any]:
        """The instance with the variables that its workflow is told; secrets are hidden."""
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
        outputs = [
            {"name": one.name, "feed": one.feed, "instance": format_instant(one.instance), "path": one.path}
            for one in said.outputs
        ]
        return {**self.instance.as_data(), "inputs": inputs, "outputs": outputs}


def instance_details(
    installation: Installation, process: str, instance: datetime, cluster: str | None = None
) -> InstanceDetails:
    """What there is to say about the instance; the stores of its feeds are asked what is there.

    Args:
        installation: Where.
        process: The process.
        instance: A nominal time; it may lie in the future.
        cluster: Where it runs; None: on the only cluster of the process.

    Raises:
        UnknownEntityError: there is no such process, or it does not run there, or on several and none is named.
        UnknownInstanceError: the process has no such instance.
        StorageError: a store cannot be used.
    """
    explanation = explain(installation, process, instance, cluster)
    query = InstanceQuery(process, start=explanation.instance, cluster=explanation.cluster)
    return InstanceDetails(instance_status(installation, query).items[0], explanation)
