"""The job ``falcon_instance_operation``: what ``falcon instance`` does to instances."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import dagster as dg
from pydantic import Field

from falcon_assets.errors import UsageError
from falcon_assets.features.versions.operations import RestoreResult, restore_instance
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.jobs.running import PLACEHOLDER, in_run

InstanceOperation: TypeAlias = Literal["rerun", "kill", "suspend", "resume", "restore"]


class InstanceOperationConfig(dg.Config):
    """What ``falcon_instance_operation`` is told."""

    operation: InstanceOperation = Field(description="As the command of falcon instance.")
    name: str = Field(description="A process, or a feed: then its replications; of restore a feed.")
    start: str | None = Field(None, description="The first instance (YYYY-MM-DDTHH:MMZ); alone it is the only one.")
    end: str | None = Field(None, description="The last instance; it is included.")
    cluster: str | None = Field(None, description="Only there.")
    colo: str | None = Field(None, description="Only on clusters of it.")
    status: list[str] = Field([], description="Only those in one of these states.")
    force: bool = Field(False, description="Of rerun: instances that succeeded, too.")
    late: bool = Field(False, description="Of rerun: with the workflow that late data has.")
    from_failed: bool = Field(False, description="Of rerun: only what failed, timed out or was killed.")
    use_latest: bool = Field(False, description="Of rerun: with the present definition.")
    downstream: bool = Field(False, description="Of rerun: what reads their outputs, directly or not, too.")
    properties: dict[str, str] = Field({}, description="Of rerun: properties over those that are declared, this time.")
    version: str | None = Field(None, description="Of restore: the data version that is to be there again.")
    reason: str = Field("", description="Why; it is recorded.")
    principal: str | None = Field(
        None, description="Who asks; believed only where FALCON_JOBS and FALCON_PROXY_USERS say so."
    )
    dry_run: bool = Field(False, description="Only say what would change.")


_OPERATIONS: Mapping[str, Callable[[Installation, InstanceRequest], CommandResult]] = {
    "kill": kill_instances,
    "suspend": suspend_instances,
    "resume": resume_instances,
}


def _operate(installation: Installation, config: InstanceOperationConfig) -> CommandResult | RestoreResult:
    query = InstanceQuery(
        name=config.name,
        start=parse_instant(config.start) if config.start else None,
        end=parse_instant(config.end) if config.end else None,
        cluster=config.cluster,
        colo=config.colo,
        filters=tuple(("state", state) for state in config.status),
    )
    request = InstanceRequest(query, config.principal, config.reason, config.dry_run)
    options = RerunOptions(
        config.force, config.late, config.from_failed, config.use_latest, config.downstream, config.properties
    )
    if (config.version is not None) != (config.operation == "restore"):
        raise UsageError("restore takes a version, and nothing else does")
    if config.operation == "rerun":
        return rerun_instances(installation, request, options)
    if options != RerunOptions():
        raise UsageError(
            f"{config.operation} takes none of force, late, from_failed, use_latest, downstream, properties"
        )
    if config.version is not None:
        return restore_instance(installation, config.version, request)
    return _OPERATIONS[config.operation](installation, request)


@dg.op(out=dg.Out(dg.Nothing), description="Does it, and says what came of it in the metadata of its output.")
def instance_operation(context: dg.OpExecutionContext, config: InstanceOperationConfig) -> dg.Output[None]:
    return in_run(context, "instances", config.principal, lambda installation: _operate(installation, config))


@dg.job(
    executor_def=dg.in_process_executor,
    # What the launchpad begins with: the keys that are needed, and no others; nothing happens without a name.
    config={
        "ops": {"instance_operation": {"config": {"operation": "rerun", "name": PLACEHOLDER, "start": PLACEHOLDER}}}
    },
    description="Reruns, kills, suspends or resumes instances of processes and replications, or restores a version of "
    "one of a feed, as falcon instance does.",
)
def falcon_instance_operation() -> None:
    """An operation on instances, from the launchpad or by GraphQL."""
    instance_operation()
