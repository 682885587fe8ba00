"""Operations that read one instance; stores are asked what is there."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.instances.operations.questions import TYPE, Type
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.explain import Explanation, explain
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.logs.instance_runs import runs_of
from falcon_assets.instances.views.logs.reading import InstanceLogs
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import Instant, format_instant
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


class LogsOfInstance(OfOneInstance):
    """Print what the run, Spark and the program said for the INSTANCE (YYYY-MM-DDTHH:MMZ) of NAME.

    NAME is a process or a replication. A run carries many instances: what all of them share is marked so.
    """

    command = "instance logs"
    cluster: str | None = Field(None, description="Which cluster, where NAME runs on several.")
    attempt: int | None = Field(None, ge=1, description="What that attempt said, instead of the latest.")

    def run(self, installation: Installation) -> InstanceLogs:
        """Raises UnknownInstanceError where there is no such instance, or no run of that attempt is known."""
        found = instance_status(installation, InstanceQuery(self.name, start=self.instance, cluster=self.cluster)).items
        if len(found) > 1:
            several = {one.entity for one in found}
            which = (
                f"several: {', '.join(sorted(several))}" if len(several) > 1 else "on several clusters: say --cluster"
            )
            where = "" if len(several) > 1 else f" ({', '.join(one.cluster for one in found)})"
            raise UnknownEntityError(f"{self.name} is {which}{where}")
        (info,) = found
        workload = installation.entities.workload(info.entity, info.cluster)
        assert workload is not None
        runs = runs_of(installation, workload, info)
        chosen = runs[-1] if runs else None
        if self.attempt is not None:
            chosen = next((one for one in reversed(runs) if one.attempt == self.attempt), None)
            if chosen is None:
                known = ", ".join(str(one.attempt) for one in runs) or "none"
                what = f"{info.entity} {format_instant(self.instance)}"
                raise UnknownInstanceError(
                    f"no run is known for attempt {self.attempt} of {what}; known attempts: {known}"
                )
        return InstanceLogs(info, runs, chosen, workload, installation)


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
