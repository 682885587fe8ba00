"""The operation ``falcon instance logs``, which reads Dagster's history."""

from __future__ import annotations

from pydantic import Field

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.instances.operations.one_instance import OfOneInstance
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.logs.instance_runs import runs_of
from falcon_assets.instances.views.logs.reading import InstanceLogs
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation


class LogsOfInstance(OfOneInstance):
    """Print the logs of an instance of NAME: of its run, Spark and the program.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. NAME is a process or a replication. One run may compute several instances:
    logs that they share are marked.
    """

    command = "instance logs"
    page = "instance/logs"
    cluster: str | None = Field(None, description="Cluster: needed if NAME runs on several.")
    attempt: int | None = Field(None, ge=1, description="Number of the attempt, from 1 (default: the latest).")

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
