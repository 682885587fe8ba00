"""Operations that read one instance; stores are asked what is there."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from falcon_assets.instances.operations.questions import TYPE, Type
from falcon_assets.instances.views.details import explanation, instance_details
from falcon_assets.instances.views.explain import Explanation
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation


class OfOneInstance(Operation):
    name: Annotated[str, Given("NAME")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(
        None, description="Cluster (of a replication: the target): needed if NAME is on several."
    )


class InstanceParams(OfOneInstance):
    """Show the parameters of an instance of NAME; secrets are masked.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. If NAME is a process, shows the variables of its workflow. If NAME is a
    replicated feed, or a replication ("FEED from CLUSTER"), shows source, target and options of the copy; likewise for
    an import ("FEED import") or export ("FEED to DATASOURCE").
    """

    command = "instance params"

    def run(self, installation: Installation) -> dict[str, Any]:
        return instance_details(installation, self.name, self.instance, self.cluster).params()


class InstanceDependencies(OfOneInstance):
    """Show the inputs and outputs of an instance of NAME, and which are missing.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. NAME is a process, a replicated feed, or other work ("FEED from CLUSTER",
    "FEED import", "FEED to DATASOURCE"). With --type feed, NAME is a feed: shows what writes the instance, what read
    it, and what has yet to read it.
    """

    command = "instance dependency"
    page = "instance"
    type: Annotated[Type, Given(shows_default=True)] = Field("process", description=TYPE)

    def run(self, installation: Installation) -> dict[str, Any]:
        about = (self.name, self.instance, self.cluster)
        if self.type == "feed":
            return feed_instance_dependencies(installation, *about).as_data()
        return instance_details(installation, *about).dependencies()


class ExplainInstance(Operation):
    """Show inputs, outputs and parameters of an instance of NAME.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. NAME is a process, a replicated feed, or other work ("FEED from CLUSTER",
    "FEED import", "FEED to DATASOURCE"). Shows for each input instance whether it is available now.
    """

    command = "explain"
    process: Annotated[str, Given("NAME")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Cluster: needed if NAME is on several.")

    def run(self, installation: Installation) -> Explanation:
        return explanation(installation, self.process, self.instance, self.cluster)
