"""Operations that read one instance; stores are asked what is there."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from falcon_assets.instances.operations.questions import TYPE, Type
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.explain import Explanation, explain
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation


class OfOneInstance(Operation):
    name: Annotated[str, Given("NAME")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Which cluster, where it is on several; of a replication the target.")


class InstanceParams(OfOneInstance):
    """Show the parameters of the INSTANCE (YYYY-MM-DDTHH:MMZ) of NAME; secrets as stars.

    NAME is a process: the variables of its workflow; or a feed that is replicated, or such a replication ("FEED from
    CLUSTER"): what is copied from where to where, and the options of the copy.
    """

    command = "instance params"

    def run(self, installation: Installation) -> dict[str, Any]:
        return instance_details(installation, self.name, self.instance, self.cluster).params()


class InstanceDependencies(OfOneInstance):
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of NAME reads and writes, and whether what it reads is there now.

    NAME is a process, a feed that is replicated, or such a replication ("FEED from CLUSTER"). With --type feed it is a
    feed: who writes the instance, who read it, and who has yet to read it.
    """

    command = "instance dependency"
    type: Annotated[Type, Given(shows_default=True)] = Field("process", description=TYPE)

    def run(self, installation: Installation) -> dict[str, Any]:
        about = (self.name, self.instance, self.cluster)
        if self.type == "feed":
            return feed_instance_dependencies(installation, *about).as_data()
        return instance_details(installation, *about).dependencies()


class ExplainInstance(Operation):
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of PROCESS reads and writes, and its parameters.

    For every input instance it says whether it is available now.
    """

    command = "explain"
    process: Annotated[str, Given("PROCESS")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Which cluster, where the process runs on several.")

    def run(self, installation: Installation) -> Explanation:
        return explain(installation, self.process, self.instance, self.cluster)
