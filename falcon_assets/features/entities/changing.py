"""Submission, update and deletion of entities: read, planned, written all at once, and loaded by Dagster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy.exc import OperationalError

from falcon_assets.catalog.additions import require_changeable
from falcon_assets.catalog.stored_entity import StoredEntity
from falcon_assets.catalog.stored_tree import Stored, key_of, read_tree
from falcon_assets.catalog.yaml_files.journal import apply_changes, locked_tree
from falcon_assets.entities.definition_versions import Recorder, record_definitions
from falcon_assets.entities.status import Command, forget
from falcon_assets.errors import DefinitionStoreError, DeniedError, FalconError, InvalidDefinitionsError, SettingsError
from falcon_assets.features.entities.changes import (
    Plan,
    made_updates,
    plan_delete,
    plan_put,
    plan_submit,
    plan_update,
    require_definitions,
    touched_by,
)
from falcon_assets.features.entities.given import asked_for, keys_named, read_given, stored_keys, there_already
from falcon_assets.features.entities.results import ANY_KIND, EntityChange, OperationResult, Request
from falcon_assets.features.entities.status import apply_to_all, named_entities
from falcon_assets.features.entities.update_rules import require_allowed, require_no_server_files, require_queues
from falcon_assets.model.base import is_entity_name
from falcon_assets.model.entity import KINDS
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import Audit, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.reload import reload_code_locations
from falcon_assets.operations.request_origin import ORIGIN

_SCHEDULED = ("feed", "process")
_FORGOTTEN = {**{kind: (kind,) for kind in KINDS}, "flow": ("flow", "feed")}
"""What else has that name."""
_INSTEAD = "--dry-run says what would change"


def submit(installation: Installation, request: Request) -> OperationResult:
    """Adds entities and records their versions; entities with the same definition stay unchanged.

    Raises:
        InvalidDefinitionsError: the tree would have problems.
        DefinitionStoreError: an entity exists with another definition, or the tree cannot be changed.
        UnknownEntityError: a given name is not an entity.
    """
    return change(installation, "submit", request, _submission)


def update(installation: Installation, request: Request) -> OperationResult:
    """Replaces definitions and records the versions; comments and the order of keys are kept.

    Raises:
        InvalidDefinitionsError: the tree would have problems.
        DefinitionStoreError: the tree cannot be changed, or the update changes a key that must stay.
        UnknownEntityError: an entity does not exist.
    """
    return change(installation, "update", request, _updating)


def apply(installation: Installation, request: Request) -> OperationResult:
    """Adds the entities that do not exist, and replaces the definitions of the others; else as :func:`update`."""
    return change(installation, "apply", request, _applying)


def delete(installation: Installation, request: Request) -> OperationResult:
    """Removes entities, and their status; missing ones are unchanged.

    Raises:
        EntityInUseError: others need them.
        InvalidDefinitionsError: the tree would have problems.
        DefinitionStoreError: the tree cannot be changed.
        UnknownEntityError: there are several of a name, and no kind is given.
    """
    if request.dry_run:
        return change(installation, "delete", request, _deletion)
    with audited(installation, "delete", request) as audit:
        require_changeable(installation.settings, _INSTEAD)
        engine = installation.database  # where it cannot be reached, nothing is deleted either
        result = _changed(audit, request, _deletion)
        with engine.begin() as connection:
            for one in filter(lambda one: is_entity_name(one.name), result.entities):  # nothing is known of others
                for kind in _FORGOTTEN.get(one.kind, KINDS):
                    forget(connection, kind, one.name)
            audit.result(result.changed, connection)
    return result


def submit_and_schedule(installation: Installation, request: Request) -> OperationResult:
    """:func:`submit`, then schedules the feeds and processes among them; raises as both."""
    operation = "submit-and-schedule"
    if request.dry_run:
        return change(installation, operation, request, _submission)
    with audited(installation, operation, request) as audit:
        require_changeable(installation.settings, _INSTEAD)
        engine = installation.ledger.engine  # where it cannot be reached, nothing is submitted either
        submitted = _changed(audit, request, _submission)
        found = [(one.kind, one.name) for one in submitted.entities if one.kind in _SCHEDULED]
        with engine.begin() as connection:
            states = apply_to_all(connection, installation, Command.SCHEDULE, named_entities(installation, found))
            result = replace(submitted, statuses=states)
            audit.result(result.changed, connection)
    return result


def _submission(stored: Stored, request: Request) -> Plan:
    return with_names(stored, request, plan_submit)


def _updating(stored: Stored, request: Request) -> Plan:
    return with_names(stored, request, plan_update)


def _applying(stored: Stored, request: Request) -> Plan:
    return with_names(stored, request, partial(plan_put, texts=True))


def with_names(stored: Stored, request: Request, plan_of: Callable[[Stored, Stored], Plan]) -> Plan:
    given, names = read_given(stored, request)
    there = there_already(stored, names, request.kind)
    plan = plan_of(stored, given) if given.files.contents or given.files.problems else Plan(())
    return replace(plan, entities=(*plan.entities, *there))


def _deletion(stored: Stored, request: Request) -> Plan:
    given, names = read_given(stored, request, names_first=True)
    if len(names) < len(request.given) or request.definitions:
        require_definitions(given)
    keys = [key for document in given.files.documents if (key := key_of(document))]
    for name in names:
        found = keys_named(stored, name, request.kind)
        keys += found or [(request.kind or ANY_KIND, name)]
    return plan_delete(stored, keys)


def change(
    installation: Installation,
    operation: str,
    request: Request,
    plan_of: Callable[[Stored, Request], Plan],
) -> OperationResult:
    """Plans a change of the tree and makes it, unless it is a dry run; ``plan_of`` is called under its lock."""
    with audited(installation, operation, request) as audit:
        result = _changed(audit, request, plan_of)
        audit.result(result.changed)
    return result


def _changed(audit: Audit, request: Request, plan_of: Callable[[Stored, Request], Plan]) -> OperationResult:
    installation, operation, actor = audit.installation, audit.operation, audit.principal.name
    settings = installation.settings
    root, now = settings.entity_defs, settings.now()
    note = {"operation": operation, "actor": actor, "reason": request.reason, "at": now.isoformat()}

    def result(plan: Plan, reload: str = "") -> OperationResult:
        fields = (operation, actor, request.reason, now, request.dry_run)
        touches = touched_by(stored, plan.updates)
        return OperationResult(*fields, plan.entities, plan.diff(), plan.warnings, reload=reload, touches=touches)

    def planned(stored: Stored) -> Plan:
        try:
            plan = plan_of(stored, request)
        except FalconError as error:
            audit.about(keys := asked_for(stored, request))
            if keys and not isinstance(error, DeniedError):  # what is wrong with it concerns only those who may do it
                found = [StoredEntity(document) for key in keys if (document := stored.by_key.get(key))]
                require_change(audit.principal, operation.split()[-1], found)
            raise
        audit.about((one.kind, one.name) for one in plan.entities)
        require_change(audit.principal, operation.split()[-1], _owned(stored, plan, operation))
        if not ORIGIN.get().takes_files:
            require_no_server_files(audit.principal, stored, plan.written)
        require_queues(audit.principal, settings.queues, stored, plan.written)
        require_allowed(installation, [*plan.updates, *made_updates(stored, plan)])
        return plan

    if request.dry_run:
        stored = read_tree(root)
        return result(planned(stored))
    require_changeable(settings, _INSTEAD)
    _record(installation, now, Recorder(actor))  # what came by other ways could not be restored else
    with locked_tree(root):
        stored = read_tree(root)
        plan = planned(stored)
        if plan.files:
            apply_changes(root, plan.files, note)
    installation.forget_entities()
    if plan.files:  # before Dagster loads it, which would not know why
        keys = frozenset((one.kind, one.name) for one in plan.entities if one.action != "unchanged")
        _record(installation, now, Recorder(actor, operation, request.reason, keys))
    return result(plan, reload_code_locations(settings.webserver) if plan.files else "")


def _owned(stored: Stored, plan: Plan, operation: str) -> list[StoredEntity]:
    found = [stored.by_key.get((one.kind, one.name)) for one in plan.entities if _changes(one, operation)]
    return [StoredEntity(document) for document in found if document is not None]


def _changes(one: EntityChange, operation: str) -> bool:
    return one.action != "unchanged" or (operation == "submit-and-schedule" and one.kind in _SCHEDULED)


def _record(installation: Installation, now: datetime, recorder: Recorder) -> None:
    """Records new versions; where the database is not available, the next load of the code location does."""
    with suppress(SettingsError, OperationalError, InvalidDefinitionsError, DefinitionStoreError):
        record_definitions(installation.database, installation.settings.entity_defs, now, recorder)


def touch(installation: Installation, request: Request) -> OperationResult:
    """Records present definitions as new versions, valid from now on, at each call (source: Apache Falcon).

    Raises:
        UnknownEntityError: an entity does not exist, or there are several of a name, and no kind is given.
        InvalidDefinitionsError: the tree has problems.
        SettingsError: the database cannot be reached.
        DeniedError: the user may not change one of the entities.
    """
    settings = installation.settings
    root, now = settings.entity_defs, settings.now()
    with audited(installation, "touch", request) as audit:
        audit.about((request.kind or ANY_KIND, name) for name in request.given)
        stored, actor = read_tree(root), audit.principal.name
        keys = list(dict.fromkeys(stored_keys(stored, request.given, request.kind)))
        audit.about(keys)
        require_change(audit.principal, "touch", [StoredEntity(stored.by_key[key]) for key in keys])
        if not request.dry_run:
            recorder = Recorder(actor, "touch", request.reason, frozenset(keys), anew=True)
            record_definitions(
                installation.database, root, now, Recorder(actor)
            )  # what came by other ways is not touched
            record_definitions(installation.database, root, now, recorder)
        changes = tuple(EntityChange(*key, "touched", stored.by_key[key].file) for key in keys)
        result = OperationResult("touch", actor, request.reason, now, request.dry_run, changes)
        audit.result(result.changed)
    return result
