"""Operations on entities; the functions that do the work are in files beside."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from falcon_assets.errors import UsageError
from falcon_assets.features.entities.changing import delete, submit, submit_and_schedule, touch, update
from falcon_assets.features.entities.questions import Kind, OfOneEntity, Scheduled
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.features.entities.versions import (
    History,
    VersionDiff,
    entity_diff,
    entity_history,
    restore_entity,
)
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given
from falcon_assets.operations.request_origin import present_origin


class ChangeNamed(Change):
    """Fields of commands on entities that are named."""

    names: Annotated[tuple[str, ...], Given("NAME...")] = Field(min_length=1, description="Names of entities.")
    kind: Kind | None = Field(None, description="Of what kind those are that are named.")
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
    kind: Kind | None = Field(None, description="Of what kind those are that are named.")
    dry_run: bool = Field(False, description="Only say what would change, as a diff.")
    needs = "names or definitions"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.names or self.definitions):
            raise UsageError(f"{self.command.split()[-1]} needs {self.needs}")
        return self

    @property
    def request(self) -> Request:
        fields = (self.names, self.kind, self.actor, self.reason, self.dry_run, self.definitions)
        return Request(*fields, takes_files=present_origin() != "job")


class SubmitEntities(ChangeDefinitions):
    """Add the entities of files and folders to the definitions.

    The whole tree of definitions must be valid with them, or nothing is written. Each entity gets a file of its
    own. What is there already with the same definition stays as it is.
    """

    command = "entity submit"

    def run(self, installation: Installation) -> OperationResult:
        return submit(installation, self.request)


class UpdateEntities(ChangeDefinitions):
    """Give entities that are there the definitions of files and folders.

    Comments, order of keys and layout of the old definition are kept; a new one that has comments of its own takes
    its place as it is. The whole tree must be valid, or nothing is written.
    """

    command = "entity update"

    def run(self, installation: Installation) -> OperationResult:
        return update(installation, self.request)


class DeleteEntities(ChangeDefinitions):
    """Remove entities, by name or as they are in files and folders.

    What others need is not removed. The status of the entities is forgotten; data and history stay.
    """

    command = "entity delete"
    names: Annotated[tuple[str, ...], Given("NAME|FILE|FOLDER...")] = ()

    def run(self, installation: Installation) -> OperationResult:
        return delete(installation, self.request)


class SubmitAndScheduleEntities(ChangeDefinitions):
    """Submit entities, and let the feeds and processes among them run by themselves."""

    command = "entity submit-and-schedule"

    def run(self, installation: Installation) -> OperationResult:
        return submit_and_schedule(installation, self.request)


class ChangeStatus(ChangeNamed):
    """Fields of commands on the status of feeds and processes."""

    kind: Scheduled | None = Field(None, description="Where a feed and a process have that name.")


class ScheduleEntities(ChangeStatus):
    """Let what is SUBMITTED run by itself from now on.

    The command applies to all that are named, or to none.
    """

    command = "entity schedule"

    def run(self, installation: Installation) -> OperationResult:
        return schedule_entities(installation, self.request)


class SuspendEntities(ChangeStatus):
    """Start no more instances of what is RUNNING; those that run already go on.

    The command applies to all that are named, or to none.
    """

    command = "entity suspend"

    def run(self, installation: Installation) -> OperationResult:
        return suspend_entities(installation, self.request)


class ResumeEntities(ChangeStatus):
    """Let what is SUSPENDED run again, the instances of the meantime included.

    The command applies to all that are named, or to none.
    """

    command = "entity resume"

    def run(self, installation: Installation) -> OperationResult:
        return resume_entities(installation, self.request)


class TouchEntities(ChangeNamed):
    """Record the definitions of entities as new versions, although nothing in them has changed.

    Instances from now on have the new version; those before keep theirs. Each time is another version.
    """

    command = "entity touch"

    def run(self, installation: Installation) -> OperationResult:
        return touch(installation, self.request)


class EntityHistory(OfOneEntity):
    """List the definitions that NAME has had: since when, by what and whom, and why.

    A command records the version that it makes; what came by git or an editor is recorded by the first load of the
    code location.
    """

    command = "entity history"

    def run(self, installation: Installation) -> History:
        return entity_history(installation, self.name, self.kind)


class EntityDiff(OfOneEntity):
    """Show how the definition of NAME differs from VERSION; without one, from the last other definition."""

    command = "entity diff"
    version: Annotated[int | None, Given("[VERSION]")] = Field(None, ge=1)

    def run(self, installation: Installation) -> VersionDiff:
        return entity_diff(installation, self.name, self.version, self.kind)


class RestoreEntity(Change, OfOneEntity):
    """Give NAME the definition of VERSION again, as an update; what was deleted is submitted again.

    The files of its workflows get the content that they had then. The whole tree must be valid, or nothing is written.
    """

    command = "entity restore"
    needs = "one name and a version: see falcon entity history"
    version: Annotated[int, Given("VERSION")] = Field(ge=1, description="The version.")
    dry_run: bool = Field(False, description="Only say what would change, as a diff.")

    def run(self, installation: Installation) -> OperationResult:
        request = Request((self.name,), self.kind, self.actor, self.reason, self.dry_run)
        return restore_entity(installation, self.version, request)
