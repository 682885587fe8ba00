"""Operations on entities; the functions that do the work are in files beside."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from falcon_assets.errors import UsageError
from falcon_assets.features.entities.changing import apply, delete, submit, submit_and_schedule, touch, update
from falcon_assets.features.entities.questions import OfOneEntity, Scheduled
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.features.entities.versions import (
    History,
    VersionDiff,
    entity_diff,
    entity_history,
    restore_entity,
)
from falcon_assets.model.entity import Kind
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given
from falcon_assets.operations.request_origin import ORIGIN


class ChangeNamed(Change):
    """Fields of commands on entities that are named."""

    names: Annotated[tuple[str, ...], Given("NAME...")] = Field(min_length=1, description="Names of entities.")
    kind: Kind | None = Field(None, description="Kind of the named entities: needed if several kinds share a name.")
    needs = "names"

    @property
    def request(self) -> Request:
        return Request(self.names, self.kind, self.actor, self.reason, self.dry_run)


class ChangeDefinitions(Change):
    """Fields of commands that take definitions, too: in files, where a command is given them, else as text."""

    names: Annotated[tuple[str, ...], Given("FILE|FOLDER|NAME...")] = Field(
        (), description="Names of entities; never files."
    )
    definitions: Annotated[str, Given(programs_only=True)] = Field("", description="Definitions in YAML.")
    kind: Kind | None = Field(None, description="Kind of the named entities: needed if several kinds share a name.")
    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")
    needs = "names or definitions"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.names or self.definitions):
            raise UsageError(f"{self.command.split()[-1]} needs {self.needs}")
        return self

    @property
    def request(self) -> Request:
        fields = (self.names, self.kind, self.actor, self.reason, self.dry_run, self.definitions)
        return Request(*fields, takes_files=ORIGIN.get().takes_files)


class SubmitEntities(ChangeDefinitions):
    """Add the entities in files and folders to the definitions.

    Each entity gets a file of its own. Entities that exist with the same definition stay unchanged. Nothing is written
    unless the whole tree of definitions is valid afterwards.
    """

    command = "entity submit"

    def run(self, installation: Installation) -> OperationResult:
        return submit(installation, self.request)


class UpdateEntities(ChangeDefinitions):
    """Replace the definitions of existing entities by those in files and folders.

    Comments, order of keys and layout of the old definition are kept, unless the new definition has comments of its
    own: then it replaces the old text as a whole. Nothing is written unless the whole tree of definitions is valid
    afterwards.
    """

    command = "entity update"

    def run(self, installation: Installation) -> OperationResult:
        return update(installation, self.request)


class ApplyEntities(ChangeDefinitions):
    """Create the entities in files and folders, or update those that exist.

    It can be repeated: what has the same definition already stays unchanged. Else it is as `submit` for new entities,
    and as `update` for the others.
    """

    command = "entity apply"

    def run(self, installation: Installation) -> OperationResult:
        return apply(installation, self.request)


class DeleteEntities(ChangeDefinitions):
    """Delete entities, given by name or by the files and folders that define them.

    Entities that others refer to are not deleted. The status of the deleted entities (scheduled, suspended) is
    forgotten; their data and history stay.
    """

    command = "entity delete"
    names: Annotated[tuple[str, ...], Given("NAME|FILE|FOLDER...")] = ()

    def run(self, installation: Installation) -> OperationResult:
        return delete(installation, self.request)


class SubmitAndScheduleEntities(ChangeDefinitions):
    """Submit entities, and schedule the feeds and processes among them."""

    command = "entity submit-and-schedule"

    def run(self, installation: Installation) -> OperationResult:
        return submit_and_schedule(installation, self.request)


class ChangeStatus(ChangeNamed):
    """Fields of commands on the status of feeds and processes."""

    kind: Scheduled | None = Field(
        None, description="Kind of the named entities: needed if a feed and a process share a name."
    )


class ScheduleEntities(ChangeStatus):
    """Schedule SUBMITTED feeds and processes: instances run from now on.

    The command applies to all names, or to none.
    """

    command = "entity schedule"

    def run(self, installation: Installation) -> OperationResult:
        return schedule_entities(installation, self.request)


class SuspendEntities(ChangeStatus):
    """Suspend feeds and processes that are RUNNING: no new instances start.

    Instances that already run are completed. The command applies to all names, or to none.
    """

    command = "entity suspend"

    def run(self, installation: Installation) -> OperationResult:
        return suspend_entities(installation, self.request)


class ResumeEntities(ChangeStatus):
    """Resume feeds and processes that are SUSPENDED.

    Instances that became due in the meantime run, too. The command applies to all names, or to none.
    """

    command = "entity resume"

    def run(self, installation: Installation) -> OperationResult:
        return resume_entities(installation, self.request)


class TouchEntities(ChangeNamed):
    """Record the unchanged definitions of entities as new versions.

    Use it when something outside the definition has changed, such as a jar. Later instances have the new version;
    earlier ones keep theirs. Each call records another version.
    """

    command = "entity touch"

    def run(self, installation: Installation) -> OperationResult:
        return touch(installation, self.request)


class EntityHistory(OfOneEntity):
    """List the versions of the definition of NAME: when, by whom, and why.

    Commands record the version that they make. Changes from git or an editor are recorded when the code location next
    loads.
    """

    command = "entity history"
    page = "entity"

    def run(self, installation: Installation) -> History:
        return entity_history(installation, self.name, self.kind)


class EntityDiff(OfOneEntity):
    """Show the differences between the definition of NAME and an older VERSION.

    VERSION is a number from `falcon entity history`; the default is the last definition that differs.
    """

    command = "entity diff"
    page = "entity/diff"
    version: Annotated[int | None, Given("[VERSION]")] = Field(None, ge=1)

    def run(self, installation: Installation) -> VersionDiff:
        return entity_diff(installation, self.name, self.version, self.kind)


class RestoreEntity(Change, OfOneEntity):
    """Restore the definition that NAME had at VERSION.

    VERSION is a number from `falcon entity history`. The restored definition is recorded as an update; a deleted entity
    is submitted again. The files of its workflows get their content of that time, too. Nothing is written unless the
    whole tree of definitions is valid afterwards.
    """

    command = "entity restore"
    needs = "one name and a version: see falcon entity history"
    version: Annotated[int, Given("VERSION")] = Field(ge=1, description="The version.")
    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")

    def run(self, installation: Installation) -> OperationResult:
        request = Request((self.name,), self.kind, self.actor, self.reason, self.dry_run)
        return restore_entity(installation, self.version, request)
