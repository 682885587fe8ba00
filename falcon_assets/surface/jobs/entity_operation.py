"""The job ``falcon_entity_operation``: what ``falcon entity`` does to clusters, feeds and processes."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Literal, TypeAlias

import dagster as dg
from pydantic import Field

from falcon_assets.errors import UsageError
from falcon_assets.features.entities.changing import delete, submit, submit_and_schedule, touch, update
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.features.entities.versions import restore_entity
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.jobs.running import PLACEHOLDER, in_run

EntityOperation: TypeAlias = Literal[
    "submit", "update", "delete", "submit-and-schedule", "schedule", "suspend", "resume", "touch", "restore"
]


class EntityKind(str, Enum):
    """The kinds of entities, in lower case, as Dagster shows the names of the members."""

    cluster = "cluster"
    feed = "feed"
    process = "process"


class EntityOperationConfig(dg.Config):
    """What ``falcon_entity_operation`` is told."""

    operation: EntityOperation = Field(description="As the command of falcon entity.")
    names: list[str] = Field([], description="Names of entities; never files.")
    definitions: str = Field("", description="Definitions in YAML, to be submitted, updated or deleted.")
    kind: EntityKind | None = Field(None, description="Of what kind those are that are named.")
    version: int | None = Field(None, description="Of restore: the version.")
    reason: str = Field("", description="Why; it is recorded.")
    principal: str | None = Field(
        None, description="Who asks; believed only where FALCON_JOBS and FALCON_PROXY_USERS say so."
    )
    dry_run: bool = Field(False, description="Only say what would change.")


_OPERATIONS: Mapping[EntityOperation, Callable[[Installation, Request], OperationResult]] = {
    "submit": submit,
    "update": update,
    "delete": delete,
    "submit-and-schedule": submit_and_schedule,
    "schedule": schedule_entities,
    "suspend": suspend_entities,
    "resume": resume_entities,
    "touch": touch,
}
_TAKE_DEFINITIONS = ("submit", "update", "delete", "submit-and-schedule")


def _operate(installation: Installation, config: EntityOperationConfig) -> OperationResult:
    takes_definitions = config.operation in _TAKE_DEFINITIONS
    if config.definitions and not takes_definitions:
        raise UsageError(f"{config.operation} takes names, no definitions")
    if not (config.names or config.definitions):
        raise UsageError(f"{config.operation} needs names{' or definitions' if takes_definitions else ''}")
    kind = config.kind.value if config.kind else None
    told = (tuple(config.names), kind, config.principal, config.reason, config.dry_run)
    request = Request(*told, definitions=config.definitions, takes_files=False)
    if config.operation != "restore":
        return _OPERATIONS[config.operation](installation, request)
    if config.version is None or len(config.names) != 1:
        raise UsageError("restore needs one name and a version: see falcon entity history")
    return restore_entity(installation, config.version, request)


@dg.op(out=dg.Out(dg.Nothing), description="Does it, and says what came of it in the metadata of its output.")
def entity_operation(context: dg.OpExecutionContext, config: EntityOperationConfig) -> dg.Output[None]:
    return in_run(context, "entities", config.principal, lambda installation: _operate(installation, config))


@dg.job(
    executor_def=dg.in_process_executor,
    # What the launchpad begins with: the keys that are needed, and no others; nothing happens without names.
    config={"ops": {"entity_operation": {"config": {"operation": "submit", "names": [PLACEHOLDER]}}}},
    description="Submits, updates, deletes, schedules, suspends, resumes or restores entities, as falcon entity does.",
)
def falcon_entity_operation() -> None:
    """An operation on entities, from the launchpad or by GraphQL."""
    entity_operation()
